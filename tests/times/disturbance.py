# SPDX-License-Identifier: Apache-2.0
"""What else the machine did while something was measured: the hypervisor's part, and others' CPU."""

import os
import time
from pathlib import Path
from typing import NamedTuple

from hypervisor import stolen_seconds

TICK = 1 / os.sysconf("SC_CLK_TCK")
# Of the time that passed, on one CPU. The kernel tells both in ticks: two may be chance.
STOLEN_MAX, OTHERS_MAX, CHANCE_SECONDS = 0.01, 0.05, 2.5 * TICK
# Below this process everything is of the tests: daemons too (tests/guard.py).
KTHREADD = 2
GUARD = int(os.environ.get("WORKLOAD_TEST_GUARD", os.getpid()))


class Disturbance(NamedTuple):
    """Seconds of CPU in @elapsed seconds; @excess: beyond what is allowed."""

    excess: float
    stolen: float
    others: float
    elapsed: float

    @property
    def is_clean(self):
        return self.excess <= 0

    def __str__(self):
        return (
            f"in {self.elapsed:.1f} s the hypervisor took {self.stolen:.2f} s of CPU,"
            f" other processes {self.others:.2f} s"
        )


def _processes():
    """{pid: (parent, ticks of CPU that it and its ended children took)}"""
    found = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                fields = (path / "stat").read_text().rsplit(") ", 1)[1].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            found[int(path.name)] = (int(fields[1]), sum(map(int, fields[11:15])))
    return found


def _others_seconds():
    """CPU of what is no thread of the kernel and not of the tests, so far."""
    processes = _processes()

    def is_other(pid):
        while pid in processes:
            if pid in (GUARD, KTHREADD):
                return False
            pid = processes[pid][0]
        return True

    return TICK * sum(ticks for pid, (_, ticks) in processes.items() if is_other(pid))


class Watch:
    """From its making on."""

    def __init__(self):
        self._began, self._before = time.monotonic(), (stolen_seconds(), _others_seconds())

    def disturbance(self):
        elapsed = time.monotonic() - self._began
        now = (stolen_seconds(), _others_seconds())
        stolen, others = (after - before for before, after in zip(self._before, now))
        excess = max(
            stolen - max(STOLEN_MAX * elapsed, CHANCE_SECONDS),
            others - max(OTHERS_MAX * elapsed, CHANCE_SECONDS),
        )
        return Disturbance(excess, stolen, others, elapsed)
