# SPDX-License-Identifier: Apache-2.0
"""
Messages that nothing answers: they are in no histogram, in service for no longer than their reader
is at them, and their connections are counted.
"""

import ftplib
import io
import time

import pytest

import servers
from clients import REQUEST, Asking, hold_back, receive
from exposition import Endpoint
from services import Redis, Service, free_port, wait_until

SILENCE_SECONDS = 0.7  # more than half a second: the client goes on of its own accord
TURNS = 4
WAIT_SECONDS = 30
SWEEP_SECONDS = 1.3  # after that a sweep has passed
UPLOADS = 20
LINE = b"<14>Nov 25 23:00:00 host program: a message\n"


def in_service(end):
    return (
        end.get("workload_requests_in_service"),
        end.get("workload_request_oldest_in_service_seconds"),
    )


def test_a_line_for_a_syslog_is_in_service_for_nobody(exporter, start, connect):
    """An event loop reads it, and on a port like this nothing has been answered."""
    port = free_port()
    server = servers.syslog(start, port)
    exporter.workload_of(port)
    client, messages = connect(port), server.place / "messages.log"
    lines = 0

    def send():
        nonlocal lines
        client.sendall(LINE)
        lines += 1
        wait_until(
            lambda: messages.exists() and len(messages.read_text().splitlines()) == lines,
            WAIT_SECONDS,
            "the line is not written",
        )

    send()
    server.wait_for_rest()
    assert in_service(exporter.endpoint(port)) == (0, 0)
    time.sleep(SWEEP_SECONDS)
    for _ in range(TURNS):
        send()
        server.wait_for_rest()
        assert in_service(exporter.endpoint(port)) == (0, 0)
        time.sleep(SILENCE_SECONDS)
    assert exporter.endpoint(port).get("workload_one_way_connections_total") == 1
    client.close()
    exporter.wait_for_end(port, 0, unanswered=lines, one_way=1)


def test_a_syslog_client_that_leaves_has_said_no_goodbye(exporter, start, connect):
    port = free_port()
    servers.syslog(start, port)
    exporter.workload_of(port)
    for _ in range(UPLOADS):
        client = connect(port)
        hold_back(client)
        client.sendall(LINE)
        client.close()
    exporter.wait_for_end(port, 0, unanswered=UPLOADS, one_way=UPLOADS)


def test_uploads_by_ftp_are_messages(exporter, start):
    """Each has a connection of its own; the commands are requests as ever."""
    port, data = free_port(), free_port()
    server = servers.ftp(start, port, data)
    exporter.workload_of(port)
    client = ftplib.FTP()
    client.connect("127.0.0.1", port, WAIT_SECONDS)
    client.login()
    for size in range(UPLOADS):
        client.storbinary(f"STOR file{size}", io.BytesIO(b"x" * (1 + size**4)))
    client.quit()
    assert len(list(server.place.iterdir())) == UPLOADS

    exporter.wait_for_end(data, 0, unanswered=UPLOADS, one_way=UPLOADS)
    assert exporter.endpoint(port).get("workload_one_way_connections_total") == 0


@pytest.mark.long
def test_what_a_replica_tells_is_no_request(exporter, start, tmp_path):
    """
    It acknowledges once a second, and nothing answers that; now and then the other side sends a sign
    of life, which is no answer either.
    """
    first = start(Redis, tmp_path, "--repl-ping-replica-period", "3")
    born = time.monotonic()
    exporter.workload_of(first.port)
    # Each acts at whole seconds since it began. What is read and sent in one go would be a request.
    time.sleep(1.5 - (time.monotonic() - born) % 1)
    start(Redis, tmp_path, "--replicaof", "127.0.0.1", str(first.port))

    def one_way(end):
        return end.get("workload_one_way_connections_total")

    began = exporter.wait_for_endpoint(
        first.port, lambda end: (one_way(end), *in_service(end)), (1, 0, 0)
    )
    signs = began.get("workload_unrequested_sends_total")
    seen = []

    def two_signs_later(scrape):
        end = Endpoint(scrape, first.port)
        seen.append(in_service(end))
        return end.get("workload_unrequested_sends_total") >= signs + 2

    exporter.wait_until(two_signs_later)
    end = exporter.endpoint(first.port)
    assert end.counts() == began.counts()
    assert set(seen) == {(0, 0)}
    assert end.get("workload_unanswered_reads_total") > began.get("workload_unanswered_reads_total")
    assert one_way(end) == 1


@pytest.mark.bounds
def test_a_command_port_may_acknowledge_some_commands(exporter, start, connect):
    """Every fourth: that is a request, with its own times."""
    work = 0.05
    script = f"read:100,read:100,read:100,read:100,sleep:{work * 1000:.0f},write:100,loop"
    server = start(Service, "talker", script=script)
    exporter.workload_of(server.port)
    client, asking = connect(server.port), Asking(SILENCE_SECONDS)
    for _ in range(TURNS):
        for _ in range(3):
            client.sendall(REQUEST)
            time.sleep(SILENCE_SECONDS)
        with asking:
            client.sendall(REQUEST)
            receive(client)
    client.close()
    end = exporter.wait_for_end(server.port, TURNS, unanswered=3 * TURNS, one_way=1)
    assert end.seconds("service") >= TURNS * work
    asking.check(end)


def test_parts_of_a_request_are_no_messages(exporter, start, connect):
    """As they are sent without a pause, or with one of Nagle's algorithm and a round trip."""
    server = start(Service, "talker", script="read:400,write:100,loop")
    exporter.workload_of(server.port)
    client = connect(server.port)
    for pause in (0, 0.05, 0.2):
        for _ in range(4):
            client.sendall(REQUEST)
            time.sleep(pause)
        receive(client)
    client.close()
    exporter.wait_for_end(server.port, 3)
