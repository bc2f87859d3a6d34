# SPDX-License-Identifier: Apache-2.0
"""
A request is in progress until its answer has ended: whoever looks, however often, and whatever else
passes over the connection.
"""

import time

import pytest

from clients import REQUEST, receive, reset
from services import Nginx

ANSWER_BYTES = 8_000_000
STALLED_SECONDS = 1.2


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


def test_an_answer_that_a_reset_cuts_off_ends_with_it(exporter, talk):
    case = talk(f"read:100,write:100,write:{ANSWER_BYTES},eof")
    began = time.monotonic()
    case.client.sendall(REQUEST)
    receive(case.client, 100)
    time.sleep(0.5)
    reset(case.client)
    end = exporter.wait_for_end(case.port, 1)
    assert 0.5 <= end.seconds("service") <= end.scrape.ended - began
