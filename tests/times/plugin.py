# SPDX-License-Identifier: Apache-2.0
"""
pytest plugin of `make test-times`. It compares what fails with what the machine did meanwhile: a
test is clean if the hypervisor took nearly no time from it and its fixtures, and processes that are
not of the tests took nearly none. A failure that is not clean says nothing about the exporter: it
is `inconclusive`, and no failure to pytest.

Every comparison by pytest.approx is kept as well, so that a run tells how far off the times were
that are right. All of it is written to the file that --times-report names, by test.
"""

import json
from pathlib import Path

import pytest

import disturbance

_approx = pytest.approx
_Scalar = type(_approx(1.0))
_comparisons = []  # of the test that runs: (seen, expected, tolerance)


class _Kept(_Scalar):
    def __eq__(self, seen):
        _comparisons.append((seen, self.expected, self.tolerance))
        return super().__eq__(seen)

    __hash__ = None


def approx(*arguments, **options):
    made = _approx(*arguments, **options)
    if type(made) is _Scalar:  # pylint: disable=unidiomatic-typecheck
        made.__class__ = _Kept
    return made


pytest.approx = approx


def _farthest():
    """The comparison that came nearest to failing, or failed: (share of its tolerance, text)."""
    shares = [
        (abs(seen - expected) / tolerance, f"{seen:.4g} for {expected:.4g} ± {tolerance:.2g}")
        for seen, expected, tolerance in _comparisons
        if tolerance > 0 and isinstance(seen, (int, float))
    ]
    return max(shares, default=(None, ""))


class Plugin:
    def __init__(self, path):
        self.path = path
        self.fixtures = {}  # of modules and the like: what was going on during their setup
        self.results = {}

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef):
        watch = disturbance.Watch()
        yield
        self.fixtures[fixturedef] = watch.disturbance()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item):
        _comparisons.clear()
        item.watch = disturbance.Watch()
        yield

    def _disturbance(self, item):
        """During the test, or during the setup of what it uses, which may be long ago."""
        used = item._fixtureinfo.name2fixturedefs.values()  # pylint: disable=protected-access
        before = [self.fixtures[each[-1]] for each in used if each[-1] in self.fixtures]
        return next((each for each in before if not each.is_clean), item.watch.disturbance())

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item):
        report = (yield).get_result()
        disturbed = self._disturbance(item)
        if report.failed and not disturbed.is_clean:
            report.outcome = "inconclusive"
            report.longrepr = f"{disturbed}\n{report.longreprtext}"
        if report.when != "call" and report.passed:
            return
        share, text = _farthest()
        self.results.setdefault(item.nodeid, {"outcome": "passed"})
        self.results[item.nodeid].update(
            seconds=report.duration, disturbance=str(disturbed), share=share, farthest=text
        )
        if not report.passed:
            self.results[item.nodeid]["outcome"] = report.outcome

    def pytest_report_teststatus(self, report):
        if report.outcome == "inconclusive":
            return "inconclusive", "I", ("INCONCLUSIVE", {"yellow": True})
        return None

    def pytest_terminal_summary(self, terminalreporter):
        for report in terminalreporter.stats.get("inconclusive", ()):
            terminalreporter.write_line(f"INCONCLUSIVE {report.nodeid}: {report.longrepr.splitlines()[0]}")

    def pytest_sessionfinish(self):
        Path(self.path).write_text(json.dumps(self.results))


def pytest_addoption(parser):
    parser.addoption("--times-report", help="file for what was measured, as JSON")


def pytest_configure(config):
    path = config.getoption("--times-report")
    if path:
        config.pluginmanager.register(Plugin(path))
