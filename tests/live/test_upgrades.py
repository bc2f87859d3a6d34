# SPDX-License-Identifier: Apache-2.0
"""
Connections of HTTP/1.1 that become something else: the request for that is one, and of what follows
nothing is measured.
"""

import subprocess
import time

import pytest

import servers
from clients import Asking, answer, exchange
from exposition import Endpoint
from services import Nginx, Service, free_port

TURNS = 4
THINK_SECONDS = 0.6
SWEEP_SECONDS = 1.3  # after that a sweep has passed
HANDSHAKE = (
    b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
UPGRADE = (
    "proxy_pass http://127.0.0.1:{};proxy_http_version 1.1;"
    "proxy_set_header Upgrade $http_upgrade;proxy_set_header Connection upgrade;"
)


def message(text):
    """A frame of a client, masked with zeroes (RFC 6455, section 5.2)."""
    return bytes([0x81, 0x80 | len(text), 0, 0, 0, 0]) + text


def ends(exporter, *ports):
    """Each has had one request, and has one connection, of which no more is measured."""
    for port in ports:
        exporter.wait_for_endpoint(
            port,
            lambda e: (e.counts(), e.get("workload_multiplexed_connections_total"), e.gauges()),
            ((1, 1, 1), 1, (0, 0, 0, 1)),
        )


@pytest.mark.bounds
def test_messages_of_a_websocket_are_no_requests(exporter, start, connect, tmp_path):
    """Neither at its server nor at a proxy before it."""
    port = free_port()
    servers.websocket(start, port)
    exporter.workload_of(port)
    nginx = start(Nginx, tmp_path, location=UPGRADE.format(port))
    exporter.workload_of(nginx.port)
    client, asking = connect(nginx.port), Asking(THINK_SECONDS)
    with asking:
        client.sendall(HANDSHAKE)
        assert answer(client, b"\r\n\r\n").startswith(b"HTTP/1.1 101 ")
    for _ in range(TURNS):
        client.sendall(message(b"hello"))
        time.sleep(THINK_SECONDS)
        client.sendall(message(b"ask"))
        answer(client, b"answer")
    time.sleep(SWEEP_SECONDS)
    ends(exporter, port, nginx.port)
    client.close()
    for each in (port, nginx.port):
        asking.check(exporter.wait_for_end(each, 1))


def test_what_goes_through_a_tunnel_is_no_request_of_the_proxy(exporter, start, connect):
    """It is one of the server behind it."""
    behind, port = start(Service, "pool_server", workers=1, service_us=1000), free_port()
    servers.connecting(start, port, behind.port)
    exporter.workload_of(port)
    exporter.workload_of(behind.port)
    client = connect(port)
    client.sendall(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: x\r\n\r\n" % behind.port)
    assert b" 200 " in answer(client, b"\r\n\r\n")
    for _ in range(TURNS):
        exchange(client)
        time.sleep(THINK_SECONDS)
    ends(exporter, port)
    client.close()
    exporter.wait_for_end(port, 1)
    exporter.wait_for_end(behind.port, TURNS)


def test_a_tunnel_that_is_refused_is_a_request_as_any_other(exporter, start, connect):
    port = free_port()
    servers.connecting(start, port, free_port())
    exporter.workload_of(port)
    client = connect(port)
    for _ in range(TURNS):
        client.sendall(b"CONNECT 127.0.0.1:1 HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b" 403 " in answer(client, b"</html>\n")
    client.close()
    end = exporter.wait_for_end(port, TURNS)
    assert end.get("workload_multiplexed_connections_total") == 0


def test_an_upgrade_to_http_2_is_a_request_and_the_last_one(exporter, start):
    port = free_port()
    servers.connecting(start, port, free_port())
    exporter.workload_of(port)
    subprocess.run(
        ["nghttp", "--upgrade", "--null-out", "--multiply=9", f"http://127.0.0.1:{port}/"],
        check=True,
        timeout=30,
    )
    exporter.wait_for_endpoint(
        port, lambda e: e.get("workload_multiplexed_connections_total"), 1
    )
    exporter.wait_for_equal(lambda s: Endpoint(s, port).counts(), (1, 1, 1))
