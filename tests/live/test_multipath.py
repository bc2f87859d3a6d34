# SPDX-License-Identifier: Apache-2.0
"""
Services that listen by Multipath TCP, as those in Go do since 1.24: who speaks plain TCP with them is
measured as everywhere, whichever is older, the service or the exporter. Who speaks it too is counted.
"""

import json
import re
import socket
import subprocess
from pathlib import Path

import pytest

from clients import exchange
from exporter import BINARY
from exposition import Endpoint
from services import Process, free_port, python_link, unique_name, wait_until

PROTOCOL = 262  # IPPROTO_MPTCP of include/uapi/linux/in.h
ENABLED = Path("/proc/sys/net/mptcp/enabled")
REQUESTS = 50
CONNECTIONS = 5
WORKERS = 2
WAIT_SECONDS = 30

pytestmark = pytest.mark.skipif(
    not ENABLED.exists() or ENABLED.read_text() == "0\n", reason="the kernel has no Multipath TCP"
)

SERVER = f"""
import os, socket, sys, threading
listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, {PROTOCOL})
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", int(sys.argv[1])))
listener.listen(64)
def serve(client):
    while request := client.recv(100):
        client.sendall(request)
for _ in range({WORKERS}):
    if not os.fork():
        break
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],)).start()
"""


class Multipath(Process):
    """A master and its workers, all of which accept."""

    def __init__(self, port):
        self.name, self.port = unique_name("multipath"), port
        super().__init__([python_link(self.name), "-c", SERVER, port])
        wait_until(self._listens, WAIT_SECONDS, "it does not listen")

    def _listens(self):
        listeners = subprocess.run(
            ["ss", "-Hltn", f"sport = :{self.port}"], capture_output=True, text=True, check=True
        )
        return listeners.stdout


def multipath_client(port):
    client = socket.socket(socket.AF_INET, socket.SOCK_STREAM, PROTOCOL)
    client.connect(("127.0.0.1", port))
    return client


def lost(scrape, service):
    return scrape.sum(
        "workload_measurements_dropped_total", workload=service.name, reason="multipath_tcp"
    )


@pytest.mark.parametrize("older", [True, False], ids=["older", "younger"])
def test_who_speaks_plain_tcp_with_it_is_measured(exporters, start, connect, older):
    exporter = None if older else exporters()
    server = start(Multipath, free_port())
    exporter = exporter or exporters()
    exporter.wait_until(lambda s: s.sum("workload_processes", workload=server.name) == 1 + WORKERS)
    for _ in range(CONNECTIONS):
        client = connect(server.port)
        for _ in range(REQUESTS // CONNECTIONS):
            exchange(client)
        client.close()
    end = exporter.wait_for_end(server.port, REQUESTS, workload=server.name)
    assert end.get("workload_connections_accepted_total") == CONNECTIONS
    assert lost(end.scrape, server) == 0
    for _ in range(CONNECTIONS):
        with multipath_client(server.port) as client:
            exchange(client)
    exporter.wait_until(lambda s: lost(s, server) == CONNECTIONS)
    exporter.wait_for_end(server.port, REQUESTS, workload=server.name)


def test_connections_that_are_open_at_the_start_are_measured(exporters, start, connect):
    server = start(Multipath, free_port())
    client = connect(server.port)
    exchange(client)
    exporter = exporters()
    exporter.wait_for_endpoint(server.port, Endpoint.gauges, (0, 0, 0, 1), workload=server.name)
    exchange(client)
    client.close()
    exporter.wait_for_end(server.port, 1, workload=server.name)


def is_open(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_a_service_behind_another_on_its_port_is_itself(exporters, start, connect):
    """What a walk has met of the one does not pass on."""
    port = free_port()
    first = start(Multipath, port)
    exporter = exporters()
    exchange(connect(port))
    exporter.wait_for_endpoint(port, Endpoint.counts, (1, 1, 1), workload=first.name)
    first.stop()
    wait_until(lambda: not is_open(port), WAIT_SECONDS, "the first one still listens")
    second = start(Multipath, port)
    exchange(connect(port))
    exporter.wait_for_endpoint(port, Endpoint.counts, (1, 1, 1), workload=second.name)


def test_the_check_says_how_many_sockets_there_are(start):
    start(Multipath, free_port())
    checked = subprocess.run([BINARY, "check", "--json"], capture_output=True, text=True, timeout=60)
    (row,) = [row for row in json.loads(checked.stdout)["kernel"] if "Multipath" in row["name"]]
    sockets = re.search(r"namespace: (\d+); connections .* are counted", row["reason"])
    assert row["ok"] and int(sockets[1]) >= 1
