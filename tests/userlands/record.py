# SPDX-License-Identifier: Apache-2.0
"""
What threads of a userland wait for in futex(2), as bpf/threads/futex.h sees it: rows for the unit tests.
record.py USERLAND KIND PID SECONDS writes those of one process, each sort of wait once.

Threads called `lock` wait for nothing but their lock, which is of KIND, and all others only park
(KIND `idle`), so what is right is known without asking the classifier. Two are exceptions: the threads
called `turn` wait for either and are left out, and a wait for a lock of the runtime itself, whose code
is that of another recorded lock, becomes `"runtime", 1` by hand. PID may be that of the `unshare` which
has put the process into a namespace.
"""

import os
import struct
import sys
import time
from pathlib import Path

SYS_FUTEX = 202
COMMANDS = 0x7F
WAITS = (0, 9, 6, 13)  # FUTEX_WAIT, _WAIT_BITSET, _LOCK_PI, _LOCK_PI2


class Memory:
    """Of another process. What cannot be read is 0, as for the helpers of BPF."""

    def __init__(self, pid):
        self._file = open(f"/proc/{pid}/mem", "rb", buffering=0)  # pylint: disable=all

    def read(self, address, size):
        """The bytes, or None."""
        try:
            self._file.seek(address)
            data = self._file.read(size)
        except (OSError, ValueError, OverflowError):
            return None
        return data if len(data) == size else None

    def numbers(self, address, letter, count):
        size = struct.calcsize(letter) * count
        return struct.unpack(f"<{count}{letter}", self.read(address, size) or bytes(size))

    def close(self):
        self._file.close()


def _waiting(task):
    """[number, arguments..., stack pointer, instruction pointer], if it sleeps in futex(2)."""
    words = (task / "syscall").read_text().split()
    if len(words) != 9 or int(words[0]) != SYS_FUTEX:
        return None
    return [int(word, 16) for word in words[1:]]


def _rwlock(word, expected):
    if word & 4:
        return word - 12
    return word - 8 if expected <= 3 else word


def sight(memory, task):
    """One wait with all that there is to see, or None if it changed meanwhile."""
    seen = _waiting(task)
    if not seen or seen[1] & COMMANDS not in WAITS:
        return None
    word, op, expected, timeout = seen[0], seen[1] & 0xFFFFFFFF, seen[2] & 0xFFFFFFFF, seen[3]
    before = memory.numbers(word - 32, "Q", 4)
    key = memory.numbers(before[0] & ~1, "Q", 1)[0]
    row = {
        "word": word,
        "op": op,
        "expected": expected,
        "timed": int(timeout != 0),
        "own_frame": int(0 <= word - seen[6] < 512),
        "code": memory.numbers(seen[7] - 32, "Q", 4),
        "before": before,
        "words": memory.numbers(word, "I", 10),
        "rwlock": memory.numbers(_rwlock(word, expected), "I", 8),
        "key": key,
        "pointer": int(memory.read(key, 1) is not None),
    }
    unchanged = op & COMMANDS in (6, 13) or row["words"][0] == expected
    return row if unchanged and _waiting(task) == seen else None


def process_of(pid):
    """@pid, or its child where @pid is what has put that into a namespace."""
    if Path(f"/proc/{pid}/comm").read_text() != "unshare\n":
        return pid
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def waits(pid):
    """[(name of the thread without its number, sight)] of all threads that wait just now."""
    memory = Memory(pid)
    found = []
    for number in os.listdir(f"/proc/{pid}/task"):
        task = Path(f"/proc/{pid}/task/{number}")
        try:
            name = (task / "comm").read_text().strip()
            row = sight(memory, task)
        except OSError:
            continue
        if row:
            found.append((name.split("-")[0], row))
    memory.close()
    return found


def _numbers(values):
    return "{ " + ", ".join(f"{value:#x}" for value in values) + " }"


def line(userland, kind, lock, row):
    """A row of tests/unit/fixtures/futexes.def."""
    wait = ", ".join(f"{row[key]:#x}" for key in ("word", "op", "expected", "timed", "own_frame"))
    seen = ", ".join(_numbers(row[key]) for key in ("code", "before", "words", "rwlock"))
    return (
        f'{{ "{userland}", "{kind}", {lock}, {{ {wait} }}, '
        f"{{ {seen}, {row['key']:#x}, {row['pointer']} }} }},"
    )


def sorts(pid, kind, seconds):
    """
    What was seen of @kind within @seconds, {sort of wait: sight}. A counter takes every value: from the
    third on they are one sort.
    """
    found = {}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for name, row in waits(pid):
            if name != "turn" and (name == "lock") == (kind != "idle"):
                how = [row[key] for key in ("op", "timed", "own_frame", "code")]
                found.setdefault((*how, min(row["expected"], 3)), row)
        time.sleep(0.002)
    return found


def main():
    userland, kind, pid, seconds = sys.argv[1:]
    found = sorts(process_of(int(pid)), kind, float(seconds))
    assert found, f"no thread of {pid} waits in futex(2)"
    for _, row in sorted(found.items()):
        print(line(userland, kind, int(kind != "idle"), row))


if __name__ == "__main__":
    main()
