# SPDX-License-Identifier: Apache-2.0
"""
What servers of HTTP/1.1 send before their answers: statuses of 1xx. The request is in service until
its answer, which is one more send, or behind the last interim answer in the same.
"""

import time

import pytest

import servers
from clients import Asking, answer
from services import HttpScript, free_port

TURNS = 4
THINK_SECONDS = 0.3
PAUSE_MS = 200
SWEEP_SECONDS = 1.3  # after that a sweep has passed
BODY = b"b" * 1000
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n"

PAUSE = {"pause": PAUSE_MS}
FINAL = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n"
CONTINUE = "HTTP/1.1 100 Continue\r\n\r\n"
FIELDS = "Date: Wed, 25 Nov 2026 20:00:00 GMT\r\nX-Request: " + "0123456789abcdef" * 3 + "\r\n\r\n"
HINTS = "HTTP/1.1 103 Early Hints\r\n"
LINKS = "".join(f"Link: </style{n}.css>; rel=preload; as=style\r\n" for n in range(9)) + "\r\n"
ALL = HINTS + LINKS

# What a server sends, and how many pauses of it belong to a request without a body.
SCRIPTS = {
    "processing": (["HTTP/1.1 102 Processing\r\n\r\n", PAUSE, FINAL], 1),
    "hints": ([ALL, PAUSE, FINAL], 1),
    "several": (["HTTP/1.1 102 \r\n\r\n", PAUSE, ALL, PAUSE, CONTINUE, PAUSE, FINAL], 3),
    "together": (["HTTP/1.1 102 \r\n\r\n" + ALL + CONTINUE, PAUSE, FINAL], 1),
    "at-once": ([ALL, FINAL], 0),
    "with-the-answer": ([CONTINUE + ALL + FINAL], 0),
    "in-two-sends": ([HINTS + LINKS[:-2], PAUSE, "\r\n", PAUSE, FINAL], 2),
    "end-with-the-answer": ([ALL[:-1], PAUSE, "\n" + FINAL], 1),
    "vector": ([[HINTS, LINKS[:60], LINKS[60:]], PAUSE, [FINAL]], 1),
    "vector-with-the-answer": ([[HINTS, LINKS, FINAL]], 0),
    "message": ([{"message": [ALL, CONTINUE[:-1], CONTINUE[-1:]]}, PAUSE, {"message": [FINAL]}], 1),
    "answer-in-pieces": ([ALL, PAUSE, FINAL[:40], PAUSE, FINAL[40:]], 2),
    "answer-of-a-file": ([ALL, PAUSE, {"file": FINAL}], 1),
}


def ask(client, request, body=b"", pause=0.0):
    client.sendall(request)
    if body:
        answer(client, b"\r\n\r\n")
        time.sleep(pause)
        client.sendall(body)
    return answer(client, b"ok\n")


@pytest.mark.bounds
@pytest.mark.parametrize("script", SCRIPTS)
def test_an_interim_answer_is_none(exporter, start, connect, script):
    steps, pauses = SCRIPTS[script]
    server = start(HttpScript, steps)
    exporter.workload_of(server.port)
    client, asking = connect(server.port), Asking(THINK_SECONDS)
    for _ in range(TURNS):
        with asking:
            ask(client, GET)
        time.sleep(THINK_SECONDS)
    client.close()
    end = exporter.wait_for_end(server.port, TURNS)
    assert end.seconds("service") >= TURNS * pauses * PAUSE_MS / 1000
    asking.check(end)


CONTINUES = {
    "continue": [CONTINUE],
    "no-reason": ["HTTP/1.1 100 \r\n\r\n"],
    "fields": ["HTTP/1.1 100 Continue\r\n" + FIELDS],
    "in-pieces": [("HTTP/1.1 100 Continue\r\n" + FIELDS)[:30], FIELDS[7:]],
    "hints-too": [ALL[:-4] + "\r\n\r\n" + CONTINUE],
}


