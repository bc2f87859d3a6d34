#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The tests on a matrix of kernels: each row boots the newest kernel of a Debian suite in an emulated
machine and runs tests in it, two rows side by side. What fails is run once more by itself (the
whole row if its machine crashed or hung), and both outcomes are shown. Prints pytest's lines row
by row, leaves JUnit files and whole consoles under build/kernels/results, and ends with 1 if
anything failed twice or was skipped.

run.py [--load] [ROW...]; with --load only that the programs load and count one of each thing, which
takes minutes in place of half an hour; with UPDATE=1 only what writes verifier.txt anew.
"""

import collections
import concurrent.futures
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import NamedTuple

import machine
import verifier

KERNELS = machine.ROOT / "build" / "kernels"
RESULTS = KERNELS / "results"
PYTEST = "/usr/bin/python3 -m pytest -v --tb=short --color=no -p no:cacheprovider".split()
SHOWN = re.compile(
    r"(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\b.*%\]|^init: |Kernel panic|Oops|once more"
)
SIDE_BY_SIDE = 2
LAST_LINES = 20  # of the console of a machine that crashed
ENDS = (signal.SIGINT, signal.SIGTERM)
FETCH_SECONDS = 900
LOAD_SECONDS = 180  # as Row.seconds, of a --load, which takes 25 to 35

GUEST = "tests/kernels/guest"
LOAD = [f"{GUEST}/test_load.py"]
ONE_OF_EACH = ["tests/live/test_one_of_each.py"]
REQUESTS = [
    "tests/live/test_requests.py",
    "tests/live/test_edges.py",
    "tests/live/test_handover.py",
    "tests/live/test_network.py",
]
THREADS = [f"tests/live/test_{name}.py" for name in ("threads", "locks", "kernel_workers")]
# Kinds of conversation, of waiting, of roles and of sockets.
KINDS = [
    f"tests/live/test_{name}.py"
    for name in (
        *("waits", "progress", "turns", "goodbyes", "fast_open"),
        *("little", "roles", "overflows", "identity", "sweep"),
    )
]
MUTEXES = [
    f"tests/live/test_mutexes.py::{test}"
    for test in (
        "test_waits_are_what_threads_measure[mutex-locker]",
        "test_free_mutexes_are_counted_and_never_waited_for",
    )
]
# Those that need no `go tool pprof`, which the files of the other architecture have not, and whose
# stacks do not begin in its vdso, which has no frame information.
FOLDED = [
    f"tests/live/test_{test}"
    for test in (
        "profiles_faults.py::test_memory_that_a_system_call_touches_has_that_innermost",
        "lock_sites.py::test_each_site_is_shown_and_all_of_them_have_what_the_exact_metric_has[waiter]",
        "holders.py",
    )
]
PROFILES = [
    *FOLDED,
    "tests/live/test_profiles.py::test_functions_have_the_shares_of_time_that_they_have_measured[burner]",
    "tests/live/test_profiles_waits.py::test_each_place_has_its_waits_and_their_time_and_all_of_them_the"
    "_time_of_the_metrics[waiter]",
    "tests/live/test_profiles_faults.py::test_each_place_has_its_share_and_all_of_them_what_the_kernel"
    "_counts",
]
VERIFIER = ["tests/bpf/test_verifier.py::test_verifier_accepts_every_program"]

EVERYTHING = [*REQUESTS, *THREADS, *MUTEXES, *KINDS]

# Without cmpxchg16b, which is suspected of a double fault in the allocator seen once under QEMU 7.2.
# Kernels can do without it, but with 7.x no storage for BPF could be made then.
CPU = "max,cx16=off"
CPU_CX16 = "max"
CPU_ARM64 = "neoverse-n1"  # without pointer authentication, which takes most of the time emulated


class Row(NamedTuple):
    suite: str
    tests: list
    seconds: int  # until it counts as hanging
    environment: dict = {}
    cpu: str = CPU
    architecture: str = "amd64"


SYSCALL = {"WORKLOAD_EXPORTER_FLAGS": "--requests.backend=syscall"}
# The longest first: the last ones shall not run alone.
ROWS = {
    "bookworm-arm64": Row(
        "bookworm", [*LOAD, *EVERYTHING, *FOLDED], 5400, {}, CPU_ARM64, architecture="arm64"
    ),
    "bookworm": Row("bookworm", [*LOAD, *EVERYTHING, *PROFILES], 5400),
    "unstable": Row("unstable", [*LOAD, *VERIFIER, *EVERYTHING, *PROFILES], 5400, {}, CPU_CX16),
    "trixie": Row("trixie", [*LOAD, *VERIFIER, *EVERYTHING, *PROFILES], 5400),
    "unstable-syscall": Row("unstable", [*LOAD, *REQUESTS], 1500, SYSCALL, CPU_CX16),
    "trixie-syscall": Row("trixie", [*LOAD, *REQUESTS], 1500, SYSCALL),
    "bullseye": Row("bullseye", [f"{GUEST}/test_floor.py"], 120),
}


class Failure(NamedTuple):
    test: str  # pytest's name of it; "" if the row as a whole failed
    text: str


class Outcome(NamedTuple):
    passed: int
    failures: list
    seconds: float


# --- one machine ----------------------------------------------------------------------------------


def kernel_directory(row):
    return KERNELS / f"{row.suite}-{row.architecture}"


def fetch_all(rows):
    for directory, row in {kernel_directory(row): row for row in rows}.items():
        words = [machine.HERE / "fetch.sh", directory, row.suite, row.architecture]
        try:
            subprocess.run(words, check=True, timeout=FETCH_SECONDS)
        except subprocess.CalledProcessError as error:
            sys.exit(error.returncode)  # it has said why


def command(row, tests):
    settings = {
        "PYTHONPATH": GUEST,
        "PYTHONDONTWRITEBYTECODE": "1",
        "WORKLOAD_TEST_EMULATED": "1",
        "WORKLOAD_TEST_FAILED": "/run/results/failed",
        **row.environment,
    }
    words = [f"{name}={value}" for name, value in settings.items()]
    words = ["env", *words, *PYTEST, "-p", "emulated", "--junitxml=/run/results/junit.xml"]
    return words + tests


def limit(row, tests):
    """How long @tests may take, in seconds: a machine that hangs must not cost what the matrix may."""
    return row.seconds if set(tests) - {*LOAD, *ONE_OF_EACH} else min(row.seconds, LOAD_SECONDS)


def read_junit(path):
    """(number of tests that passed, failures of all that did not, skipped ones included)"""
    passed, failures = 0, []
    for case in ElementTree.parse(path).iter("testcase"):
        bad = [child for child in case if child.tag in ("failure", "error", "skipped")]
        passed += not bad
        module = case.get("classname").replace(".", "/")  # none where a file cannot be read
        # pytest's root is where its pytest.ini is.
        test = f"tests/{module}.py::{case.get('name')}" if module else ""
        failures += [Failure(test, f"{child.tag}: {child.get('message') or ''}") for child in bad]
    return passed, failures


def boot(name, row, tests, results):
    """The status of the tests; MachineError has the console's last lines in its text."""
    release = (kernel_directory(row) / "release").read_text().strip()
    print(f"== {name}: Linux {release}", flush=True)
    last = collections.deque(maxlen=LAST_LINES)
    with results.with_suffix(".console").open("w") as console:

        def say(line):
            last.append(line)
            console.write(line + "\n")
            console.flush()
            if SHOWN.search(line):
                print(f"{name}  {line}", flush=True)

        try:
            return machine.run(
                kernel_directory(row), command(row, tests), results, limit(row, tests), say, row.cpu
            )
        except machine.MachineError as error:
            lines = "".join(f"\n    {line}" for line in last)
            raise machine.MachineError(f"{error}; its console ended with{lines}") from error


