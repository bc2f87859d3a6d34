# SPDX-License-Identifier: Apache-2.0
"""What this kernel is known to allow is loaded and attached; what it lacks is said."""

import os
from pathlib import Path

import pytest

import programs
from exporter import Exporter

FEATURES = ("discovery", "requests", "threads", "mutex")
EXPECTED = os.environ.get("WORKLOAD_TEST_FEATURES", ",".join(FEATURES)).split(",")
RESULTS = Path("/run/results")


@pytest.fixture(scope="module")
def exporter():
    with Exporter("--mutex.backend=uprobe") as running:
        yield running


def probes(exporter):
    rows = exporter.scrape().rows("workload_exporter_probe_attached")
    return {(labels["feature"], labels["probe"]): value for labels, value in rows}


@pytest.mark.parametrize("feature", EXPECTED)
def test_every_probe_of_the_feature_is_attached(exporter, feature):
    attached = [value for (name, _), value in probes(exporter).items() if name == feature]
    assert attached and set(attached) == {1}, exporter.log


def test_every_feature_without_its_hooks_is_off_and_the_log_says_what_it_needs(exporter):
    for feature in set(FEATURES) - set(EXPECTED):
        attached = [value for (name, _), value in probes(exporter).items() if name == feature]
        assert set(attached) == {0}
        exporter.wait_for_log(rf"feature {feature} is off: .*Linux \d+\.\d+ or later")


def test_the_verifier_looked_at_every_program(exporter):
    counts = programs.verified_instructions()
    ours = {name: count for name, count in counts.items() if name.startswith(FEATURES)}
    attached = {probe for (_, probe), value in probes(exporter).items() if value == 1}
    assert set(ours) == attached
    assert all(ours.values())
    lines = (f"{name} {count}\n" for name, count in sorted(ours.items()))
    (RESULTS / "verifier.txt").write_text("".join(lines))
