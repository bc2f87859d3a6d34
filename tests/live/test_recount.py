# SPDX-License-Identifier: Apache-2.0
"""
How many sockets have state is told by events. Where the kernel leaves some out, a walk over the
sockets puts the number right: their room is not lost for ever.
"""

import json
import subprocess

import pytest

from clients import exchange
from exporter import bound
from services import Service

CONNECTIONS = 20
MISSED = 1 << 24  # more than any machine that runs this has
RECOUNT_SECONDS = bound(15, 60)  # it takes place every ten seconds


def bpftool(*arguments):
    done = subprocess.run(
        ["bpftool", "--json", "map", *arguments], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)


def quotas_of(exporter):
    """The id of its array `quotas`."""
    ids = [str(number) for number in exporter.bpf_ids("map")]
    (found,) = (number for number in ids if bpftool("show", "id", number)["name"] == "quotas")
    return found


def events_missed(exporter, field):
    """As if so many events had not been told of: those of sockets that came, or that went."""
    quotas, sockets = quotas_of(exporter), ["key", "0", "0", "0", "0"]
    value = bpftool("lookup", "id", quotas, *sockets)["formatted"]["value"]
    value[field] += MISSED
    data = b"".join(value[name].to_bytes(8, "little") for name in ("max", "taken", "given", "met"))
    bpftool("update", "id", quotas, *sockets, "value", *(str(byte) for byte in data))


def sockets(scrape):
    return scrape.sum("workload_exporter_map_entries", map="sockets")


@pytest.mark.parametrize("field", ["taken", "given"], ids=["ends-missed", "begins-missed"])
def test_sockets_of_which_nobody_told_are_counted(exporter, start, connect, field):
    server = start(Service, "pool_server", workers=CONNECTIONS)
    clients = [connect(server.port) for _ in range(CONNECTIONS)]
    for client in clients:
        exchange(client)
    exporter.wait_until(lambda s: CONNECTIONS < sockets(s) < MISSED)
    events_missed(exporter, field)
    exporter.wait_until(lambda s: CONNECTIONS < sockets(s) < MISSED, RECOUNT_SECONDS)
