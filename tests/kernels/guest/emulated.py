# SPDX-License-Identifier: Apache-2.0
"""
pytest plugin for emulated machines: the live tests as they are, with wider tolerances of times and
more patience.

An instruction costs 10 to 30 times what it does elsewhere, unevenly, and the emulator itself waits
for a CPU. Two clocks that are read a few instructions apart differ by that, and a thread runs
longer than EPISODE_GAP_NS between two waits that are one elsewhere. What is counted is compared
with == and stays exact.
"""

import os
import re
import shutil
import subprocess

import pytest

FACTOR = 15
MOST = 0.3
PATIENCE = 5
# What cannot be right in an emulated machine, and why.
UNFIT = {
    "test_time_in_fsync_is_disk": "its files are in memory",
    "test_a_worker_that_waits_for_another_service": "the worker's own CPU time is no small part",
    "sleeping-rwlock": "more than EPISODE_GAP_NS between the waits for its two words",
}
# Tests of threads that look at requests too.
OF_REQUESTS = (
    "test_a_java_pool_serves",
    "test_cpu_time_of_a_service",
)

_approx = pytest.approx
_run = subprocess.run


def _wider(tolerance):
    return tolerance and min(tolerance * FACTOR, max(tolerance, MOST))


def approx(expected, rel=None, abs=None, **options):
    return _approx(expected, rel=_wider(rel), abs=_wider(abs), **options)


def run(*arguments, timeout=None, **options):
    return _run(*arguments, timeout=timeout and timeout * PATIENCE, **options)


pytest.approx = approx
subprocess.run = run


def _listener(port):
    """The executable's name of who listens on @port: what a workload outside of units is called."""
    text = subprocess.check_output(["ss", "-Hltnp", f"sport = :{port}"], text=True)
    return os.path.basename(os.readlink(f"/proc/{re.search(r'pid=([0-9]+)', text)[1]}/exe"))


def _workload_without_requests(exporter, port):
    name = _listener(port)
    exporter.wait_until(lambda scrape: scrape.rows("workload_processes", workload=name))
    return name


def _is_unfit(item):
    names = list(UNFIT)
    if "requests" not in os.environ.get("WORKLOAD_TEST_FEATURES", "requests"):
        names += OF_REQUESTS
    if any(name in item.name for name in names):
        return True
    wants_java = "java" in item.name or "quiet" in item.fixturenames
    return wants_java and not shutil.which("java")  # the other architecture's files have none


def pytest_collection_modifyitems(config, items):
    unfit = [item for item in items if _is_unfit(item)]
    config.hook.pytest_deselected(items=unfit)
    items[:] = [item for item in items if item not in unfit]


def pytest_sessionstart(session):
    """Where requests are off no series has a port: a workload is found by its process then."""
    import exporter  # on the path since the conftest of the live tests

    exporter.START_SECONDS *= PATIENCE
    kind = exporter.Exporter
    for wait in (kind.wait_until, kind.wait_for_equal, kind.wait_for_endpoint):
        wait.__defaults__ = (exporter.WAIT_SECONDS * PATIENCE,)
    by_port = kind.workload_of

    def workload_of(self, port):
        if any("requests off" in line for line in self.log if line):
            return _workload_without_requests(self, port)
        return by_port(self, port)

    kind.workload_of = workload_of
