# SPDX-License-Identifier: Apache-2.0
"""
More listeners at the start than the table of listeners holds: of those beyond the exporter does not
look for connections that are open then. It counts each such listener, once, and measures whatever
comes later. Afterwards only listeners of Multipath TCP stay in the table, as long as they listen.
"""

import json
import socket
import subprocess
import sys

from clients import exchange
from services import Process, free_port, python_link, unique_name, wait_until
from test_multipath import Multipath
from test_multipath import pytestmark as has_multipath

FIT = 1024  # ENDPOINTS_MAX of bpf/abi/limits.h
BEYOND = 16
SOME = 5
SECONDS = 10

SERVER = """
import resource, selectors, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
selector = selectors.DefaultSelector()
listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(int(sys.argv[1]))]
for listener in listeners:
    selector.register(listener, selectors.EVENT_READ, True)
print(*(listener.getsockname()[1] for listener in listeners), flush=True)
while True:
    for key, _ in selector.select():
        if key.data:
            selector.register(key.fileobj.accept()[0], selectors.EVENT_READ, False)
        elif request := key.fileobj.recv(100):
            key.fileobj.sendall(request)
        else:
            selector.unregister(key.fileobj)
            key.fileobj.close()
"""


class Listeners(Process):
    def __init__(self, count):
        self.name = unique_name("ports")
        super().__init__(
            [python_link(self.name), "-c", SERVER, count], stdout=subprocess.PIPE, text=True
        )
        self.ports = [int(word) for word in self.process.stdout.readline().split()]


def lost(scrape):
    return scrape.losses().get("listener_table_full", 0)


def remembered(exporter):
    """Ports in its table of listeners."""
    for number in exporter.bpf_ids("map"):
        show = ["bpftool", "--json", "map"]
        words = {kind: [*show, kind, "id", str(number)] for kind in ("show", "dump")}
        if json.loads(subprocess.check_output(words["show"])).get("name") == "listening":
            entries = json.loads(subprocess.check_output(words["dump"]))
            return {entry["formatted"]["key"]["port"] for entry in entries}
    raise AssertionError("there is no such table")


def wait_until_connections_are_walked(exporter, server):
    exporter.wait_until(lambda s: lost(s) >= BEYOND)
    wait_until(
        lambda: not remembered(exporter) & set(server.ports), SECONDS, "listeners stay in the table"
    )


def test_listeners_beyond_the_table_are_measured_from_then_on(exporters, start, connect):
    server = start(Listeners, FIT + BEYOND)
    # A walk meets them in the order in which they were opened.
    first, last = connect(server.ports[0]), connect(server.ports[-1])
    exchange(first)
    exchange(last)
    exporter = exporters()
    wait_until_connections_are_walked(exporter, server)

    def counted(scrape):
        return scrape.sum("workload_request_duration_seconds_count", workload=server.name)

    for _ in range(SOME):
        exchange(first)
        exchange(last)
    exporter.wait_for_equal(counted, SOME)
    again = connect(server.ports[-1])
    for _ in range(SOME):
        exchange(again)
    exporter.wait_for_equal(counted, 2 * SOME)


def orphan():
    """A listener whose service has ended: once that is forgotten, a walk looks for who holds it."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listens = "import socket, sys; socket.socket(fileno=int(sys.argv[1])).listen()"
    number = listener.fileno()
    subprocess.run([sys.executable, "-c", listens, str(number)], pass_fds=[number], check=True)
    return listener


@has_multipath
def test_another_walk_counts_no_listener_again_and_forgets_those_that_are_gone(exporters, start):
    multipath = start(Multipath, free_port())  # met before the table is full
    server = start(Listeners, FIT + BEYOND)
    exporter = exporters("--workloads.grace-period=1s")
    wait_until_connections_are_walked(exporter, server)
    assert multipath.port in remembered(exporter)
    before = lost(exporter.scrape())
    with orphan():
        multipath.stop()
        exporter.wait_until(lambda _: multipath.port not in remembered(exporter), 2 * SECONDS)
    assert lost(exporter.scrape()) == before
