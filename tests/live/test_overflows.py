# SPDX-License-Identifier: Apache-2.0
"""
Overflows of accept queues: exactly those that the kernel counts (TcpExt's ListenOverflows), and
nothing else that a listening socket drops. In network namespaces of their own, where nobody else's
are counted.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from services import IN_OWN_NETWORK, Process, free_port, wait_until

CONNECTIONS = 500

# Listens on each port named, as PORT:BACKLOG:DEFER; accepts and answers where the backlog is 0.
SERVER = """
import socket, sys, threading
def serve(listener):
    while True:
        client, _ = listener.accept()
        client.recv(100)
        client.sendall(b"x")
        client.close()
for word in sys.argv[1:]:
    port, backlog, defer = map(int, word.split(":"))
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if defer:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, 30)
    listener.bind(("127.0.0.1", port))
    listener.listen(backlog or 128)
    if not backlog:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
    globals()["keep" + word] = listener
print("ready", flush=True)
sys.stdin.read()
"""

# Exchanges so many messages with a port, one after the other.
ASKING = """
import socket, sys
for _ in range(int(sys.argv[2])):
    with socket.create_connection(("127.0.0.1", int(sys.argv[1])), 20) as client:
        client.sendall(b"q")
        assert client.recv(1) == b"x"
"""

# Wants so many connections at the same time, and gives up when its input ends.
FLOODING = """
import socket, sys
clients = []
for _ in range(int(sys.argv[2])):
    client = socket.socket()
    client.setblocking(False)
    client.connect_ex(("127.0.0.1", int(sys.argv[1])))
    clients.append(client)
print("ready", flush=True)
sys.stdin.read()
"""


class Listeners(Process):
    """Listening sockets in one network namespace; ports by what they do."""

    def __init__(self, *kinds):
        self.ports = [free_port() for _ in kinds]
        words = [f"{port}:{kind}" for port, kind in zip(self.ports, kinds)]
        super().__init__(
            [*IN_OWN_NETWORK, sys.executable, "-c", SERVER, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.process.stdout.readline() == b"ready\n"

    def command(self, program, *arguments):
        return ["nsenter", f"--net=/proc/{self.pid}/ns/net", sys.executable, "-c", program] + [
            str(word) for word in arguments
        ]

    def ask(self, port, times=CONNECTIONS):
        subprocess.run(self.command(ASKING, port, times), check=True, timeout=60)

    def statistic(self, name):
        """Of the whole namespace."""
        lines = Path(f"/proc/{self.pid}/net/netstat").read_text().splitlines()
        return int(dict(zip(lines[0].split(), lines[1].split()))[name])


class Flood(Process):
    def __init__(self, listeners, port, connections):
        super().__init__(
            listeners.command(FLOODING, port, connections),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.process.stdout.readline() == b"ready\n"


ACCEPTS, DEFERS, FULL, FULL_DEFERS = "0:0", "0:1", "4:0", "4:1"


def overflows(port):
    return lambda scrape: scrape.sum("workload_accept_queue_overflows_total", port=port)


def wait_for_as_many(exporter, port, listeners, but=0):
    """As the kernel has counted; clients that have gone may still be answered and counted."""
    exporter.wait_until(
        lambda s: overflows(port)(s) == listeners.statistic("ListenOverflows") - but
    )


def flooded(start, listeners, port, connections=40):
    """Until at least so many have overflowed; clients try again after a second."""
    before = listeners.statistic("ListenOverflows")
    flood = start(Flood, listeners, port, connections)
    wait_until(
        lambda: listeners.statistic("ListenOverflows") >= before + connections,
        20,
        "nothing overflows",
    )
    flood.stop()


@pytest.fixture
def listen(exporter, start):
    """listen(kind, ...) listens, and the exporter knows it."""

    def function(*kinds):
        listeners = start(Listeners, *kinds)
        for port in listeners.ports:
            exporter.workload_of(port)
        return listeners

    return function


def test_a_socket_that_waits_for_data_does_not_overflow(exporter, listen):
    """The kernel drops an acknowledgement of each of its connections."""
    listeners = listen(DEFERS)
    (port,) = listeners.ports
    listeners.ask(port)
    assert listeners.statistic("TCPDeferAcceptDrop") >= CONNECTIONS
    assert listeners.statistic("ListenOverflows") == 0
    end = exporter.wait_for_end(port, CONNECTIONS)
    assert overflows(port)(end.scrape) == 0


@pytest.mark.parametrize("kind", [FULL, FULL_DEFERS], ids=["plain", "defers"])
def test_overflows_are_as_many_as_the_kernel_counts(exporter, start, listen, kind):
    listeners = listen(kind)
    (port,) = listeners.ports
    for _ in range(2):
        flooded(start, listeners, port)
        wait_for_as_many(exporter, port, listeners)


def test_each_socket_has_its_own(exporter, start, listen):
    """One that overflows, one that waits for data and one that does nothing special, at once."""
    listeners = listen(ACCEPTS, FULL, DEFERS)
    plain, full, defers = listeners.ports
    other = listen(DEFERS, FULL)
    flooded(start, listeners, full)
    for port in (plain, defers):
        listeners.ask(port)
    other.ask(other.ports[0])
    wait_for_as_many(exporter, full, listeners)
    end = exporter.scrape()
    assert [overflows(port)(end) for port in (plain, defers, *other.ports)] == [0, 0, 0, 0]
    flooded(start, other, other.ports[1])
    wait_for_as_many(exporter, other.ports[1], other)
    wait_for_as_many(exporter, full, listeners)
    end = exporter.scrape()
    assert overflows(other.ports[0])(end) == 0


def test_overflows_before_a_socket_was_tracked_are_not_its(start, exporters):
    """Also those of others, who are not tracked."""
    listeners = start(Listeners, FULL, FULL)
    first, second = listeners.ports
    flooded(start, listeners, first)
    before = listeners.statistic("ListenOverflows")
    exporter = exporters()
    exporter.workload_of(second)
    assert overflows(first)(exporter.scrape()) == 0
    flooded(start, listeners, second)
    wait_for_as_many(exporter, second, listeners, but=before)
    assert overflows(first)(exporter.scrape()) == 0


def test_what_overflowed_just_before_a_socket_was_closed_counts(exporter, start, listen):
    listeners = listen(FULL)
    (port,) = listeners.ports
    flooded(start, listeners, port)
    path = Path(f"/proc/{listeners.pid}/net/netstat")
    with path.open() as file:  # as long as this is open the namespace lives
        listeners.process.stdin.close()
        listeners.process.wait(10)
        lines = file.read().splitlines()
    expected = int(dict(zip(lines[0].split(), lines[1].split()))["ListenOverflows"])
    exporter.wait_for_equal(overflows(port), expected)
