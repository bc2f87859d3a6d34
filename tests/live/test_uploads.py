# SPDX-License-Identifier: Apache-2.0
"""
Requests with bodies, and what follows them on their connections: other methods, reads of one byte,
what is left of a body that the server did not want, also by TLS and from afar. All are counted.
"""

import http.client
import json

import pytest

import servers
from clients import REQUEST, Asking, answer, receive, think, trusting
from exporter import bound
from exposition import Endpoint
from prometheus import Prometheus
from services import FarNetwork, Nginx, free_port, nginx_tls

TURNS = 10
THINK_SECONDS = 0.4  # more than 10 ms and two round trips, on a busy machine too
CLIENTS, UPLOADS = 3, 3
UPLOAD_BYTES = 30000
HANDSHAKE_TURNS = 2  # the client's first message, and its last one, which session tickets answer


def post(size):
    return b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size


def padded(line):
    """A request of as many bytes as REQUEST."""
    head = line + b" HTTP/1.1\r\nX: "
    return head + b"x" * (len(REQUEST) - len(head) - 4) + b"\r\n\r\n"


LINES = [
    *(b"POST /x", b"DELETE http://x/", b"\r\nGET /x", b"\nPUT /x", b"get /x", b"Put http://x/"),
    *(b"OPTIONS *", b"UPDATEREDIRECTREF /x", b"BASELINE-CONTROL /x", b"M-SEARCH *", b"!$& /"),
]


def test_any_token_is_a_method(exporter, talk):
    case = talk("read:100,write:100,loop")
    for line in LINES:
        case.client.sendall(padded(line))
        receive(case.client)
    case.client.close()
    exporter.wait_for_end(case.port, len(LINES))


@pytest.mark.parametrize("method", [b"GET", b"POST"])
def test_a_server_may_read_one_byte_ahead(exporter, talk, method):
    """As Go's net/http does while it ends a request."""
    case = talk("once:4096,write:100," + "read:1,once:4096,write:100," * (TURNS - 1) + "eof")
    for _ in range(TURNS):
        case.client.sendall(padded(method + b" /x"))
        receive(case.client)
    case.client.close()
    exporter.wait_for_end(case.port, TURNS)


def test_go_reads_ahead_and_loses_nothing(exporter, start, connect, tmp_path):
    """Prometheus: its answer is there before it has stopped to read ahead, one byte of the next."""
    turns = 2000
    server = start(Prometheus, tmp_path, [])
    exporter.workload_of(server.port)
    # Gauges may be a second old. With this connection alone those of the start have ended.
    connect(server.port)
    alone = exporter.wait_for_endpoint(server.port, Endpoint.gauges, (0, 0, 0, 1))
    before = alone.counts()[0]
    client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    for turn in range(turns):
        client.request("GET" if turn % 2 else "POST", "/api/v1/query?query=1")
        assert json.loads(client.getresponse().read())["status"] == "success"
    client.close()
    exporter.wait_for_endpoint(
        server.port, lambda e: (e.counts(), e.gauges()), ((before + turns,) * 3, (0, 0, 0, 1))
    )


def test_methods_of_webdav_are_counted(exporter, start):
    port = free_port()
    servers.webdav(start, port)
    exporter.workload_of(port)
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    ask = b'<?xml version="1.0"?><propfind xmlns="DAV:"><allprop/></propfind>'
    for turn in range(TURNS):
        for method, path, body, status in (
            ("PUT", f"/{turn}", REQUEST, 201),
            ("PROPFIND", "/", ask, 207),
            ("REPORT", "/", ask, 501),
            ("MKCOL", f"/folder{turn}", None, 201),
        ):
            client.request(method, path, body, {"Depth": "1"})
            answered = client.getresponse()
            answered.read()
            assert answered.status == status, method
    client.close()
    exporter.wait_for_end(port, 4 * TURNS)


