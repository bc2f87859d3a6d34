# SPDX-License-Identifier: Apache-2.0
"""
How many sockets and threads have state is told by events. Where the kernel leaves some out, walks
over all of them put that right: their room is not lost for ever, and what is lost is counted.
"""

import os
import signal
from pathlib import Path

import pytest

from bpf_maps import bpftool, map_shown
from clients import exchange
from exporter import bound
from exposition import Endpoint
from services import Service

QUOTA_THREADS = 1
HELD_BY_CONNECTION = 2
ADDRESS = 0x1000  # of no socket
AHEAD = 1000  # places that others may take meanwhile
PLACE_AT = 32  # in the state of a socket
FIELDS = ["max", "taken", "given", "met", "excess"]
WORKERS = 20
MISSED = 1 << 24  # more than any machine that runs this has
STOP_SECONDS = 30
RECOUNT_SECONDS = bound(30, 60)  # it takes place every ten seconds, and two must agree


def inner_pid(exporter):
    """Of the exporter itself, where its launcher has forked."""
    pid = exporter.pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(children[0]) if Path(f"/proc/{pid}/comm").read_text() == "unshare\n" else pid


def map_of(exporter, name):
    return str(map_shown(exporter, name, inner_pid(exporter))["id"])


def place_of(exporter):
    """Where bpftool finds the quota of threads."""
    return ["id", map_of(exporter, "quotas"), "key", str(QUOTA_THREADS), "0", "0", "0"]


def quota_of(exporter):
    return bpftool("lookup", *place_of(exporter))["formatted"]["value"]


def events_missed(exporter, field):
    """As if so many events had not been told of: of threads that came, or that went."""
    value = quota_of(exporter)
    value[field] += MISSED
    data = b"".join(value[name].to_bytes(8, "little") for name in FIELDS)
    bpftool("update", *place_of(exporter), "value", *(str(byte) for byte in data))


def held(scrape):
    return scrape.sum("workload_exporter_map_entries", map="threads")


def words(number):
    return [str(byte) for byte in number.to_bytes(8, "little")]


def port_of(entry):
    return entry["formatted"]["value"]["port"]


@pytest.mark.parametrize("field", ["taken", "given"], ids=["ends-missed", "begins-missed"])
def test_threads_of_which_nobody_told_are_counted(exporter, start, field):
    start(Service, "pool_server", workers=WORKERS)
    exporter.wait_until(lambda s: WORKERS < held(s) < MISSED)
    events_missed(exporter, field)
    exporter.wait_until(lambda s: WORKERS < held(s) < MISSED, RECOUNT_SECONDS)


def test_what_is_left_of_a_socket_that_is_gone_is_cleared_and_counted(exporter, start, connect):
    """As if its end had not been seen: it has the state of a connection, and another address."""
    server = start(Service, "pool_server", workers=1)
    workload = exporter.workload_of(server.port)
    exchange(connect(server.port))
    exporter.wait_for_endpoint(server.port, Endpoint.gauges, (0, 0, 0, 1))
    before = exporter.ends_unseen()
    table = ["id", map_of(exporter, "sockets")]
    (state,) = (
        entry["value"]
        for entry in bpftool("dump", *table)
        if port_of(entry) == server.port and not int(entry["formatted"]["value"]["drops"])
        and entry["formatted"]["value"]["held"] == HELD_BY_CONNECTION
    )
    places = ["id", map_of(exporter, "socket_places"), "key"]
    # Place 0 has how many were ever taken: those beyond are not looked at, and it never falls.
    place = bpftool("lookup", *places, *words(0)[:4])["formatted"]["value"] + AHEAD
    own = place.to_bytes(4, "little")
    state = [*state[:PLACE_AT], *(hex(byte) for byte in own), *state[PLACE_AT + len(own) :]]
    bpftool("update", *table, "key", *words(ADDRESS), "value", *state)
    bpftool("update", *places, *words(place)[:4], "value", *words(ADDRESS))
    bpftool("update", *places, *words(0)[:4], "value", *words(place))
    lost = "workload_measurements_dropped_total"
    end = exporter.wait_until(lambda s: s.sum(lost, workload=workload, reason="end_unseen"))
    assert end.sum(lost, workload=workload, reason="end_unseen") == 1
    assert exporter.ends_unseen() > before
    assert all(entry["formatted"]["key"] != ADDRESS for entry in bpftool("dump", *table))
    exporter.wait_for_endpoint(server.port, Endpoint.gauges, (0, 0, 0, 1))


def test_threads_that_a_walk_does_not_see_are_kept(exporters, start):
    """In a PID namespace of its own the exporter walks over its own threads only."""
    exporter = exporters(launcher=["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"])
    try:
        start(Service, "pool_server", workers=WORKERS)
        exporter.wait_until(lambda s: held(s) > WORKERS)
        events_missed(exporter, "taken")
        exporter.wait_until(lambda s: quota_of(exporter)["met"] > MISSED, RECOUNT_SECONDS)
        assert held(exporter.scrape()) > MISSED
    finally:
        os.kill(inner_pid(exporter), signal.SIGTERM)  # the launcher does not hand it on
        assert exporter.process.wait(STOP_SECONDS) == 0
