# SPDX-License-Identifier: Apache-2.0
"""All that the exporter has is loaded and attached by this kernel."""

from pathlib import Path

import pytest

import programs
from exporter import Exporter

RESULTS = Path("/run/results")
STATISTICS = Path("/proc/sys/kernel/bpf_stats_enabled")


@pytest.fixture(scope="module")
def exporter():
    with Exporter("--mutex.backend=uprobe", "--collector.profiles") as running:
        yield running


def probes(exporter):
    """{(feature, program): 1 if it is attached}"""
    rows = exporter.scrape().rows("workload_exporter_probe_attached")
    return {(labels["feature"], labels["probe"]): value for labels, value in rows}


def test_every_probe_is_attached(exporter):
    assert set(probes(exporter).values()) == {1}, exporter.log


def test_the_verifier_looked_at_every_program(exporter):
    """Each that the kernel has is listed: names of programs begin with that of their feature."""
    listed = probes(exporter)
    features = tuple({feature for feature, _ in listed})
    counts = programs.verified_instructions()
    ours = {name: count for name, count in counts.items() if name.startswith(features)}
    assert set(ours) == {program for _, program in listed}
    assert all(ours.values())
    lines = (f"{name} {count}\n" for name, count in sorted(ours.items()))
    (RESULTS / "verifier.txt").write_text("".join(lines))


def test_the_page_has_a_row_of_every_program_while_the_kernel_counts(exporter):
    """Linux 7 needs spares: more programs than anywhere else, and not one is left out."""
    STATISTICS.write_text("1")
    try:
        page = exporter.scrape()
    finally:
        STATISTICS.write_text("0")
    listed = sorted(program for _, program in probes(exporter))
    for name in ("run_seconds", "runs"):
        rows = page.rows(f"workload_exporter_bpf_{name}_total")
        assert sorted(labels["program"] for labels, _ in rows) == listed