def test_a_request_may_come_with_the_rest_of_a_body(exporter, start, connect):
    """The client has the answer before it sends the rest, and both are taken by one read."""
    port = free_port()
    node = servers.node_refusing(start, port)
    exporter.workload_of(port)
    client, asking = connect(port), Asking(THINK_SECONDS)
    head = post(len(REQUEST))
    with asking:
        client.sendall(head)
        answer(client, b"no\n")
    for _ in range(TURNS):
        think(client, node, THINK_SECONDS)
        with asking:
            client.sendall(REQUEST + head)
            answer(client, b"no\n")
    client.close()
    asking.check(exporter.wait_for_end(port, 1 + TURNS, unanswered=TURNS))


class AtMost(int):
    """What a server that is late does less often, but not less often than @least."""

    def __new__(cls, most, least=0):
        self = super().__new__(cls, most)
        self.least = least
        return self

    def __eq__(self, other):
        return self.least <= other <= int(self)

    __hash__ = int.__hash__


def refusals(count):
    """It has all of an upload before it refuses it."""
    return bound(count, AtMost(count))


def after_handshakes(requests):
    """It reads the last message of each client's handshake together with what follows."""
    return bound(requests, AtMost(requests, requests - CLIENTS))


@pytest.fixture
def far(start):
    return start(FarNetwork)


def talk_by_tls(network, server, asking):
    """Uploads and other requests in turn: tickets cross the first, and a refusal each."""
    context = trusting()
    with asking:
        client = context.wrap_socket(network.connect(server.port))
    for body in (b"b" * UPLOAD_BYTES, b"") * UPLOADS:
        with asking:
            client.sendall(post(len(body)) + body)
            answer(client, b"no\n")
        think(client, server, THINK_SECONDS)
    return client


@pytest.mark.parametrize("refused", [False, True], ids=["taken", "refused"])
@pytest.mark.bounds
def test_uploads_by_tls_from_afar_share_no_connection(exporter, start, far, tmp_path, refused):
    """With a refusal the rest of an upload is read and not answered."""
    options = {"prefix": far.on_server, "location": 'return 401 "no\\n";'}
    if not refused:
        behind = start(Nginx, tmp_path, **options)
        options["location"] = f"proxy_pass http://127.0.0.1:{behind.port};"
    (tmp_path / "front").mkdir()
    nginx = start(
        Nginx, tmp_path / "front", address=far.SERVER, listen=nginx_tls(tmp_path), **options
    )
    exporter.workload_of(nginx.port)
    asking = Asking(THINK_SECONDS)
    for _ in range(CLIENTS):
        client = talk_by_tls(far, nginx, asking)
        exporter.wait_for_endpoint(nginx.port, lambda e: e.gauges()[1], 0)
        client.close()
    end = exporter.wait_for_end(
        nginx.port,
        after_handshakes(CLIENTS * (HANDSHAKE_TURNS + 2 * UPLOADS)),
        unanswered=refusals(CLIENTS * UPLOADS) if refused else 0,
    )
    assert end.get("workload_multiplexed_connections_total") == 0
    asking.check(end)


@pytest.mark.bounds
def test_an_upload_that_ends_with_its_refusal_is_no_second_request(exporter, start, far, tmp_path):
    """The client ends the connection when it has the answer: the rest of its body abandons nothing."""
    nginx = start(
        Nginx, tmp_path, 'return 401 "no\\n";', far.on_server, address=far.SERVER, listen=nginx_tls(tmp_path)
    )
    exporter.workload_of(nginx.port)
    for _ in range(CLIENTS):
        client = trusting().wrap_socket(far.connect(nginx.port))
        client.sendall(post(UPLOAD_BYTES) + b"b" * UPLOAD_BYTES)
        answer(client, b"no\n")
        think(client, nginx, THINK_SECONDS)
        client.close()
    requests = after_handshakes(CLIENTS * (HANDSHAKE_TURNS + 1))
    exporter.wait_for_end(nginx.port, requests, unanswered=refusals(CLIENTS))
