# SPDX-License-Identifier: Apache-2.0
"""
Turns that are not simply one read and one write: each with its exact counts.

The server plays a script (tests/workloads/talker.c), the client is written out here.
"""

import socket
import time

import pytest

from clients import GOODBYE_SECONDS, LATE_SECONDS, REQUEST, UPLOAD, exchange, receive, reset
from exposition import Endpoint

LATE_CONNECTIONS, LATE_REQUESTS = 10, 10

def test_a_body_in_many_small_sends_is_one_request(exporter, talk):
    case = talk("read:1000,write:100,eof")
    for _ in range(100):
        case.client.sendall(b"b" * 10)
        time.sleep(0.001)
    receive(case.client)
    case.client.close()
    end = exporter.wait_for_end(case.port, 1)
    assert end.get("workload_received_bytes_total") == 1000


def test_a_body_that_comes_late_is_service_and_not_queue(exporter, talk):
    case = talk("read:100,read:100,write:100,eof")
    began = time.monotonic()
    case.client.sendall(UPLOAD)
    taken = exporter.wait_for_endpoint(case.port, lambda e: e.gauges()[1], 1).scrape.ended
    time.sleep(0.3)
    late = time.monotonic()
    case.client.sendall(REQUEST)
    receive(case.client)
    case.client.close()
    end = exporter.wait_for_end(case.port, 1)
    assert end.seconds("queue") <= taken - began
    assert late - taken <= end.seconds("service") <= end.scrape.ended - began


def test_an_answer_in_many_writes_is_one_request(exporter, talk):
    case = talk("read:100," + "write:10," * 50 + "eof")
    case.client.sendall(REQUEST)
    receive(case.client, 500)
    case.client.close()
    end = exporter.wait_for_end(case.port, 1)
    assert end.get("workload_sent_bytes_total") == 500


PIECE, PIECES = 65536, 64
TURNS = 1280  # of 4 MiB each: 5 GiB


def test_more_bytes_are_read_between_two_scrapes_than_a_sequence_number_tells(exporter, talk):
    case = talk(f"read:{PIECE}," * PIECES + "write:1,loop")
    for _ in range(TURNS):
        case.client.sendall(bytes(PIECE * PIECES))
        receive(case.client, 1)
    case.client.close()
    end = exporter.wait_for_end(case.port, TURNS)
    assert end.get("workload_received_bytes_total") == TURNS * PIECE * PIECES
    assert end.get("workload_sent_bytes_total") == TURNS


def test_more_bytes_are_sent_between_two_scrapes_than_a_sequence_number_tells(exporter, talk):
    case = talk("read:1," + f"write:{PIECE}," * PIECES + "loop")
    for _ in range(TURNS):
        case.client.sendall(b"q")
        receive(case.client, PIECE * PIECES)
    case.client.close()
    end = exporter.wait_for_end(case.port, TURNS)
    assert end.get("workload_received_bytes_total") == TURNS
    assert end.get("workload_sent_bytes_total") == TURNS * PIECE * PIECES


def received_and_sent(end):
    return end.get("workload_received_bytes_total"), end.get("workload_sent_bytes_total")


def test_bytes_are_told_while_the_connection_stays_open(exporter, talk):
    case = talk("read:100,write:300,loop")
    for _ in range(7):
        case.client.sendall(REQUEST)
        receive(case.client, 300)
    exporter.wait_for_endpoint(case.port, received_and_sent, (700, 2100))
    case.client.sendall(REQUEST)
    receive(case.client, 300)
    exporter.wait_for_endpoint(case.port, received_and_sent, (800, 2400))


def test_bytes_that_are_read_after_the_server_has_ended_its_side_count(exporter, talk):
    case = talk("read:100,write:100,shut,read:1000,eof")
    exchange(case.client)
    assert case.client.recv(1) == b""
    case.client.sendall(b"b" * 1000)
    # Before the client ends its side, too: then the syscall backend forgets the connection.
    exporter.wait_for_endpoint(case.port, received_and_sent, (1100, 100))
    case.client.close()
    exporter.wait_for_end(case.port, 1)
    exporter.wait_for_endpoint(case.port, received_and_sent, (1100, 100))


@pytest.mark.bounds
def test_service_ends_with_the_last_write(exporter, talk):
    case = talk("read:100,write:10,sleep:100,write:10,sleep:100,write:10,sleep:400")
    began = time.monotonic()
    case.client.sendall(REQUEST)
    receive(case.client, 30)
    answered = time.monotonic()
    end = exporter.wait_for_end(case.port, 1)
    assert 0.2 <= end.seconds("service") <= answered - began + LATE_SECONDS


