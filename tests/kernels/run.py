#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The tests on a matrix of kernels: each row boots the newest kernel of a Debian suite in an emulated
machine and runs tests in it. Prints pytest's lines kernel by kernel, leaves JUnit files and whole
consoles under build/kernels/results, and ends with 1 if anything failed, was skipped or hung.

run.py [ROW...]; UPDATE=1 writes verifier.txt anew.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from typing import NamedTuple

import machine
import verifier

KERNELS = machine.ROOT / "build" / "kernels"
RESULTS = KERNELS / "results"
PYTEST = "/usr/bin/python3 -m pytest -v --tb=short --color=no -p no:cacheprovider".split()
SHOWN = re.compile(r"(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\b.*%\]|^init: |Kernel panic|Oops")

GUEST = "tests/kernels/guest"
LOAD = [f"{GUEST}/test_load.py"]
REQUESTS = [
    "tests/live/test_requests.py",
    "tests/live/test_edges.py",
    "tests/live/test_network.py",
]
THREADS = ["tests/live/test_threads.py", "tests/live/test_locks.py"]

# Without cmpxchg16b, which is suspected of a double fault in the allocator seen once under QEMU 7.2.
# Kernels can do without it, but with 7.x no storage for BPF could be made then.
CPU = "max,cx16=off"
CPU_CX16 = "max"


class Row(NamedTuple):
    suite: str
    tests: list
    seconds: int  # until it counts as hanging
    environment: dict = {}
    cpu: str = CPU
    architecture: str = "amd64"


SYSCALL = {"WORKLOAD_EXPORTER_FLAGS": "--requests.backend=syscall"}
ROWS = {
    "bullseye": Row("bullseye", [f"{GUEST}/test_floor.py"], 120),
    "bookworm": Row("bookworm", [*LOAD, *REQUESTS, *THREADS], 900),
    "bookworm-arm64": Row(
        "bookworm", [*LOAD, *REQUESTS, *THREADS], 900, cpu="max", architecture="arm64"
    ),
    "trixie": Row("trixie", [*LOAD, "tests/bpf", *REQUESTS, *THREADS], 900),
    "trixie-syscall": Row("trixie", [*LOAD, *REQUESTS], 600, SYSCALL),
    "unstable": Row("unstable", [*LOAD, "tests/bpf", *REQUESTS, *THREADS], 900, cpu=CPU_CX16),
    "unstable-syscall": Row("unstable", [*LOAD, *REQUESTS], 600, SYSCALL, CPU_CX16),
}


class Outcome(NamedTuple):
    passed: int
    failures: list  # (test, what it said)
    seconds: float


def fetch(row):
    directory = KERNELS / f"{row.suite}-{row.architecture}"
    words = [machine.HERE / "fetch.sh", directory, row.suite, row.architecture]
    subprocess.run(words, check=True, timeout=600)
    return directory


def command(row):
    settings = {"PYTHONPATH": GUEST, "PYTHONDONTWRITEBYTECODE": "1", **row.environment}
    words = [f"{name}={value}" for name, value in settings.items()]
    words = ["env", *words, *PYTEST, "-p", "emulated", "--junitxml=/run/results/junit.xml"]
    return words + row.tests


def read_junit(path):
    """(number of tests that passed, [(name, text)] of all that did not, skipped ones included)"""
    passed, failures = 0, []
    for case in ElementTree.parse(path).iter("testcase"):
        bad = [child for child in case if child.tag in ("failure", "error", "skipped")]
        passed += not bad
        name = f"{case.get('classname')}::{case.get('name')}"
        failures += [(name, f"{child.tag}: {child.get('message') or ''}") for child in bad]
    return passed, failures


def run_row(name, row, results):
    directory = fetch(row)
    release = (directory / "release").read_text().strip()
    print(f"== {name}: Linux {release}", flush=True)
    with (results.parent / f"{name}.console").open("w") as console:

        def say(line):
            console.write(line + "\n")
            console.flush()
            if SHOWN.search(line):
                print(f"{name}  {line}", flush=True)

        return machine.run(directory, command(row), results, row.seconds, say, row.cpu)


def check_row(name, row):
    results = RESULTS / name
    shutil.rmtree(results, ignore_errors=True)
    began = time.monotonic()
    passed, failures = 0, []
    try:
        status = run_row(name, row, results)
        passed, failures = read_junit(results / "junit.xml")
        if status and not failures:
            failures.append(("pytest", f"ended with {status}"))
        if not passed and not failures:
            failures.append(("pytest", "ran no test"))
    except (machine.MachineError, OSError, subprocess.SubprocessError) as error:
        failures.append(("machine", str(error)))
    except ElementTree.ParseError as error:
        failures.append(("results", str(error)))
    measured = results / "verifier.txt"
    if measured.exists():
        failures += [("verifier", text) for text in verifier.check(name, measured)]
    return Outcome(passed, failures, time.monotonic() - began)


def main(names):
    unknown = set(names) - set(ROWS)
    if unknown:
        sys.exit(f"no such kernel: {', '.join(sorted(unknown))}; there are {', '.join(ROWS)}")
    RESULTS.mkdir(parents=True, exist_ok=True)
    outcomes = {name: check_row(name, ROWS[name]) for name in names or ROWS}
    print()
    for name, outcome in outcomes.items():
        for test, text in outcome.failures:
            print(f"{name}  FAILED {test}: {text.splitlines()[0] if text else ''}")
    for name, outcome in outcomes.items():
        print(
            f"{name}: {outcome.passed} passed, {len(outcome.failures)} not,"
            f" {outcome.seconds:.0f} s; console in {RESULTS / name}.console"
        )
    return any(outcome.failures for outcome in outcomes.values())


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # machines end with it
    os.chdir(machine.ROOT)
    sys.exit(main(sys.argv[1:]))
