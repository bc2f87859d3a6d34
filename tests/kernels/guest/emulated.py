# SPDX-License-Identifier: Apache-2.0
"""
pytest plugin for emulated machines: the live tests as they are, with wider tolerances of times and
more patience with commands. What the tests themselves make longer or fewer is multiplied with
SLOWER (tests/live/exporter.py).

An instruction costs 10 to 30 times what it does elsewhere, unevenly, and the emulator itself waits
for a CPU. Two clocks that are read a few instructions apart differ by that. What is counted is
compared without pytest.approx and stays as exact as elsewhere.
"""

import platform
import shutil
import subprocess

import pytest

FACTOR = 15
MOST = 0.3
PATIENCE = 5
# What cannot be right in an emulated machine, and why.
UNFIT = {
    "test_time_in_fsync": "its files are in memory",
    "test_a_worker_that_waits_for_another_service": "the worker's own CPU time is no small part",
    "test_a_sweep_keeps_nobody_from_its_cpu": "the emulator itself does, for 5 to 20 ms",
}

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


# What the files of the other architecture have not, and how tests that need it are known.
PROGRAMS = {
    "java": ("java", "quiet"),
    "go": ("tasks",),
    "mariadbd": ("mariadb", "command_that_has_no_answer"),
    "postgres": ("postgresql",),
    "h2load": ("http_2",),
    "php-fpm8.2": ("php",),
}


SOCKETS_SINCE = (6, 3)  # the backend that observes requests at their sockets


def _release():
    return tuple(int(word) for word in platform.release().split(".")[:2])


def _is_unfit(item):
    names = (item.name, *item.fixturenames)
    unwanted = [*UNFIT, *(() if _release() >= SOCKETS_SINCE else ("[socket]",))]
    for program, words in PROGRAMS.items():
        unwanted += () if shutil.which(program) else words
    return any(word in name for word in unwanted for name in names)


def pytest_collection_modifyitems(config, items):
    unfit = [item for item in items if _is_unfit(item)]
    config.hook.pytest_deselected(items=unfit)
    items[:] = [item for item in items if item not in unfit]
