# SPDX-License-Identifier: Apache-2.0
"""
A request is in progress until its answer has ended: whoever looks, however often, and whatever else
passes over the connection.
"""

import socket
import subprocess
import sys
import time

import pytest

import servers
from clients import LATE_SECONDS, REQUEST, exchange, receive, reset
from exporter import bound
from services import Nginx, free_port, wait_until

ANSWER_BYTES = 8_000_000
STALLED_SECONDS = 1.2
SWEEP_SECONDS = 1.1
WAIT_SECONDS = 30
CONNECTIONS = 10


def read_slowly(client, size, seconds, look=lambda: None):
    """Takes @size bytes in at least @seconds; look() is called about every tenth of a second."""
    began = time.monotonic()
    looked = began
    taken = 0
    while taken < size:
        if taken <= size * (time.monotonic() - began) / seconds:
            part = client.recv(65536)
            assert part, "the peer closed early"
            taken += len(part)
        else:
            time.sleep(0.005)
        if time.monotonic() - looked > 0.1:
            look()
            looked = time.monotonic()


@pytest.mark.parametrize("scraped", [False, True], ids=["unscraped", "scraped"])
def test_an_answer_that_blocks_is_one_request_however_often_it_is_scraped(exporter, talk, scraped):
    """A head, and then one write that a slow reader blocks: it is told only when it returns."""
    case = talk(f"read:100,write:100,write:{ANSWER_BYTES},eof")
    began = time.monotonic()
    case.client.sendall(REQUEST)
    receive(case.client, 100)
    seen = []

    def look():
        if scraped:
            seen.append(exporter.endpoint(case.port).get("workload_requests_in_service"))

    time.sleep(STALLED_SECONDS)  # older than a second, and the write does not move
    look()
    read_slowly(case.client, ANSWER_BYTES, 2.5, look)
    case.client.close()
    end = exporter.wait_for_end(case.port, 1)
    assert STALLED_SECONDS < end.seconds("service") <= end.scrape.ended - began
    # At the end what is left of it fits into the buffers.
    assert not scraped or seen[: len(seen) // 3] == [1] * (len(seen) // 3)


def test_an_event_loop_that_waits_for_room_serves_still(exporter, start, connect, tmp_path):
    """nginx gives the answer in parts, and after each waits for room; the last part is the end."""
    (tmp_path / "large").write_bytes(bytes(ANSWER_BYTES))
    nginx = start(Nginx, tmp_path, location=f"root {tmp_path};")
    exporter.workload_of(nginx.port)
    client = connect(nginx.port)
    began = time.monotonic()
    client.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
    seen = []
    time.sleep(2.5)
    seen = [exporter.endpoint(nginx.port).get("workload_requests_in_service") for _ in range(3)]
    time.sleep(1.2)
    seen += [exporter.endpoint(nginx.port).get("workload_requests_in_service") for _ in range(3)]
    read_slowly(client, ANSWER_BYTES, 0.1)
    client.close()
    assert seen == [1] * 6
    end = exporter.wait_for_end(nginx.port, 1)
    assert 3.7 < end.seconds("service") <= end.scrape.ended - began


SLOW_CLIENT_ROOM = 4096


def taken_at_once():
    """How much of an answer of servers.asyncio() TCP takes for a slow client: of each kernel another amount."""
    asks = f"""
import socket
with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as client:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, {SLOW_CLIENT_ROOM})
    client.connect(listener.getsockname())
    server, _ = listener.accept()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, {servers.ASYNCIO_ROOM})
    server.setblocking(False)
    print(server.send(bytes({10 * servers.ASYNCIO_ROOM})))
"""
    return int(subprocess.run([sys.executable, "-c", asks], capture_output=True, check=True).stdout)


def slow_client(port):
    """Its kernel takes a few kB in for it."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SLOW_CLIENT_ROOM)
    client.settimeout(WAIT_SECONDS)

    def connected():
        return client.connect_ex(("127.0.0.1", port)) == 0

    wait_until(connected, WAIT_SECONDS, "nobody listens")
    return client


@pytest.mark.bounds
@pytest.mark.parametrize("selector", ["EpollSelector", "PollSelector"])
@pytest.mark.parametrize("share, serving", [(0.9, 0), (10, 1)], ids=["taken", "cut"])
def test_a_loop_serves_as_long_as_tcp_has_not_taken_the_answer(
    exporter, start, share, serving, selector
):
    """Over two thirds of the room are taken, so that whoever polls is told that there is none."""
    size = int(share * taken_at_once())
    port = free_port()
    servers.asyncio(start, port, size, selector=selector)
    client = slow_client(port)
    exporter.workload_of(port)
    client.sendall(REQUEST)
    receive(client, 1)
    sent = time.monotonic()
    exporter.wait_for_endpoint(port, lambda end: end.gauges()[1], serving)
    for _ in range(3):
        time.sleep(SWEEP_SECONDS)
        end = exporter.endpoint(port)
        assert end.gauges() == (0, serving, 0, 1)
        assert bool(end.get("workload_request_oldest_in_service_seconds")) == bool(serving)
    stalled = time.monotonic() - sent
    receive(client, size - 1)
    client.close()
    end = exporter.wait_for_end(port, 1)
    if serving:
        assert stalled <= end.seconds("service") <= time.monotonic() - sent + LATE_SECONDS
    else:
        assert end.seconds("service") < stalled


def test_what_is_sent_where_no_poller_found_room_may_be_all(exporter, start):
    """The first send leaves less than a third, a poll says so, and there is still room for more."""
    port, sizes = free_port(), (220_000, 10_000)
    servers.asyncio(start, port, sizes[0], 0.1, sizes[1], selector="PollSelector")
    client = slow_client(port)
    exporter.workload_of(port)
    client.sendall(REQUEST)
    receive(client, 1)
    time.sleep(2 * SWEEP_SECONDS)
    exporter.wait_for_endpoint(port, lambda end: end.gauges(), (0, 0, 0, 1))
    assert exporter.endpoint(port).counts() == (1, 1, 1)
    receive(client, sum(sizes) - 1)
    client.close()
    exporter.wait_for_end(port, 1)


@pytest.mark.bounds
@pytest.mark.parametrize("scraped", [False, True], ids=["unscraped", "scraped"])
def test_an_answer_of_a_loop_ends_where_it_pauses(exporter, start, scraped):
    port, first, pause, last = free_port(), 0.8, 1.6, 0.7
    server = servers.asyncio(start, port, 100, first, 100, pause, 100, last, 100)
    client = slow_client(port)
    exporter.workload_of(port)
    for turn in range(1, 3):
        client.sendall(REQUEST)
        asked = time.monotonic()
        while time.monotonic() < asked + first + pause + last:
            if scraped:
                exporter.scrape()
            time.sleep(0.1)
        receive(client, 400)
        server.wait_for_rest()
        time.sleep(turn % 2 * SWEEP_SECONDS)
    client.close()
    end = exporter.wait_for_end(port, 2, unrequested=4)
    assert 2 * first <= end.seconds("service") <= 2 * first + bound(LATE_SECONDS, pause)


@pytest.mark.bounds
@pytest.mark.parametrize("scraped", [False, True], ids=["unscraped", "scraped"])
def test_an_answer_of_a_thread_does_not_end_where_the_thread_waits(exporter, talk, scraped):
    case = talk("read:100,write:100,sleep:2500,write:100,loop")
    for _ in range(2):
        case.client.sendall(REQUEST)
        asked = time.monotonic()
        while scraped and time.monotonic() < asked + 2:
            exporter.scrape()
            time.sleep(0.1)
        receive(case.client, 200)
    case.client.close()
    end = exporter.wait_for_end(case.port, 2)
    assert 5 <= end.seconds("service") <= 5 + 2 * LATE_SECONDS


@pytest.mark.parametrize(
    "end", ["os.kill(os.getpid(), signal.SIGKILL)", "os.abort()", "os._exit(1)"], ids=["killed", "aborted", "failed"]
)
def test_a_process_that_crashes_has_been_told_no_goodbye(exporter, start, end):
    """Within milliseconds of its read, on a connection that has had an answer."""
    port = free_port()
    servers.forking(start, port, end)
    exporter.workload_of(port)
    for _ in range(CONNECTIONS):
        client = slow_client(port)
        exchange(client)
        client.sendall(REQUEST)
        assert client.recv(1) == b""
        client.close()
    exporter.wait_for_end(port, CONNECTIONS, abandoned=(0, CONNECTIONS))


def test_an_answer_that_a_reset_cuts_off_ends_with_it(exporter, talk):
    case = talk(f"read:100,write:100,write:{ANSWER_BYTES},eof")
    began = time.monotonic()
    case.client.sendall(REQUEST)
    receive(case.client, 100)
    time.sleep(0.5)
    reset(case.client)
    end = exporter.wait_for_end(case.port, 1)
    assert 0.5 <= end.seconds("service") <= end.scrape.ended - began
