#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Tests that compare times with other clocks, one after the other: run.py NAME PYTEST_ARGUMENT...

What fails while the hypervisor or other processes took the CPU is inconclusive, and is tried again
once the machine is quiet. Prints what was measured, test by test, and ends with 1 if something
failed on a quiet machine. What stays inconclusive is said, and is no failure.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(HERE.parent / "live")]

import disturbance  # noqa: E402

RESULTS = ROOT / "build" / "times"
ROUNDS = 5
QUIET_SECONDS = 2
PATIENCE_SECONDS = 60


def run(name, arguments):
    """{test: what became of it} of one run of pytest"""
    report = RESULTS / f"{name}.json"
    report.unlink(missing_ok=True)
    path = f"{HERE}:{HERE.parent / 'live'}"
    words = [sys.executable, "-m", "pytest", "-qq", "-o", f"cache_dir={ROOT}/build/pytest"]
    words += ["-p", "plugin", f"--times-report={report}", *arguments]
    ended = subprocess.run(
        words, env={**os.environ, "PYTHONPATH": path, "WORKLOAD_TEST_TIMES": "1"}, check=False
    )
    if ended.returncode not in (0, 1):
        sys.exit(ended.returncode)
    return json.loads(report.read_text())


def wait_for_quiet():
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        watch = disturbance.Watch()
        time.sleep(QUIET_SECONDS)
        if watch.disturbance().is_clean:
            return
    print("times: the machine is still busy", flush=True)


def inconclusive(results):
    return [test for test, result in results.items() if result["outcome"] == "inconclusive"]


def show(name, results):
    print(f"\n{name}: the farthest comparison of each test, as a share of what is allowed")
    for test, result in results.items():
        share = "" if result["share"] is None else f"{result['share']:.2f}"
        tries = f" at try {result['tries']}" if result["tries"] > 1 else ""
        print(f"  {share:>5}  {result['outcome']}{tries}  {test.split('/')[-1]}  {result['farthest']}")
        if result["outcome"] != "passed" or result["tries"] > 1:
            print(f"         {result['disturbance']}")


def main(name, *arguments):
    RESULTS.mkdir(parents=True, exist_ok=True)
    results = {}
    left = ["-m", "times or bounds", *arguments]
    for number in range(1, ROUNDS + 1):
        for test, result in run(name, left).items():
            results[test] = {**result, "tries": number}
        left = [f"{ROOT}/tests/{test}" for test in inconclusive(results)]
        if not left:
            break
        if number < ROUNDS:
            print(f"times: {len(left)} inconclusive: once more on a quiet machine", flush=True)
            wait_for_quiet()
    show(name, results)
    outcomes = [result["outcome"] for result in results.values()]
    counts = [f"{outcomes.count(kind)} {kind}" for kind in ("passed", "failed", "inconclusive")]
    print(f"{name}: {', '.join(counts)}")
    return not results or "failed" in outcomes


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
