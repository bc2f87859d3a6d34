# SPDX-License-Identifier: Apache-2.0
"""Turns that end a connection and want no answer, and clients that give up: told apart, and exact."""

import contextlib
import socket
import ssl

import pytest

from clients import GOODBYE_SECONDS, REQUEST, exchange, hold_back, receive, trusting
from databases import MariaDB, PostgreSQL
from exporter import bound
from exposition import Endpoint
from services import TlsServer

CONNECTIONS = 20


def leave(client):
    hold_back(client)
    client.sendall(REQUEST)
    client.close()


def test_where_nothing_is_answered_nobody_says_goodbye(exporter, talk, connect):
    case = talk("read:100,eof")
    for client in [case.client] + [connect(case.port) for _ in range(CONNECTIONS - 1)]:
        leave(client)
    exporter.wait_for_end(case.port, 0, unanswered=CONNECTIONS, one_way=CONNECTIONS)


@pytest.mark.parametrize("end", [",eof", ""], ids=["eof", "at-once"])
def test_a_goodbye_after_requests_is_one_and_not_a_request(exporter, talk, connect, end):
    """Whether the server waits for the end of the client or closes as soon as it has read."""
    case = talk("read:100,write:100,read:100,write:100,read:100" + end)
    for client in [case.client] + [connect(case.port) for _ in range(CONNECTIONS - 1)]:
        exchange(client)
        exchange(client)
        leave(client)
    exporter.wait_for_end(case.port, 2 * CONNECTIONS, goodbyes=CONNECTIONS)


def test_a_goodbye_that_is_never_read_is_one_as_well(exporter, talk):
    case = talk("wait")
    leave(case.client)
    exporter.wait_for_endpoint(case.port, lambda e: e.gauges()[0], 1)
    case.server.ask("go")
    exporter.wait_for_end(case.port, 0, goodbyes=1)


@pytest.mark.parametrize("end", ["read:100,eof", "wait"], ids=["service", "queued"])
def test_a_client_that_gives_up_has_abandoned_its_request(exporter, talk, end):
    case = talk("read:100,write:100," + end)
    exchange(case.client)
    case.client.sendall(REQUEST)
    queued = end == "wait"
    exporter.wait_for_endpoint(case.port, lambda e: e.gauges()[:2], (1, 0) if queued else (0, 1))
    oldest = f"workload_request_oldest_{'queued' if queued else 'in_service'}_seconds"
    exporter.wait_until(lambda s: s.one(oldest, port=case.port) > GOODBYE_SECONDS)
    case.client.close()
    if queued:
        case.server.ask("go")
    exporter.wait_for_end(case.port, 1, abandoned=(1, 0) if queued else (0, 1))


def test_a_server_that_closes_at_once_without_an_answer_has_given_none(exporter, talk):
    """The client closes only when it has learned of it."""
    case = talk("read:100")
    case.client.sendall(REQUEST)
    assert case.client.recv(1) == b""
    case.client.close()
    exporter.wait_for_end(case.port, 0, abandoned=(0, 1))


def test_a_client_that_ends_its_side_and_is_answered_has_made_a_request(exporter, talk):
    case = talk("read:100,eof,write:100")
    case.client.sendall(REQUEST)
    case.client.shutdown(socket.SHUT_WR)
    receive(case.client)
    exporter.wait_for_end(case.port, 1)


@pytest.mark.bounds
@pytest.mark.parametrize(
    "server, unrequested",
    [
        pytest.param(PostgreSQL, 0, marks=pytest.mark.xdist_group("postgresql"), id="postgresql"),
        pytest.param(MariaDB, CONNECTIONS, id="mariadb"),
    ],
)
def test_who_leaves_a_database_says_goodbye(exporter, start, server, unrequested):
    """One whose end is seen more than 10 ms after its last message has given up."""
    database = start(server)
    exporter.workload_of(database.port)
    for _ in range(CONNECTIONS):
        database.query()
    end = exporter.wait_for_endpoint(database.port, Endpoint.leavers, CONNECTIONS)
    late = end.abandoned()[1]
    assert late <= bound(0, CONNECTIONS / 2)
    exporter.wait_for_end(
        database.port,
        2 * CONNECTIONS,
        abandoned=(0, late),
        goodbyes=CONNECTIONS - late,
        unrequested=unrequested,
    )


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_close_notify_is_a_goodbye(exporter, start, connect, tmp_path, version):
    """Before it: the turns of the handshake (one more in TLS 1.2), and two requests."""
    server = start(TlsServer, tmp_path)
    exporter.workload_of(server.port)
    context = trusting(version)
    for _ in range(CONNECTIONS):
        client = context.wrap_socket(connect(server.port))
        exchange(client)
        exchange(client)
        client.setblocking(False)
        hold_back(client)
        with contextlib.suppress(ssl.SSLWantReadError):
            client.unwrap()  # sends it, and does not wait for the server's
        client.close()
    exporter.wait_for_end(server.port, 4 * CONNECTIONS, goodbyes=CONNECTIONS)
