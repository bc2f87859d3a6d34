# SPDX-License-Identifier: Apache-2.0
"""
How many sockets and threads have state is told by events. Where the kernel leaves some out, a walk
over all of them puts the number right: their room is not lost for ever.
"""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from clients import exchange
from exporter import bound
from services import Service

KINDS = ["sockets", "threads"]  # as the kernel side numbers them
FIELDS = ["max", "taken", "given", "met", "excess"]
CONNECTIONS = WORKERS = 20
MISSED = 1 << 24  # more than any machine that runs this has
STOP_SECONDS = 30
RECOUNT_SECONDS = bound(30, 60)  # it takes place every ten seconds, and two must agree


def bpftool(*arguments):
    done = subprocess.run(
        ["bpftool", "--json", "map", *arguments], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)


def inner_pid(exporter):
    """Of the exporter itself, where its launcher has forked."""
    pid = exporter.pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(children[0]) if Path(f"/proc/{pid}/comm").read_text() == "unshare\n" else pid


def place_of(exporter, kind):
    """Where bpftool finds the quota of @kind."""
    ids = [str(number) for number in exporter.bpf_ids("map", inner_pid(exporter))]
    (quotas,) = (number for number in ids if bpftool("show", "id", number)["name"] == "quotas")
    return ["id", quotas, "key", str(KINDS.index(kind)), "0", "0", "0"]


def quota_of(exporter, kind):
    return bpftool("lookup", *place_of(exporter, kind))["formatted"]["value"]


def events_missed(exporter, kind, field):
    """As if so many events had not been told of: of those of @kind that came, or that went."""
    value = quota_of(exporter, kind)
    value[field] += MISSED
    data = b"".join(value[name].to_bytes(8, "little") for name in FIELDS)
    bpftool("update", *place_of(exporter, kind), "value", *(str(byte) for byte in data))


def held(scrape, kind):
    return scrape.sum("workload_exporter_map_entries", map=kind)


@pytest.mark.parametrize("field", ["taken", "given"], ids=["ends-missed", "begins-missed"])
@pytest.mark.parametrize("kind", KINDS)
def test_those_of_which_nobody_told_are_counted(exporter, start, connect, kind, field):
    server = start(Service, "pool_server", workers=CONNECTIONS)
    clients = [connect(server.port) for _ in range(CONNECTIONS)]
    for client in clients:
        exchange(client)
    exporter.wait_until(lambda s: CONNECTIONS < held(s, kind) < MISSED)
    events_missed(exporter, kind, field)
    exporter.wait_until(lambda s: CONNECTIONS < held(s, kind) < MISSED, RECOUNT_SECONDS)


def test_threads_that_a_walk_does_not_see_are_kept(exporters, start):
    """In a PID namespace of its own the exporter walks over its own threads only."""
    exporter = exporters(launcher=["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"])
    try:
        start(Service, "pool_server", workers=WORKERS)
        exporter.wait_until(lambda s: held(s, "threads") > WORKERS)
        events_missed(exporter, "threads", "taken")
        exporter.wait_until(lambda s: quota_of(exporter, "threads")["met"] > MISSED, RECOUNT_SECONDS)
        assert held(exporter.scrape(), "threads") > MISSED
    finally:
        os.kill(inner_pid(exporter), signal.SIGTERM)  # the launcher does not hand it on
        assert exporter.process.wait(STOP_SECONDS) == 0
