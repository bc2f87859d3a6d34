# SPDX-License-Identifier: Apache-2.0
"""
Reads that are no turn and turns that are no request: what a server reads after its answer, a body
that it asks for, commands that have no answer, and connections that many requests share.
"""

import socket
import subprocess
import time

import pytest

from clients import LATE_SECONDS, REQUEST, Asking, answer, exchange, receive, think, trusting
from databases import MariaDB, MariaDBClient
from exposition import Endpoint
from services import Nginx, Redis, TlsServer

TURNS = 5
THINK_SECONDS = 0.3
BODY_SECONDS = 0.05
SWEEP_SECONDS = 1.1  # after that a sweep has passed
BODY = b"b" * 1000
HEAD = b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n"
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.bounds
@pytest.mark.parametrize("first", [b"", GET], ids=["upload", "get-first"])
def test_a_body_that_comes_after_the_answer_is_no_request(
    exporter, start, connect, tmp_path, first
):
    """After a GET the first one is found out only when the next request follows it."""
    nginx = start(Nginx, tmp_path, location='return 403 "no\\n";')
    exporter.workload_of(nginx.port)
    client, asking = connect(nginx.port), Asking(THINK_SECONDS)

    def ask(request):
        with asking:
            client.sendall(request)
            answer(client, b"no\n")

    if first:
        ask(first)
    for _ in range(TURNS):
        ask(HEAD + b"\r\n")
        time.sleep(BODY_SECONDS)
        client.sendall(BODY)
        time.sleep(THINK_SECONDS)
    assert first or exporter.endpoint(nginx.port).get("workload_requests_in_service") == 0
    ask(GET)
    client.close()
    asking.check(exporter.wait_for_end(nginx.port, TURNS + 1 + bool(first), unanswered=TURNS))


@pytest.mark.bounds
def test_a_refused_upload_ends_with_its_answer(exporter, start, connect, tmp_path):
    """nginx closes then, but reads the rest of the body first."""
    nginx = start(Nginx, tmp_path, location="return 500;")
    exporter.workload_of(nginx.port)
    asking = Asking(THINK_SECONDS)
    for _ in range(TURNS):
        client = connect(nginx.port)
        with asking:
            client.sendall(HEAD + b"\r\n")
            answer(client, b"</html>\r\n")
        time.sleep(BODY_SECONDS)
        client.sendall(BODY)
        client.close()
    end = exporter.wait_for_endpoint(nginx.port, lambda e: (e.counts(), e.gauges()), ((TURNS,) * 3, (0,) * 4))
    assert end.abandoned() == (0, 0)
    asking.check(end)


@pytest.mark.bounds
def test_a_body_that_the_server_asks_for_belongs_to_its_request(exporter, start, connect, tmp_path):
    behind = start(Nginx, tmp_path)
    (tmp_path / "front").mkdir()
    nginx = start(
        Nginx, tmp_path / "front", location=f"proxy_pass http://127.0.0.1:{behind.port};"
    )
    exporter.workload_of(nginx.port)
    client = connect(nginx.port)
    seen = []
    took = 0
    for _ in range(TURNS):
        took -= time.monotonic()
        client.sendall(HEAD + b"Expect: 100-continue\r\n\r\n")
        assert answer(client, b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        time.sleep(SWEEP_SECONDS)
        seen.append(exporter.endpoint(nginx.port).get("workload_requests_in_service"))
        client.sendall(BODY)
        answer(client, b"hello\n")
        took += time.monotonic()
    client.close()
    end = exporter.wait_for_end(nginx.port, TURNS)
    assert TURNS * SWEEP_SECONDS <= end.seconds("service") <= took + LATE_SECONDS
    assert seen == [1] * TURNS


@pytest.mark.bounds
def test_the_end_of_a_handshake_is_no_request(exporter, start, connect, tmp_path):
    """Without session tickets nothing answers the client's Finished."""
    server = start(TlsServer, tmp_path, tickets=0)
    exporter.workload_of(server.port)
    context = trusting()
    asking = Asking(THINK_SECONDS)
    for _ in range(TURNS):
        with asking:
            client = context.wrap_socket(connect(server.port))
        think(client, server, THINK_SECONDS)
        with asking:
            exchange(client)
            exchange(client)
        client.close()
    asking.check(exporter.wait_for_end(server.port, 3 * TURNS, unanswered=TURNS))


@pytest.mark.bounds
def test_a_command_that_has_no_answer_is_no_request(exporter, start, connect):
    """COM_STMT_CLOSE. Two more requests for the login and what follows the server's greeting."""
    database = start(MariaDB)
    exporter.workload_of(database.port)
    client = MariaDBClient(connect(database.port), Asking(THINK_SECONDS))
    for _ in range(TURNS):
        client.close(client.prepare())
        time.sleep(THINK_SECONDS)
    time.sleep(1)
    assert exporter.endpoint(database.port).get("workload_requests_in_service") == 0
    client.set()
    client.client.close()
    client.asking.check(
        exporter.wait_for_end(database.port, TURNS + 2, unrequested=1, unanswered=TURNS)
    )


def test_a_client_that_does_not_wait_for_answers_shares_its_connection(exporter, talk):
    """
    It sends more while a part of the last answer, which is longer than its buffer, is still with the
    server. Of what it sends then is known only whether somebody reads it.
    """
    turns = 24  # of which some wait where the server lacks a CPU to fill its buffer
    case = talk(",".join(["read:100,flood:300"] * turns + ["wait"]))
    case.client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
    for _ in range(turns):
        case.client.sendall(REQUEST)
        receive(case.client, 250 * 1024)
    exporter.wait_for_endpoint(case.port, Endpoint.gauges, (0, 0, 0, 1))
    case.client.sendall(REQUEST)
    end = exporter.wait_for_endpoint(case.port, Endpoint.gauges, (1, 0, 0, 1))
    assert end.get("workload_multiplexed_connections_total") == 1
    assert end.counts()[0] < turns


@pytest.mark.parametrize("options", [["-P", "16"], []], ids=["pipelined", "one-by-one"])
def test_who_waits_for_answers_is_not_multiplexed(exporter, start, tmp_path, options):
    """A pipeline of redis-benchmark waits for all answers before it sends more: so many turns."""
    redis = start(Redis, tmp_path)
    exporter.workload_of(redis.port)
    command = ["redis-benchmark", "-p", str(redis.port), "-n", "20000", "-c", "10", "-t", "set"]
    subprocess.run([*command, *options], check=True, capture_output=True, timeout=60)
    turns = 20000 / (16 if options else 1)
    end = exporter.wait_for_endpoint(
        redis.port, lambda e: (e.counts()[0] >= turns, e.gauges()[3]), (True, 0)
    )
    assert end.get("workload_multiplexed_connections_total") == 0
