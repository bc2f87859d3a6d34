# SPDX-License-Identifier: Apache-2.0
"""
Clients that wait for the server to speak (MySQL, FTP, SMTP): what they wait for is queue time of
their first request, and they are queued as long.
"""

import concurrent.futures
import ftplib
import signal
import socket
import time

import pytest

import servers
from clients import ANSWER_BYTES, GOODBYE_SECONDS, LATE_SECONDS, exchange, receive
from databases import MariaDB
from exporter import bound
from exposition import Endpoint
from services import Nginx, Service, free_port

CLIENTS = 4
HELD_SECONDS = 0.3
WORK_SECONDS = 0.05
TIMEOUT_SECONDS = 3  # long enough for a sweep


def oldest(scrape, port):
    return scrape.one("workload_request_oldest_queued_seconds", port=port)


def wait_for_crowd(exporter, port, queued):
    """Until so many have waited together for HELD_SECONDS at least; returns for how long they have."""
    exporter.wait_for_endpoint(port, lambda end: end.gauges()[0], queued)
    together = time.monotonic()
    exporter.wait_until(lambda s: oldest(s, port) > HELD_SECONDS)
    time.sleep(max(0, together + HELD_SECONDS - time.monotonic()))
    return time.monotonic() - together


def mariadb(start):
    server = start(MariaDB)
    return server, server.port, server.query, 2


def ftp(start):
    port = free_port()
    server = servers.ftp(start, port, free_port())

    def ask():
        client = ftplib.FTP()
        client.connect("127.0.0.1", port)
        client.login()
        client.quit()

    return server, port, ask, 3


def seconds_of(ask):
    began = time.monotonic()
    ask()
    return time.monotonic() - began


@pytest.mark.bounds
@pytest.mark.parametrize("kind", [mariadb, ftp])
def test_clients_wait_for_a_server_that_is_stopped(exporter, start, kind):
    """Their first request tells of it, and none is counted for the greeting."""
    server, port, ask, requests = kind(start)
    exporter.workload_of(port)
    ask()
    before = exporter.wait_for_endpoint(port, Endpoint.counts, (requests,) * 3)
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        server.process.send_signal(signal.SIGSTOP)
        try:
            asking = [pool.submit(seconds_of, ask) for _ in range(CLIENTS)]
            held = wait_for_crowd(exporter, port, CLIENTS)
        finally:
            server.process.send_signal(signal.SIGCONT)
        elapsed = sum(client.result() for client in asking)
    exporter.wait_for_endpoint(port, Endpoint.gauges, (0, 0, 0, 0))
    end = exporter.endpoint(port)
    assert end.counts() == ((1 + CLIENTS) * requests,) * 3
    assert CLIENTS * held <= end.seconds("queue") - before.seconds("queue") <= elapsed
    assert end.seconds("duration") == pytest.approx(
        end.seconds("queue") + end.seconds("service"), rel=1e-9
    )
    assert end.get("workload_unrequested_sends_total") == 1 + CLIENTS
    # A client that has no CPU for 10 ms between its last words and its end has given up.
    unread, unanswered = end.abandoned()
    assert unread == 0 and unanswered <= bound(0, 1)


def greeting(connect, port, exchanges=1):
    """
    How long a client waits to be greeted: since its connection was there and since it was asked for,
    which the server sees in between. It ends with so many requests.
    """
    asked = time.monotonic()
    client = connect(port)
    began = time.monotonic()
    receive(client)
    ended = time.monotonic()
    for _ in range(exchanges):
        exchange(client)
    client.close()
    return ended - began, ended - asked


