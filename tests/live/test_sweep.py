# SPDX-License-Identifier: Apache-2.0
"""Sweeps over many connections: each is met once, and others can run meanwhile."""

import os
import time

import pytest

from services import Load, Service

# One crowd at a time: each takes a part of the machine.
pytestmark = pytest.mark.xdist_group("crowds")

CONNECTIONS = 6000  # more than a step of a sweep meets, see bpf/requests/sweeps.h
SWEEP_SECONDS = 1.05  # scrapes that are further apart walk over all sockets
STALL_MAX_NS = 2e6


def open_connections(endpoint):
    return endpoint.get("workload_connections")


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
    # The place of one that goes may be another one's while the sweep is there.
    assert all(CONNECTIONS - 1 <= count <= CONNECTIONS for count in seen), seen
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
