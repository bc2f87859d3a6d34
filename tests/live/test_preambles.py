# SPDX-License-Identifier: Apache-2.0
"""
What proxies send before the bytes of their clients (the PROXY protocol of HAProxy): no request, and
no part of one. What follows is measured as if it had come first.
"""

import socket
import struct
import time

import pytest

import servers
from clients import Asking, answer, receive, reset, trusting
from databases import MariaDB, MariaDBClient
from exporter import bound
from exposition import Endpoint
from services import Nginx, free_port, nginx_tls

TURNS = 2
CONNECTIONS = 4
THINK_SECONDS = 0.4
SWEEP_SECONDS = 1.3  # after that a sweep has passed
HANDSHAKE_TURNS = 2  # of a client's TLS, whose last message session tickets answer
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
HEAD = b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"
BODY = b"b" * 1000
SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
ADDRESSES = bytes([127, 0, 0, 1, 127, 0, 0, 1, 0xC0, 0, 0, 80])


def header(command, family, payload):
    return SIGNATURE + struct.pack(">BBH", command, family, len(payload)) + payload


def field(kind, value):
    return struct.pack(">BH", kind, len(value)) + value


PREAMBLES = {
    "v1": b"PROXY TCP4 127.0.0.1 127.0.0.1 49152 80\r\n",
    "v1-unknown": b"PROXY UNKNOWN\r\n",
    "v1-longest": b"PROXY TCP6 %s %s 49152 10080\r\n" % ((b"ffff:" * 7 + b"ffff",) * 2),
    "v2": header(0x21, 0x11, ADDRESSES),
    "v2-local": header(0x20, 0, b""),
    "v2-fields": header(0x21, 0x11, ADDRESSES + field(4, b"n" * 300) + field(2, b"example.org")),
}
each_preamble = pytest.mark.parametrize("preamble", PREAMBLES.values(), ids=PREAMBLES)
VERSIONS = {name: PREAMBLES[name] for name in ("v1", "v2")}
each_version = pytest.mark.parametrize("preamble", VERSIONS.values(), ids=VERSIONS)


@pytest.fixture
def nginx(exporter, start, tmp_path):
    def function(listen="proxy_protocol", **options):
        server = start(Nginx, tmp_path, listen=listen, **options)
        exporter.workload_of(server.port)
        return server

    return function


def ask(client, asking, request=GET, last=b"hello\n"):
    with asking:
        client.sendall(request)
        answer(client, last)


@pytest.mark.bounds
@each_preamble
@pytest.mark.parametrize("alone", [True, False], ids=["alone", "with-the-request"])
def test_a_preamble_is_no_request(exporter, nginx, connect, preamble, alone):
    server, asking = nginx(), Asking(THINK_SECONDS)
    for _ in range(TURNS):
        client = connect(server.port)
        if alone:
            client.sendall(preamble)
            time.sleep(THINK_SECONDS)
        ask(client, asking, GET if alone else preamble + GET)
        time.sleep(THINK_SECONDS)
        ask(client, asking)
        client.close()
    asking.check(exporter.wait_for_end(server.port, 2 * TURNS))


@each_version
@pytest.mark.parametrize("end", [socket.socket.close, reset], ids=["closed", "reset"])
def test_a_connection_of_a_preamble_alone_has_no_request(exporter, nginx, connect, preamble, end):
    """As a health check's. It is read before the connection ends."""
    server = nginx()
    clients = [connect(server.port) for _ in range(CONNECTIONS)]
    for client in clients:
        client.sendall(preamble)
    exporter.wait_for_endpoint(server.port, Endpoint.gauges, (0, 0, 0, CONNECTIONS))
    for client in clients:
        end(client)
    end = exporter.wait_for_end(server.port, 0)
    assert end.get("workload_connections_accepted_total") == CONNECTIONS


@pytest.mark.bounds
@each_version
def test_http_is_known_behind_a_preamble(exporter, nginx, connect, preamble):
    """The rest of a body that comes after the answer is no request."""
    server, asking = nginx(location='return 403 "no\\n";'), Asking(THINK_SECONDS)
    client = connect(server.port)
    client.sendall(preamble)
    for _ in range(TURNS):
        time.sleep(THINK_SECONDS)
        ask(client, asking, HEAD, b"no\n")
        time.sleep(0.05)
        client.sendall(BODY)
    ask(client, asking, GET, b"no\n")
    client.close()
    asking.check(exporter.wait_for_end(server.port, TURNS + 1, unanswered=TURNS))


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])