def check_service_is_what_the_server_measures(end, server):
    assert end.seconds("service") * 1e9 == pytest.approx(
        server.ask("stats")["service_ns"], rel=0.02
    )


@pytest.mark.parametrize(
    "answer",
    [
        "more:50,sleep:100,write:50",
        "cork,write:50,sleep:100,write:50,uncork",
        "sleep:100,cork,write:100,sleep:50,uncork",
    ],
    ids=["more", "cork", "corked-after-it"],
)
@pytest.mark.times
def test_service_ends_with_the_last_write_of_what_the_kernel_holds_back(exporter, talk, answer):
    case = talk(f"read:100,{answer},loop")
    for _ in range(10):
        exchange(case.client)
    case.client.close()
    end = exporter.wait_for_end(case.port, 10)
    assert end.get("workload_sent_bytes_total") == 1000
    assert end.seconds("service") > 0.99
    check_service_is_what_the_server_measures(end, case.server)


@pytest.mark.parametrize(
    "script, writes, blocks",
    [("read:100,", 200, True), ("read:100,sleep:100,", 20, False)],
    ids=["blocks", "buffered"],
)
@pytest.mark.times
def test_service_ends_with_the_last_write_to_a_client_that_does_not_read(
    exporter, talk, connect, script, writes, blocks
):
    """The answer has room in the buffers of the sockets or not; its end is transmitted later."""
    case = talk(script + "write:65536," * writes + "eof")
    clients = [case.client] + [connect(case.port) for _ in range(3)]
    for client in clients:
        client.sendall(REQUEST)
    time.sleep(0.5)
    for client in clients:
        receive(client, writes * 65536)
        client.close()
    end = exporter.wait_for_end(case.port, 4)
    assert end.get("workload_sent_bytes_total") == 4 * writes * 65536
    assert (end.seconds("service") > 4 * 0.45) == blocks
    check_service_is_what_the_server_measures(end, case.server)


@pytest.mark.parametrize(
    "script",
    ["read:100,sendfile:30000,eof", "read:100,spliceout:30000,eof"],
    ids=["sendfile", "splice"],
)
def test_bytes_that_never_pass_read_and_write_are_seen(exporter, talk, script):
    all_of_it_is_seen(exporter, talk(script))


def test_io_uring_is_seen_at_the_sockets_and_lost_in_public_at_system_calls(exporter, talk):
    case = talk("uring:100,uringout:30000,eof")
    if exporter.backend == "socket":
        all_of_it_is_seen(exporter, case)
    else:
        it_is_lost_in_public(exporter, case)


def test_io_uring_at_the_end_of_another_call_is_seen_at_the_sockets(exporter, talk, connect):
    """Of that call nothing is looked at, though it reads what looks like requests with bodies."""
    case = talk("uringlate:100,write:100,loop")
    clients = [case.client] + [connect(case.port) for _ in range(LATE_CONNECTIONS - 1)]
    for client in clients:
        for _ in range(LATE_REQUESTS):
            time.sleep(0.001)  # the server asks for it first
            exchange(client)
        client.close()
    if exporter.backend == "socket":
        end = exporter.wait_for_end(case.port, LATE_CONNECTIONS * LATE_REQUESTS)
        model = end.get("workload_connections_accepted_total", io_model="io_uring")
        assert model == LATE_CONNECTIONS
    else:
        exporter.wait_for_end(case.port, 0)


def test_splice_is_seen_at_system_calls_and_lost_in_public_at_the_sockets(exporter, talk):
    """No tracepoint of sockets tells of bytes that splice(2) takes from one."""
    case = talk("splice:100,write:30000,eof")
    if exporter.backend == "syscall":
        all_of_it_is_seen(exporter, case)
    else:
        it_is_lost_in_public(exporter, case)


def all_of_it_is_seen(exporter, case):
    case.client.sendall(REQUEST)
    receive(case.client, 30000)
    case.client.close()
    end = exporter.wait_for_end(case.port, 1)
    assert end.get("workload_received_bytes_total") == 100
    assert end.get("workload_sent_bytes_total") == 30000


def it_is_lost_in_public(exporter, case):
    before = unpaired(exporter.scrape())
    case.client.sendall(REQUEST)
    receive(case.client, 30000)
    case.client.close()
    exporter.wait_for_end(case.port, 0)
    exporter.wait_until(lambda s: unpaired(s) >= before + 1)


def unpaired(scrape):
    return scrape.one("workload_exporter_dropped_total", reason="request_unpaired")


def test_a_half_closed_client_gets_its_answer_counted(exporter, talk):
    case = talk("read:100,eof,write:100")
    case.client.sendall(REQUEST)
    case.client.shutdown(socket.SHUT_WR)
    receive(case.client)
    exporter.wait_for_end(case.port, 1)


