# SPDX-License-Identifier: Apache-2.0
"""The live tests' fixtures, an exporter under the unit's own limits, and the figures of each attack."""

import importlib.util
import sys
from pathlib import Path

import pytest

sys.dont_write_bytecode = True
LIVE = Path(__file__).resolve().parents[1] / "live"
sys.path.insert(0, str(LIVE))
_spec = importlib.util.spec_from_file_location("live_fixtures", LIVE / "conftest.py")
_live = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_live)
connect = _live.connect
exporters = _live.exporters
exporters_for_module = _live.exporters_for_module
scratch = _live.scratch
start = _live.start
start_for_module = _live.start_for_module

from limits import MemoryLimit  # noqa: E402

_FIGURES = []


@pytest.fixture
def figures(request):
    """figures(name=value, ...) states what an attack did; all of it is shown at the end."""

    def state(**values):
        said = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in values.items())
        _FIGURES.append(f"{request.node.name}: {said}")

    return state


@pytest.fixture
def memory_limit():
    """A memory cgroup with the unit's MemoryMax=, for the `launcher` of an exporter."""
    with MemoryLimit() as limit:
        yield limit


def pytest_terminal_summary(terminalreporter):
    for line in _FIGURES:
        terminalreporter.write_line(line)
