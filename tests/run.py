#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
run.py PART... [-- PART... -- PART... [-- PART...]]: makes the targets of the Makefile that are named,
one after the other, whatever becomes of them, and ends with a table of them; exit 1 if one failed.
The second and the third group are made beside each other, and what their parts say is shown when
they have ended. What each said is kept below build/test.

SIGINT and SIGTERM end what runs, and the table says what was not run.
"""

import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOGS = ROOT / "build" / "test"
FAILED = ROOT / "build" / "failed"  # tests/conftest.py
# What pytest, tools of this project and Criterion say at the end, and the numbers in it.
LAST_LINE = re.compile(
    r"^(?:[^:\n]* in [\d.]+s\b.*|[\w-]+: \d+ passed, \d+ failed\b.*|.*Synthesis: Tested: .*)$", re.M
)
KINDS = {
    "passed": re.compile(r"(\d+) passed|Passing: (\d+)"),
    "failed": re.compile(r"(\d+) (?:failed|error)|(?:Failing|Crashing): (\d+)"),
    "inconclusive": re.compile(r"(\d+) inconclusive"),
    "skipped": re.compile(r"(\d+) skipped"),
}
COLOURS = re.compile(r"\x1b\[[\d;]*[A-Za-z]")


class Part:
    def __init__(self, name):
        self.name, self.seconds, self.text = name, 0.0, ""
        self.status = None  # until it has ended
        self.child = None

    def make(self, is_shown):
        """Prints what it says as it comes, or only that it begins."""
        print(f"\n== {self.name}" if is_shown else f"-- {self.name} begins", flush=True)
        began = time.monotonic()
        # A group of its own: what a terminal sends reaches this process only, which passes it on.
        self.child = subprocess.Popen(
            ["make", "--no-print-directory", f"--jobs={os.cpu_count()}", self.name], cwd=ROOT, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        said = b""
        with (LOGS / f"{self.name}.log").open("wb", buffering=0) as log:
            while data := os.read(self.child.stdout.fileno(), 65536):
                said += data
                log.write(data)
                if is_shown:
                    sys.stdout.buffer.write(data)
                    sys.stdout.flush()
        self.status = self.child.wait()
        self.text = COLOURS.sub("", said.decode(errors="replace"))
        self.seconds = time.monotonic() - began
        if not is_shown:
            print(f"\n== {self.name}: {self.result}\n{self.text}", flush=True)

    def end(self):
        """As a terminal's Ctrl-C would: all of the group, of which tests tidy up."""
        if self.child and self.status is None:
            os.killpg(self.child.pid, signal.SIGINT)

    def count(self, kind):
        lines = "\n".join(LAST_LINE.findall(self.text))
        return sum(int(found[found.lastindex]) for found in KINDS[kind].finditer(lines))

    @property
    def result(self):
        if self.status is None:
            return "not run"
        return "passed" if self.status == 0 else "FAILED"

    def row(self):
        minutes, seconds = divmod(round(self.seconds), 60)
        counts = [self.count(kind) or "" for kind in KINDS]
        return f"{self.name:<20}" + "".join(f"{count:>13}" for count in counts) + (
            f"{minutes:>6}:{seconds:02}  {self.result}"
        )


class Run:
    def __init__(self, words):
        lanes = [list(lane) for is_mark, lane in itertools.groupby(words, lambda w: w == "--") if not is_mark]
        self.lanes = [[Part(name) for name in lane] for lane in lanes]
        self.parts = [part for lane in self.lanes for part in lane]
        self.ended_by = None

    def end(self, number, _):
        """Once: what runs ends, which may take a moment."""
        if not self.ended_by:
            self.ended_by = number
            for part in self.parts:
                part.end()

    def _make_lane(self, lane, is_shown=False):
        for part in lane:
            if not self.ended_by:
                part.make(is_shown)

    def make_all(self):
        first, *others = self.lanes
        self._make_lane(first, is_shown=True)
        threads = [threading.Thread(target=self._make_lane, args=(lane,)) for lane in others[:2]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for lane in others[2:]:
            self._make_lane(lane, is_shown=True)

    @staticmethod
    def _show_failed():
        for folder in sorted(FAILED.iterdir()) if FAILED.is_dir() else ():
            print(f"left by a failure: {folder.relative_to(ROOT)}")

    def show(self, seconds):
        print("\n" + f"{'part':<20}" + "".join(f"{kind:>13}" for kind in KINDS) + f"{'time':>9}")
        for part in self.parts:
            print(part.row())
        passed, failed = (sum(part.count(kind) for part in self.parts) for kind in ("passed", "failed"))
        failed += sum(1 for part in self.parts if part.status and not part.count("failed"))
        self._show_failed()
        print(f"in {seconds // 60}:{seconds % 60:02} minutes; what each said: {LOGS}")
        print(f"total: {passed} passed, {failed} failed")

    @property
    def is_fine(self):
        return all(part.status == 0 for part in self.parts)


def main(words):
    LOGS.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(FAILED, ignore_errors=True)
    began = time.monotonic()
    run = Run(words)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, run.end)
    run.make_all()
    run.show(round(time.monotonic() - began))
    return 128 + run.ended_by if run.ended_by else not run.is_fine


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