@pytest.mark.bounds
def test_a_saturated_pool_that_speaks_first(exporter, start, connect):
    workers, clients = 2, 12
    server = start(
        Service, "pool_server", workers=workers, greets=1, service_us=round(WORK_SECONDS * 1e6)
    )
    exporter.workload_of(server.port)
    greeting(connect, server.port)
    before = exporter.wait_for_endpoint(server.port, Endpoint.counts, (1, 1, 1))
    server.ask("stuck")
    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        waiting = [pool.submit(greeting, connect, server.port) for _ in range(clients)]
        held = wait_for_crowd(exporter, server.port, clients)
        server.ask("release")
        waits = [client.result() for client in waiting]
    end = exporter.wait_for_end(server.port, 1 + clients, unrequested=1 + clients)
    queue = end.seconds("queue") - before.seconds("queue")
    late = clients * LATE_SECONDS
    assert queue >= clients * held + WORK_SECONDS * sum(n // workers for n in range(clients))
    assert sum(least for least, _ in waits) - late <= queue <= sum(most for _, most in waits) + late


def test_what_the_first_connection_of_a_port_has_waited(exporter, start, connect):
    """Nothing tells before its greeting that its client waits for one."""
    server = start(Service, "talker", script="wait,write:100,read:100,write:100")
    exporter.workload_of(server.port)
    client, began = connect(server.port), time.monotonic()
    time.sleep(HELD_SECONDS)
    exporter.wait_for_endpoint(server.port, Endpoint.gauges, (0, 0, 0, 1))
    held = time.monotonic() - began
    server.ask("go")
    receive(client)
    exchange(client)
    client.close()
    end = exporter.wait_for_end(server.port, 1, unrequested=1)
    assert held <= end.seconds("queue") <= time.monotonic() - began


def test_what_comes_before_the_greeting_waits_once(exporter, start, connect):
    """As with SSH, where both sides speak at once."""
    server = start(Service, "talker", script="wait,write:100,read:100,write:100")
    exporter.workload_of(server.port)
    for count in range(1, 3):
        client, began = connect(server.port), time.monotonic()
        client.sendall(b"q" * ANSWER_BYTES)
        exporter.wait_for_endpoint(server.port, lambda end: end.gauges()[0], 1)
        before = exporter.endpoint(server.port)
        time.sleep(HELD_SECONDS)
        server.ask("go")
        receive(client, 2 * ANSWER_BYTES)
        client.close()
        end = exporter.wait_for_end(server.port, count, unrequested=count)
        waited = end.seconds("queue") - before.seconds("queue")
        assert HELD_SECONDS <= waited <= time.monotonic() - began


def test_who_has_said_all_before_the_greeting_waits_for_it(exporter, start, connect):
    """And tells nothing of who speaks first."""
    server = start(Service, "talker", script="wait,write:100,read:100,write:100")
    exporter.workload_of(server.port)
    for count in range(1, 3):
        before = exporter.endpoint(server.port)
        client = connect(server.port)
        client.sendall(b"q" * ANSWER_BYTES)
        client.shutdown(socket.SHUT_WR)
        exporter.wait_for_endpoint(server.port, lambda end: end.gauges()[0], 1)
        time.sleep(HELD_SECONDS)
        server.ask("go")
        receive(client, 2 * ANSWER_BYTES)
        client.close()
        end = exporter.wait_for_end(server.port, count, unrequested=count)
        assert end.seconds("queue") - before.seconds("queue") >= HELD_SECONDS
    with connect(server.port) as silent:
        exporter.wait_for_endpoint(server.port, Endpoint.gauges, (1, 0, 0, 1))
        server.ask("go")
        receive(silent)


def test_a_connection_older_than_the_exporter_tells_nothing(exporters, start, connect):
    server = start(Service, "pool_server", workers=2, greets=1)
    older = connect(server.port)
    receive(older)
    exporter = exporters()
    exporter.workload_of(server.port)
    exchange(older)
    greeting(connect, server.port)
    exporter.wait_for_endpoint(server.port, Endpoint.counts, (1, 1, 1))
    server.ask("stuck")
    waiting = [connect(server.port) for _ in range(CLIENTS)]
    exporter.wait_for_endpoint(server.port, lambda end: end.gauges()[0], CLIENTS)
    server.ask("release")
    for client in (older, *waiting):
        client.close()
    exporter.wait_for_endpoint(server.port, Endpoint.gauges, (0, 0, 0, 0))


def test_who_gives_up_before_the_greeting_has_abandoned_it(exporter, start, connect):
    """And who connects only to see that somebody listens has not."""
    server = start(Service, "pool_server", workers=1, greets=1)
    exporter.workload_of(server.port)
    greeting(connect, server.port)
    server.ask("stuck")
    patient = [connect(server.port) for _ in range(CLIENTS)]
    exporter.wait_for_endpoint(server.port, lambda end: end.gauges()[0], CLIENTS)
    exporter.wait_until(lambda s: oldest(s, server.port) > GOODBYE_SECONDS)
    late = 0
    for _ in range(CLIENTS):
        asked = time.monotonic()
        connect(server.port).close()
        late += time.monotonic() - asked >= GOODBYE_SECONDS
    assert CLIENTS <= exporter.endpoint(server.port).gauges()[0] <= CLIENTS + late
    for client in patient:
        client.close()
    server.ask("release")
    end = exporter.wait_for_endpoint(server.port, Endpoint.gauges, (0, 0, 0, 0))
    assert end.counts() == (1, 1, 1)
    assert CLIENTS <= end.abandoned()[0] <= CLIENTS + late
    assert end.abandoned()[1] == 0


def test_a_server_that_is_tired_of_waiting_does_not_speak_first(exporter, start, connect, tmp_path):
    """HAProxy's 408: the client asked for nothing."""
    behind, port = start(Nginx, tmp_path), free_port()
    start(servers.haproxy, start, port, f"127.0.0.1:{behind.port}", request_seconds=TIMEOUT_SECONDS)
    exporter.workload_of(port)
    client = connect(port)
    client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    while client.recv(65536):
        pass
    client.close()
    before = exporter.wait_for_end(port, 1)
    idle = [connect(port) for _ in range(CLIENTS)]
    exporter.wait_for_endpoint(port, Endpoint.gauges, (0, 0, 0, CLIENTS))
    for client in idle:
        assert client.recv(12) == b"HTTP/1.1 408"
        client.close()
    end = exporter.wait_for_end(port, 1, unrequested=CLIENTS)
    assert end.seconds("queue") == before.seconds("queue")


def test_a_greeting_behind_a_preamble(exporter, start, connect):
    """A mail server behind a proxy: it reads who its client is, and then greets."""
    preamble = b"PROXY TCP4 192.0.2.1 192.0.2.2 1000 25\r\n"
    script = f"read:{len(preamble)},wait,write:100,read:100,write:100"
    server = start(Service, "talker", script=script)
    exporter.workload_of(server.port)
    for count, queued in ((1, 0), (2, 1)):
        before = exporter.endpoint(server.port)
        client, began = connect(server.port), time.monotonic()
        client.sendall(preamble)
        exporter.wait_for_endpoint(server.port, Endpoint.gauges, (queued, 0, 0, 1))
        time.sleep(HELD_SECONDS)
        server.ask("go")
        receive(client)
        exchange(client)
        client.close()
        end = exporter.wait_for_end(server.port, count, unrequested=count)
        waited = end.seconds("queue") - before.seconds("queue")
        assert HELD_SECONDS <= waited <= time.monotonic() - began
