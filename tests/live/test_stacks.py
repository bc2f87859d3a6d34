# SPDX-License-Identifier: Apache-2.0
"""
Stacks of programs that run are followed as libdwfl follows them, frame by frame, from the same
registers and the same copy of the stack: unwind/stacks.c, which has the exporter's own code.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

from databases import POSTGRESQL, PostgreSQL
from exporter import BUILD
from servers import HttpLoad
from services import READY_SECONDS, Nginx, Process, Redis, own_copy, wait_until

EQUAL = COMPLETE = 99.9  # percent
SECONDS, SAMPLES = 2, 1000  # and longer, until there are so many
# While the loader looks for a function that is called first, rules do not know how it is left.
BOUND = {**os.environ, "LD_BIND_NOW": "1"}
LINE = re.compile(r"^(.*) (\d+): (stacks .*)$", re.MULTILINE)
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def compare(*processes):
    """What there was of each process, by its number; 0 is all of them."""
    words = [SECONDS, SAMPLES * len(processes), *(process.pid for process in processes)]
    done = subprocess.run(
        [BUILD / "unwind_stacks", *map(str, words)], capture_output=True, text=True, check=False
    )
    print(done.stdout, done.stderr)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {}
    for _, pid, figures in LINE.findall(done.stdout):
        words = figures.split()
        found[int(pid)] = dict(zip(words[::2], map(float, words[1::2])))
    return found


def is_whole(found):
    """In the kernel as well as outside, up to the first function, and nothing was guessed."""
    everything = found[0]
    assert everything["equal"] >= EQUAL
    assert everything["complete"] >= COMPLETE
    assert everything["in_kernel"] and everything["in_kernel"] < everything["stacks"]
    assert everything["guessed"] <= everything["stacks"] / 1000


def test_those_of_nginx(start, tmp_path):
    server = start(Nginx, tmp_path)
    start(HttpLoad, server.port)
    is_whole(compare(server))


def test_those_of_redis(start, tmp_path):
    server = start(Redis, tmp_path)
    start(Process, ["redis-benchmark", "-p", server.port, "-l", "-q"], **QUIET)
    is_whole(compare(server))


@pytest.mark.xdist_group("postgresql")
def test_those_of_postgresql(start):
    server = start(PostgreSQL)
    env = {**os.environ, "PGSSLMODE": "disable", "PGGSSENCMODE": "disable"}
    client = [POSTGRESQL / "pgbench", "-h", "127.0.0.1", "-p", server.port, "-U", "postgres"]
    make = [str(word) for word in [*client, "-i", "-q", "postgres"]]
    subprocess.run(make, env=env, check=True, timeout=60, **QUIET)
    start(Process, [*client, "-n", "-c", 4, "-T", 600, "postgres"], env=env, **QUIET)
    is_whole(compare(server))


# Takes longer to compile than it is looked at.
SOURCE = """
template <int N> struct Tree { Tree<N - 1> left, right; long sum(long x) {
    for (int i = 0; i < N; i++) x ^= left.sum(x + i) * right.sum(i); return x; } };
template <> struct Tree<0> { long value; long sum(long x) { return x / (value | 1); } };
""" + "".join(
    f"long sum{number}(Tree<{3 + number % 5}> &tree) {{ return tree.sum({number}); }}\n" for number in range(20000)
)


def cpu_ticks(process):
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return int(fields[11])


def test_those_of_a_compiler(start, tmp_path):
    """In C++, with deep stacks, linked to be at one address; not those of its start."""
    program = subprocess.check_output(["g++", "-print-prog-name=cc1plus"], text=True).strip()
    (tmp_path / "source.cpp").write_text(SOURCE)
    words = [program, "-quiet", "-O2", tmp_path / "source.cpp", "-o", "/dev/null"]
    compiler = start(Process, words, env=BOUND, **QUIET)
    wait_until(lambda: cpu_ticks(compiler) > 50, READY_SECONDS, "the compiler does nothing")
    found = compare(compiler)[0]
    assert found["equal"] >= EQUAL
    not_all = found["truncated"] + found["cut"]  # of what is deeper than is kept, or copied
    assert found["complete"] + 100 * not_all / found["stacks"] >= COMPLETE


class Climber(Process):
    def __init__(self, case):
        super().__init__(
            [own_copy("climber"), f"--case={case}"], env=BOUND, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self.process.stdout.readline() == b"ready 0\n"


# What share of their stacks is complete at least, and of how many libdwfl guesses a frame at most: it
# does where rt_sigreturn(2) and makecontext(3) return to, which are in no function.
CASES = {
    "signal": (COMPLETE, 10),
    "vdso": (COMPLETE, 0),
    "plt": (COMPLETE, 0),
    "alloca": (COMPLETE, 0),
    "dlopen": (COMPLETE, 0.5),
    "context": (COMPLETE, 100),
    "thread": (COMPLETE, 0),
    "deep": (1, 0),  # of the others there are more frames than are kept
}


def test_those_that_are_made_in_other_ways(start):
    climbers = {case: start(Climber, case) for case in CASES}
    found = compare(*climbers.values())
    for case, (complete, guessed) in CASES.items():
        figures = found[climbers[case].pid]
        assert figures["stacks"] >= SAMPLES / 2, case
        assert figures["equal"] >= EQUAL, case
        assert figures["complete"] >= complete, case
        assert figures["guessed"] <= guessed / 100 * figures["stacks"], case
    assert found[climbers["deep"].pid]["truncated"]