def test_a_client_that_says_nothing_is_no_request(exporter, talk):
    case = talk("wait")
    case.client.shutdown(socket.SHUT_WR)
    exporter.wait_for_endpoint(case.port, Endpoint.gauges, (0, 0, 0, 1))
    case.server.ask("go")
    exporter.wait_for_end(case.port, 0)


def test_a_reset_before_the_read_abandons_a_queued_request(exporter, talk):
    case = talk("wait,read:100,write:100")
    case.client.sendall(REQUEST)
    oldest = "workload_request_oldest_queued_seconds"
    exporter.wait_until(lambda s: s.one(oldest, port=case.port) > GOODBYE_SECONDS)
    reset(case.client)
    exporter.wait_for_endpoint(case.port, Endpoint.abandoned, (1, 0))
    case.server.ask("go")
    exporter.wait_for_end(case.port, 0, abandoned=(1, 0))


def test_a_server_that_closes_unread_abandons_a_queued_request(exporter, talk):
    case = talk("wait")
    case.client.sendall(REQUEST)
    exporter.wait_for_endpoint(case.port, lambda e: e.gauges()[0], 1)
    case.server.ask("go")
    exporter.wait_for_end(case.port, 0, abandoned=(1, 0))


def test_a_reset_during_service_abandons_a_request_in_service(exporter, talk):
    case = talk("read:100,wait,write:100")
    case.client.sendall(REQUEST)
    exporter.wait_for_endpoint(case.port, lambda e: e.gauges()[1], 1)
    reset(case.client)
    exporter.wait_for_endpoint(case.port, Endpoint.abandoned, (0, 1))
    case.server.ask("go")
    exporter.wait_for_end(case.port, 0, abandoned=(0, 1))


def test_a_server_that_closes_without_an_answer_abandons_a_request_in_service(exporter, talk):
    case = talk("read:100")
    case.client.sendall(REQUEST)
    exporter.wait_for_endpoint(case.port, Endpoint.abandoned, (0, 1))
    exporter.wait_for_end(case.port, 0, abandoned=(0, 1))


def timed_exchange(client):
    """Seconds that one request and its answer take the client."""
    began = time.monotonic()
    exchange(client)
    return time.monotonic() - began


@pytest.mark.bounds
def test_an_answered_request_is_counted_while_its_connection_idles(exporter, talk):
    case = talk("read:100,write:100,loop")
    took = timed_exchange(case.client)
    settled = exporter.wait_for_endpoint(case.port, Endpoint.counts, (1, 1, 1))
    assert settled.gauges() == (0, 0, 0, 1)
    assert settled.seconds("duration") <= took + LATE_SECONDS
    took += timed_exchange(case.client)
    case.client.close()
    end = exporter.wait_for_end(case.port, 2)
    assert end.seconds("duration") <= took + LATE_SECONDS


@pytest.mark.bounds
def test_every_request_of_a_connection_has_its_queue_time(exporter, talk):
    case = talk("wait,read:100,write:100,loop")
    least = most = 0
    for _ in range(3):
        began = time.monotonic()
        case.client.sendall(REQUEST)
        sent = time.monotonic()
        time.sleep(0.2)
        least += time.monotonic() - sent
        case.server.ask("go")
        receive(case.client)
        most += time.monotonic() - began
    case.client.close()
    case.server.ask("go")
    end = exporter.wait_for_end(case.port, 3)
    assert least - LATE_SECONDS <= end.seconds("queue") <= most


@pytest.mark.parametrize(
    "script",
    ["mark:1000,pollin,read:1000,write:100,loop",
     "mark:1,wait,mark:1000,pollin,read:1000,write:100,loop"],
    ids=["marked", "marked later"],
)  # fmt: skip
@pytest.mark.bounds
def test_bytes_below_the_mark_of_a_socket_wait(exporter, talk, script):
    """SO_RCVLOWAT: the kernel calls the socket readable when the last bytes have come."""
    case = talk(script)
    least = most = 0
    for _ in range(3):
        began = time.monotonic()
        case.client.sendall(b"r" * 10)
        sent = time.monotonic()
        exporter.wait_for_endpoint(case.port, lambda e: e.gauges()[:2], (1, 0))
        if "wait" in script:
            case.server.ask("go")
        time.sleep(0.2)
        least += time.monotonic() - sent
        case.client.sendall(b"r" * 990)
        receive(case.client)
        most += time.monotonic() - began
    case.client.close()
    if "wait" in script:
        case.server.ask("go")
    end = exporter.wait_for_end(case.port, 3)
    assert least - LATE_SECONDS <= end.seconds("queue") <= most
    assert end.seconds("service") <= most - least