def check(name, tests, results):
    """Runs @tests on the row's kernel."""
    began = time.monotonic()
    shutil.rmtree(results, ignore_errors=True)
    passed, failures = 0, []
    try:
        status = boot(name, ROWS[name], tests, results)
        passed, failures = read_junit(results / "junit.xml")
        if status and not failures:
            failures.append(Failure("", f"pytest ended with {status}"))
        if not passed and not failures:
            failures.append(Failure("", "no test was run"))
    except (machine.MachineError, OSError, subprocess.SubprocessError) as error:
        failures.append(Failure("", str(error)))
    except ElementTree.ParseError as error:
        failures.append(Failure("", f"results: {error}"))
    return Outcome(passed, failures, time.monotonic() - began)


# --- the matrix -----------------------------------------------------------------------------------


class Matrix:
    """Machines in processes of their own, so that each ends cleanly when this one is told to."""

    def __init__(self):
        self.pool = concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE)
        self.children = []

    def stop(self, *_):
        """Ends all machines, and shows where those were that had not ended."""
        self.pool.shutdown(wait=False, cancel_futures=True)
        for child in self.children:
            child.terminate()
        for console in sorted(RESULTS.glob("*.console")):
            if not console.with_suffix(".json").exists():
                print(f"{console.stem} was still running; its console ended with")
                print("\n".join(f"    {line}" for line in console.read_text().splitlines()[-LAST_LINES:]))
        sys.exit(1)

    def _check_apart(self, job):
        name, tests, results = job
        words = [sys.executable, "-B", __file__, "--row", name, str(results), *tests]
        child = subprocess.Popen(words, stdin=subprocess.DEVNULL)
        self.children.append(child)
        child.wait()
        try:
            passed, failures, seconds = json.loads(results.with_suffix(".json").read_text())
        except (OSError, ValueError) as error:
            return Outcome(0, [Failure("", f"ended with {child.returncode}: {error}")], 0)
        return Outcome(passed, [Failure(*failure) for failure in failures], seconds)

    def check_all(self, jobs):
        """{row: its outcome} of (row, tests, results)"""
        for _, _, results in jobs:
            results.with_suffix(".json").unlink(missing_ok=True)
        return dict(zip((job[0] for job in jobs), self.pool.map(self._check_apart, jobs)))

    def check_once_more(self, name, tests, outcome):
        """What failed; and again if now the machine crashes, which emulated ones do at times."""
        tests = tests_once_more(tests, outcome)
        for results in second_results(name):
            print(f"== {name}: once more, what failed", flush=True)
            outcome = self.check_all([(name, tests, results)])[name]
            if not has_crashed(outcome):
                break
        return outcome


