# SPDX-License-Identifier: Apache-2.0
"""Sweeps over many connections: each is met once, and others can run meanwhile."""

import os
import re
import time
from pathlib import Path

import pytest

from services import Load, Service

# One crowd at a time: it is counted in which steps all connections of the machine are gone through.
pytestmark = pytest.mark.xdist_group("crowds")

CONNECTIONS = 6000
STEP = 512  # bpf/lib/walks.h
SWEEP_SECONDS = 1.05  # scrapes that are further apart walk over all sockets
STALL_MAX_NS = 2e6


def open_connections(endpoint):
    return endpoint.get("workload_connections")


def reads(pid):
    """Calls of read(2) that the process has made."""
    return int(re.search(r"^syscr: (\d+)$", Path(f"/proc/{pid}/io").read_text(), re.M)[1])


def reads_of_a_sweep(exporter):
    """The least of some, as the exporter also reads for what comes and goes beside it."""
    seen = []
    exporter.scrape()
    for _ in range(4):
        time.sleep(SWEEP_SECONDS)
        before = reads(exporter.pid)
        exporter.scrape()
        seen.append(reads(exporter.pid) - before)
    return min(seen)


def test_a_sweep_of_many_connections_is_made_in_steps(exporter, start):
    before = reads_of_a_sweep(exporter)
    crowd = start(Service, "crowd", connections=CONNECTIONS)
    exporter.wait_for_endpoint(crowd.port, open_connections, CONNECTIONS)
    # The last part of each list needs no step of its own.
    assert reads_of_a_sweep(exporter) - before >= CONNECTIONS / STEP / 2


def test_connections_that_come_and_go_do_not_hide_others(exporter, start):
    crowd = start(Service, "crowd", connections=CONNECTIONS)
    server = start(Service, "pool_server", workers=2)
    exporter.wait_for_endpoint(crowd.port, open_connections, CONNECTIONS)
    load = start(Load, server.port, clients=2, seconds=4)
    seen = []
    for _ in range(3):
        time.sleep(SWEEP_SECONDS)
        seen.append(open_connections(exporter.endpoint(crowd.port)))
    assert load.finish()["errors"] == 0
    # One that goes while the sweep pauses in its list may hide one of this sweep.
    assert all(CONNECTIONS * 0.99 <= count <= CONNECTIONS for count in seen), seen
    exporter.wait_for_endpoint(crowd.port, open_connections, CONNECTIONS)


@pytest.mark.times
def test_a_sweep_keeps_nobody_from_its_cpu(exporters, start):
    """The shortest of some, for a hypervisor and others do that as well, but not every time."""
    crowd = start(Service, "crowd", connections=2 * CONNECTIONS)
    exporter = exporters()
    exporter.wait_for_endpoint(crowd.port, open_connections, 2 * CONNECTIONS)
    cpu = min(os.sched_getaffinity(exporter.pid))
    os.sched_setaffinity(exporter.pid, {cpu})
    watch = start(Service, "stall", cpu=cpu)
    stalls = []
    for _ in range(5):
        time.sleep(SWEEP_SECONDS)
        watch.ask("reset")
        exporter.scrape()
        stalls.append(watch.ask("worst")["worst_ns"])
    assert min(stalls) < STALL_MAX_NS, stalls
