# SPDX-License-Identifier: Apache-2.0
"""
What a failed test leaves, to find the reason: a folder of its own below build/failed with the failure
and all that was printed, logs and last pages of the exporters that ran, logs of the servers,
versions, and the seed of names and ports (WORKLOAD_TEST_SEED=... repeats them).
"""

import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FAILED = Path(os.environ.get("WORKLOAD_TEST_FAILED", ROOT / "build" / "failed"))
# Tests that run side by side (pytest-xdist) inherit it, and draw from it apart.
SEED = os.environ.setdefault("WORKLOAD_TEST_SEED", str(random.randrange(1 << 32)))
random.seed(f"{SEED} {os.environ.get('PYTEST_XDIST_WORKER', '')}")
LOGS_MAX = 10
VERSIONS = {
    "kernel": ["uname", "-a"],
    "sources": ["git", "-C", ROOT, "describe", "--tags", "--always", "--dirty"],
    "exporter": [ROOT / "build" / "workload_exporter", "--version"],
    "said by the kernel last": ["sh", "-c", "dmesg | tail -n 30"],
    "packages": ["dpkg-query", "-W"],
}


def _output(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return (done.stdout + done.stderr).strip()


def _versions(nodeid):
    parts = [f"test: {nodeid}", f"WORKLOAD_TEST_SEED={SEED}"]
    flags = os.environ.get("WORKLOAD_EXPORTER_FLAGS")
    parts += [f"WORKLOAD_EXPORTER_FLAGS={flags}"] if flags else []
    return "\n".join(parts + [f"\n{name}:\n{_output(words)}" for name, words in VERSIONS.items()])


def _exporters():
    """All that the tests of this process have started."""
    module = sys.modules.get("exporter")
    return sorted(module.Exporter.started, key=lambda each: each.pid) if module else []


def _server_logs(config):
    """The newest below pytest's own directory, where servers have theirs."""
    factory = getattr(config, "_tmp_path_factory", None)
    found = list(factory.getbasetemp().rglob("*.log")) if factory else []
    return sorted(found, key=lambda path: path.stat().st_mtime)[-LOGS_MAX:]


def _leave(item, report):
    folder = FAILED / re.sub(r"[^\w.-]+", "_", item.nodeid)[-120:]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    sections = "".join(f"\n--- {title}\n{text}" for title, text in report.sections)
    (folder / "failure.txt").write_text(f"{report.longreprtext}\n{sections}\n")
    (folder / "versions.txt").write_text(_versions(item.nodeid))
    for exporter in _exporters():
        log = "\n".join(line for line in exporter.log if line is not None)
        words = " ".join(map(str, exporter.process.args))
        (folder / f"exporter-{exporter.pid}.log").write_text(f"{words}\n{log}\n")
        (folder / f"exporter-{exporter.pid}.page").write_text(exporter.last_page)
    for log in _server_logs(item.config):
        shutil.copy(log, folder / f"server-{log.parent.name}-{log.name}")
    return folder


LOST = re.compile(r'^workload_exporter_dropped_total\{reason="(\w+)"\} ([1-9]\S*)$', re.MULTILINE)


def _losses():
    """What each exporter said last that it lost, for a reader who has only the log of the suite."""
    for exporter in _exporters():
        lost = LOST.findall(exporter.last_page)
        yield f"\nlost by exporter {exporter.pid}: {dict(lost)}"


def pytest_configure(config):
    """What tests start keeps nothing of itself beside what is kept of the tests."""
    if not getattr(config.option, "numprocesses", None):
        os.environ.pop("PYTHONPYCACHEPREFIX", None)


def _shares(item):
    """Does the test share what its file starts once?"""
    fixtures = item._fixtureinfo.name2fixturedefs.values()  # no public way to ask
    return any(each[-1].scope == "module" for each in fixtures)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """
    Side by side (pytest-xdist) each test goes where there is room, but those that share stay
    together. What begins late and takes long would end alone: what stays together goes first, with
    the longest of the others.
    """
    if not getattr(config.option, "loadgroup", False):
        return
    for item in items:
        if _shares(item) and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
    first = ("xdist_group", "long")
    items.sort(key=lambda item: not any(map(item.get_closest_marker, first)))


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_makereport(item):
    report = (yield).get_result()
    if report.failed:
        try:
            folder = _leave(item, report)
        except OSError as error:
            folder = f"nothing: {error}"
        report.sections.append(("evidence", "".join((str(folder), *_losses()))))


def pytest_report_header():
    return f"WORKLOAD_TEST_SEED={SEED}"