@each_version
@pytest.mark.parametrize("alone", [True, False], ids=["alone", "with-the-preface"])
def test_http_2_is_known_behind_a_preamble(exporter, nginx, connect, preamble, alone):
    server = nginx(listen="http2 proxy_protocol")
    client = connect(server.port)
    client.sendall(preamble if alone else preamble + PREFACE)
    if alone:
        time.sleep(0.1)
        client.sendall(PREFACE)
    assert client.recv(100)
    exporter.wait_for_endpoint(
        server.port, lambda e: e.get("workload_multiplexed_connections_total"), 1
    )
    client.close()
    end = exporter.wait_for_endpoint(server.port, Endpoint.gauges, (0, 0, 0, 0))
    assert end.counts() == (0, 0, 0)
    assert end.abandoned() == (0, 0)


@pytest.mark.bounds
@each_version
def test_tls_behind_a_preamble(exporter, nginx, connect, tmp_path, preamble):
    """nginx looks at the preamble with MSG_PEEK (107 bytes), and then reads that alone."""
    server, asking = nginx(listen=nginx_tls(tmp_path, "proxy_protocol")), Asking(THINK_SECONDS)
    for _ in range(TURNS):
        client = connect(server.port)
        client.sendall(preamble)
        time.sleep(THINK_SECONDS)
        with asking:
            client = trusting().wrap_socket(client)
        time.sleep(THINK_SECONDS)
        ask(client, asking)
        client.close()
    requests = (HANDSHAKE_TURNS + 1) * TURNS
    end = exporter.wait_for_endpoint(server.port, Endpoint.counts, (requests,) * 3)
    assert end.abandoned() == (0, 0)
    asking.check(end)


@pytest.mark.bounds
@pytest.mark.parametrize(
    "option", ["send-proxy", "send-proxy-v2", "send-proxy-v2 proxy-v2-options crc32c,unique-id"]
)
def test_requests_by_haproxy(exporter, nginx, start, connect, option):
    server, asking, port = nginx(), Asking(THINK_SECONDS), free_port()
    start(servers.haproxy, start, port, f"127.0.0.1:{server.port} {option}")
    exporter.workload_of(port)
    client = connect(port)
    for _ in range(TURNS):
        ask(client, asking)
        time.sleep(THINK_SECONDS)
    client.close()
    exporter.wait_for_end(port, TURNS)
    asking.check(exporter.wait_for_endpoint(server.port, Endpoint.counts, (TURNS,) * 3))


@pytest.mark.bounds
@pytest.mark.parametrize("option", ["send-proxy", "send-proxy-v2"])
def test_a_client_that_is_silent_behind_haproxy_asks_for_nothing(
    exporter, nginx, start, connect, option
):
    """In its mode `tcp` it connects to the server at once, and sends the preamble."""
    server, asking, port = nginx(), Asking(THINK_SECONDS), free_port()
    start(servers.haproxy, start, port, f"127.0.0.1:{server.port} {option}", mode="tcp")
    exporter.workload_of(port)
    client = connect(port)
    exporter.wait_for_endpoint(server.port, Endpoint.gauges, (0, 0, 0, 1))
    time.sleep(SWEEP_SECONDS)
    assert exporter.endpoint(server.port).gauges() == (0, 0, 0, 1)
    ask(client, asking)
    client.close()
    asking.check(exporter.wait_for_end(server.port, 1))


@pytest.mark.bounds
@pytest.mark.parametrize("option", ["send-proxy", "send-proxy-v2"])
def test_health_checks_of_haproxy_are_no_requests(exporter, nginx, start, option):
    """
    They end with a reset behind the preamble. What has not been read by then is a goodbye, or has
    been given up if HAProxy had no CPU for 10 ms in between.
    """
    server = nginx()
    checks = f"127.0.0.1:{server.port} {option} check inter 50ms"
    front = start(servers.haproxy, start, free_port(), checks)
    exporter.wait_for_endpoint(
        server.port, lambda e: e.get("workload_connections_accepted_total") >= 20, True
    )
    front.stop()
    end = exporter.wait_for_endpoint(server.port, Endpoint.gauges, (0, 0, 0, 0))
    assert end.counts() == (0, 0, 0)
    unread, unanswered = end.abandoned()
    accepted = end.get("workload_connections_accepted_total")
    assert unanswered == 0 and unread <= bound(0, accepted / 2)
    assert end.goodbyes() + unread <= accepted