def second_results(name):
    return [RESULTS / f"{name}-again", RESULTS / f"{name}-again-2"]


def check_row(name, results, *tests):
    """What a process of its own does."""
    results = Path(results)
    outcome = check(name, list(tests), results)
    results.with_suffix(".json").write_text(json.dumps(outcome))


def has_crashed(outcome):
    """Whether the row as a whole has failed: the machine, or what reads its results."""
    return any(failure.test == "" for failure in outcome.failures)


def tests_once_more(tests, outcome):
    """What failed, or all of @tests where it is not known."""
    return tests if has_crashed(outcome) else sorted({failure.test for failure in outcome.failures})


def tests_of(name, load):
    tests = ROWS[name].tests
    if verifier.UPDATE:
        return [test for test in tests if test in LOAD]
    return [*LOAD, *ONE_OF_EACH] if load and LOAD[0] in tests else tests


def show(outcome):
    for test, text in outcome.failures:
        print(f"    {test or 'the row'}: {text}")


def verify(name):
    """Complaints about the sizes of programs, from whichever run has measured them."""
    for results in (RESULTS / name, *second_results(name)):
        if (results / "verifier.txt").exists():
            return verifier.check(name, results / "verifier.txt")
    return ["was not measured"] if set(LOAD) & set(ROWS[name].tests) else []


def report(name, first, again):
    """Prints what became of a row; returns whether it is fine."""
    complaints = verify(name)
    last = again or first
    seconds = first.seconds + (again.seconds if again else 0)
    print(f"{name}: {first.passed} passed, {len(first.failures)} failed, {seconds:.0f} s")
    show(first)
    if again:
        print(f"  once more, by itself: {again.passed} passed, {len(again.failures)} failed")
        show(again)
    for text in complaints:
        print(f"    verifier: {text}")
    return not last.failures and not complaints


def main(words):
    load = "--load" in words
    wanted = [word for word in words if word != "--load"] or list(ROWS)
    unknown = set(wanted) - set(ROWS)
    if unknown:
        sys.exit(f"no such kernel: {', '.join(sorted(unknown))}; there are {', '.join(ROWS)}")
    tests = {name: tests_of(name, load) for name in ROWS if name in wanted}
    tests = {name: chosen for name, chosen in tests.items() if chosen}
    shutil.rmtree(RESULTS, ignore_errors=True)
    RESULTS.mkdir(parents=True)
    matrix = Matrix()
    for number in ENDS:
        signal.signal(number, matrix.stop)
    fetch_all(ROWS[name] for name in tests)
    first = matrix.check_all([(name, tests[name], RESULTS / name) for name in tests])
    again = {}
    for name, outcome in first.items():
        # A count that is wrong under --load is wrong; a machine that crashed has counted nothing.
        if has_crashed(outcome) or (outcome.failures and not load):
            again[name] = matrix.check_once_more(name, tests[name], outcome)
    print()
    fine = [report(name, outcome, again.get(name)) for name, outcome in first.items()]
    print(f"consoles and test results are in {RESULTS}")
    return not all(fine)


if __name__ == "__main__":
    os.chdir(machine.ROOT)
    if sys.argv[1:2] == ["--row"]:
        for number in ENDS:
            signal.signal(number, lambda *_: sys.exit(1))  # the machine ends with it
        check_row(*sys.argv[2:])
    else:
        sys.exit(main(sys.argv[1:]))
