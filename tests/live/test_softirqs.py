# SPDX-License-Identifier: Apache-2.0
"""
What a softirq does while it interrupts a program that a thread runs into: the kernel skips that
program for as long, and a copy of it takes the events.
"""

import collections
import socket
import time
from concurrent.futures import ThreadPoolExecutor

from kernel_types import programs_are_preempted
from services import Nginx

CLIENTS = 2
SECONDS = 3
KEPT_SECONDS = 0.1  # a client's end of a connection; TCP puts off its last ACK for 40 ms
REQUEST = b"GET / HTTP/1.0\r\n\r\n"


def leave_the_end_to_the_server(port):
    """
    The server ends each connection first. The timers of many clients bring it the ACKs for that, in
    a softirq, in which so many connections end.
    """
    kept, asked, end = collections.deque(), 0, time.monotonic() + SECONDS
    while time.monotonic() < end:
        client = socket.create_connection(("127.0.0.1", port))
        client.sendall(REQUEST)
        assert client.recv(65536).startswith(b"HTTP/1.1 200 ")
        kept.append((time.monotonic() + KEPT_SECONDS, client))
        asked += 1
        while kept and kept[0][0] < time.monotonic():
            kept.popleft()[1].close()
    for _, client in kept:
        client.close()
    return asked


def test_what_a_softirq_brings_while_a_program_runs_is_seen(exporter, start, tmp_path):
    nginx = start(Nginx, tmp_path)
    exporter.workload_of(nginx.port)
    skipped = exporter.scrape().losses().get("program_skipped", 0)
    with ThreadPoolExecutor(CLIENTS) as clients:
        asked = sum(clients.map(leave_the_end_to_the_server, [nginx.port] * CLIENTS))
    end = exporter.wait_for_end(nginx.port, asked)
    if not programs_are_preempted():  # where they are, what is told may be too much
        assert end.scrape.losses().get("program_skipped", 0) == skipped