@pytest.mark.bounds
@pytest.mark.parametrize("case", CONTINUES)
def test_a_body_that_is_asked_for_belongs_to_its_request(exporter, start, connect, case):
    server = start(HttpScript, [*CONTINUES[case], {"body": 1000}, FINAL])
    exporter.workload_of(server.port)
    client, asking = connect(server.port), Asking(THINK_SECONDS)
    for _ in range(TURNS):
        with asking:
            ask(client, POST, BODY, PAUSE_MS / 1000)
        time.sleep(THINK_SECONDS)
    client.close()
    end = exporter.wait_for_end(server.port, TURNS)
    assert end.seconds("service") >= TURNS * PAUSE_MS / 1000
    asking.check(end)


def test_a_request_is_in_service_until_its_answer(exporter, start, connect):
    """However long that takes: a sweep has passed, and the interim answer was no end."""
    work = 5
    server = start(HttpScript, [ALL, {"pause": work * 1000}, FINAL])
    exporter.workload_of(server.port)
    client = connect(server.port)
    began = time.monotonic()
    client.sendall(GET)
    answer(client, b"\r\n\r\n")
    time.sleep(SWEEP_SECONDS)
    assert exporter.endpoint(server.port).gauges() == (0, 1, 0, 1)
    answer(client, b"ok\n")
    client.close()
    end = exporter.wait_for_end(server.port, 1)
    assert work <= end.seconds("service") <= time.monotonic() - began


def test_who_has_only_an_interim_answer_has_given_up(exporter, start, connect):
    server = start(HttpScript, [ALL, {"body": 1000}, FINAL])
    exporter.workload_of(server.port)
    for _ in range(TURNS):
        client = connect(server.port)
        client.sendall(POST)
        answer(client, b"\r\n\r\n")
        time.sleep(0.05)
        client.close()
    exporter.wait_for_end(server.port, 0, abandoned=(0, TURNS))


@pytest.mark.bounds
def test_switching_protocols_is_an_answer(exporter, start, connect):
    server = start(HttpScript, ["HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"])
    exporter.workload_of(server.port)
    client, asking = connect(server.port), Asking(THINK_SECONDS)
    with asking:
        client.sendall(GET)
        answer(client, b"\r\n\r\n")
    time.sleep(THINK_SECONDS)
    client.close()
    asking.check(exporter.wait_for_end(server.port, 1))


@pytest.mark.long
@pytest.mark.bounds
def test_tomcat_asks_for_a_body(exporter, start, connect):
    """Its interim answer has no reason; the servlet reads the body and works for 50 ms."""
    port = free_port()
    start(servers.tomcat, start, port)
    exporter.workload_of(port)
    asking = Asking(THINK_SECONDS)
    for _ in range(TURNS):
        client = connect(port)
        with asking:
            client.sendall(POST)
            assert answer(client, b"\r\n\r\n").startswith(b"HTTP/1.1 100 \r\n")
            time.sleep(PAUSE_MS / 1000)
            client.sendall(BODY)
            answer(client, b"x")
        time.sleep(THINK_SECONDS)
        client.close()
    end = exporter.wait_for_end(port, TURNS)
    assert end.seconds("service") >= TURNS * (PAUSE_MS + servers.WORK_MS) / 1000
    asking.check(end)


@pytest.mark.bounds
def test_node_gives_early_hints(exporter, start, connect):
    port = free_port()
    start(servers.node_hinting, start, port, PAUSE_MS)
    exporter.workload_of(port)
    client, asking = connect(port), Asking(THINK_SECONDS)
    for request, body in ((GET, b""), (POST, BODY)) * TURNS:
        with asking:
            client.sendall(request)
            said = answer(client, b"\r\n\r\n")
            client.sendall(body)
            said += answer(client, b"ok\n")
        assert b" 103 Early Hints\r\n" in said
        assert (b" 100 Continue\r\n" in said) == bool(body)
        time.sleep(THINK_SECONDS)
    client.close()
    end = exporter.wait_for_end(port, 2 * TURNS)
    assert end.seconds("service") >= 2 * TURNS * PAUSE_MS / 1000
    asking.check(end)