def test_a_peek_does_not_take_the_request(exporter, talk):
    case = talk("peek,sleep:200,read:100,write:100,eof")
    took = timed_exchange(case.client)
    case.client.close()
    end = exporter.wait_for_end(case.port, 1)
    assert 0.2 <= end.seconds("queue") <= took
    assert end.get("workload_received_bytes_total") == 100


def test_a_server_that_speaks_first_answers_nothing(exporter, talk):
    case = talk("write:20,read:100,write:100,eof")
    receive(case.client, 20)
    exchange(case.client)
    case.client.close()
    end = exporter.wait_for_end(case.port, 1, unrequested=1)
    assert end.get("workload_sent_bytes_total") == 120


def test_a_push_after_the_answer_settled_is_no_answer(exporter, talk):
    case = talk("read:100,write:100,wait,write:50,eof")
    exchange(case.client)
    settled = exporter.wait_for_endpoint(case.port, Endpoint.counts, (1, 1, 1))
    case.server.ask("go")
    receive(case.client, 50)
    case.client.close()
    end = exporter.wait_for_end(case.port, 1, unrequested=1)
    assert end.seconds("service") == settled.seconds("service")


def test_pipelined_requests_read_at_once_are_one(exporter, talk):
    case = talk("once:65536,write:200,eof")
    case.client.sendall(REQUEST + REQUEST)
    receive(case.client, 200)
    case.client.close()
    exporter.wait_for_end(case.port, 1)


def test_pipelined_requests_read_one_by_one_are_counted_each(exporter, talk):
    case = talk("read:100,sleep:200,write:100,read:100,write:100,eof")
    began = time.monotonic()
    case.client.sendall(REQUEST + REQUEST)
    receive(case.client, 200)
    took = time.monotonic() - began
    case.client.close()
    end = exporter.wait_for_end(case.port, 2)
    assert 0.2 <= end.seconds("queue") <= 2 * took - 0.2


@pytest.mark.bounds
def test_each_pipelined_request_has_waited_since_it_arrived(exporter, talk):
    """Three come one after the other while the server is stuck, which then reads one by one."""
    case = talk("wait," + "read:100,write:100," * 3 + "eof")
    began, sent = [], []
    for _ in range(3):
        began.append(time.monotonic())
        case.client.sendall(REQUEST)
        sent.append(time.monotonic())
        time.sleep(0.1)
    time.sleep(0.3)
    released = time.monotonic()
    case.server.ask("go")
    receive(case.client, 300)
    answered = time.monotonic()
    case.client.close()
    end = exporter.wait_for_end(case.port, 3)
    least, most = sum(released - at for at in sent), sum(answered - at for at in began)
    assert least - LATE_SECONDS <= end.seconds("queue") <= most


@pytest.mark.parametrize("late", [False, True], ids=["there", "late"])
def test_a_body_that_is_not_wanted_is_no_abandoned_request(exporter, talk, connect, late):
    """413: the answer follows the first bytes, and the connection closes with the others unread."""
    case = talk("once:100,wait,write:100,sleep:50")
    clients = [case.client] + [connect(case.port) for _ in range(19)]
    for client in clients:
        client.sendall(REQUEST if late else REQUEST * 50)
    exporter.wait_for_endpoint(case.port, lambda e: e.gauges()[1], 20)
    if late:
        for client in clients:
            client.sendall(REQUEST * 49)
    for _ in clients:
        case.server.ask("go")
    for client in clients:
        receive(client)
    exporter.wait_for_end(case.port, 20)


def test_a_request_behind_an_answered_one_that_is_never_read_is_abandoned(exporter, talk):
    case = talk("read:100,write:100,wait")
    exchange(case.client)
    case.client.sendall(REQUEST)
    exporter.wait_for_endpoint(case.port, lambda e: e.gauges()[0], 1)
    case.server.ask("go")
    exporter.wait_for_end(case.port, 1, abandoned=(1, 0))


@pytest.mark.bounds
def test_a_request_that_arrives_during_another_waits_from_then_on(exporter, talk):
    case = talk("read:100,wait,write:100,loop")
    began = time.monotonic()
    case.client.sendall(REQUEST)
    taken = exporter.wait_for_endpoint(case.port, lambda e: e.gauges()[:2], (0, 1)).scrape.ended
    sent = time.monotonic()
    case.client.sendall(REQUEST)
    arrived = time.monotonic()
    time.sleep(0.3)
    least = time.monotonic() - arrived
    case.server.ask("go")
    case.server.ask("go")
    receive(case.client, 200)
    most = time.monotonic() - sent
    case.client.close()
    end = exporter.wait_for_end(case.port, 2)
    # The first one may have waited too, until it was seen in service at most.
    assert least - LATE_SECONDS <= end.seconds("queue") <= most + taken - began