@pytest.mark.bounds
@each_version
def test_a_server_that_peeks(exporter, start, connect, nginx, preamble):
    """HAProxy itself, in front of nginx."""
    behind, asking, port = nginx(listen=""), Asking(THINK_SECONDS), free_port()
    start(servers.haproxy, start, port, f"127.0.0.1:{behind.port}", bind="accept-proxy")
    exporter.workload_of(port)
    for _ in range(TURNS):
        client = connect(port)
        client.sendall(preamble)
        time.sleep(THINK_SECONDS)
        ask(client, asking)
        client.close()
    asking.check(exporter.wait_for_end(port, TURNS))


def pieces(preamble, cuts):
    """Reads of the talker that take a preamble in pieces."""
    if not cuts:
        return "once:1," * len(preamble)
    sizes = [end - begin for begin, end in zip((0, *cuts), (*cuts, len(preamble))) if end > begin]
    return "".join(f"once:{size}," for size in sizes)


@pytest.mark.bounds
@pytest.mark.parametrize(
    "name, cuts",
    [(name, ()) for name in PREAMBLES] + [("v2", (12,)), ("v2-fields", (8, 15))],
    ids=[*PREAMBLES, "signature", "length"],
)
def test_a_preamble_that_is_read_in_pieces(exporter, talk, name, cuts):
    preamble = PREAMBLES[name]
    turns = "once:4096,write:100," * TURNS
    case, asking = talk(pieces(preamble, cuts) + turns + "eof"), Asking(THINK_SECONDS)
    case.client.sendall(preamble)
    time.sleep(SWEEP_SECONDS)
    assert exporter.endpoint(case.port).gauges() == (0, 0, 0, 1)
    for _ in range(TURNS):
        with asking:
            case.client.sendall(GET)
            receive(case.client)
        time.sleep(THINK_SECONDS)
    case.client.close()
    asking.check(exporter.wait_for_end(case.port, TURNS))


@pytest.mark.bounds
@each_version
@pytest.mark.parametrize("reads", [(4096,), (12, 4096)], ids=["together", "in-pieces"])
def test_a_request_waits_from_its_own_arrival(exporter, talk, preamble, reads):
    """The server reads nothing until both are there."""
    case = talk("wait," + "".join(f"once:{size}," for size in reads) + "write:100,eof")
    asking = Asking(THINK_SECONDS)
    case.client.sendall(preamble)
    time.sleep(THINK_SECONDS)
    with asking:
        case.client.sendall(GET)
        time.sleep(0.2)
        case.server.ask("go")
        receive(case.client)
    case.client.close()
    end = exporter.wait_for_end(case.port, 1)
    assert end.seconds("queue") >= 0.19
    asking.check(end)


def test_who_gives_up_behind_a_preamble_has_abandoned_its_request(exporter, talk):
    case = talk("once:4096,once:4096,eof")
    case.client.sendall(PREAMBLES["v1"])
    exporter.wait_for_endpoint(case.port, Endpoint.gauges, (0, 0, 0, 1))
    case.client.sendall(GET)
    exporter.wait_for_endpoint(case.port, Endpoint.gauges, (0, 1, 0, 1))
    case.client.close()
    exporter.wait_for_end(case.port, 0, abandoned=(0, 1))


@pytest.mark.bounds
@pytest.mark.parametrize("name", ["v1", "v2-local"])
def test_a_server_that_speaks_first(exporter, start, connect, name):
    """MariaDB reads four bytes, and then byte by byte; a statement that is closed has no answer."""
    database = start(MariaDB, "--proxy-protocol-networks=*")
    exporter.workload_of(database.port)
    client = connect(database.port)
    client.sendall(PREAMBLES[name])
    talker = MariaDBClient(client, Asking(THINK_SECONDS))
    for _ in range(TURNS):
        talker.close(talker.prepare())
        time.sleep(THINK_SECONDS)
    talker.set()
    client.close()
    talker.asking.check(
        exporter.wait_for_end(database.port, TURNS + 2, unrequested=1, unanswered=TURNS)
    )
