# SPDX-License-Identifier: Apache-2.0
"""TCP Fast Open: the first bytes come with the SYN, which makes the connection."""

import subprocess
import sys
import time

import pytest

from services import WITH_FAST_OPEN, Service

REQUESTS = 20
CLIENT = f"""
import socket, sys
for _ in range({REQUESTS}):
    with socket.socket() as client:
        client.sendto(b"q" * 100, socket.MSG_FASTOPEN, ("127.0.0.1", int(sys.argv[1])))
        missing = 100
        while missing:
            missing -= len(client.recv(missing))
        if sys.argv[2:]:
            client.sendall(b"q" * 100)
            assert client.recv(100)
names, values = [
    line.split() for line in open("/proc/net/netstat") if line.startswith("TcpExt")
]
print(values[names.index("TCPFastOpenPassive")])
"""


def run_client(server, *arguments):
    inside = ["nsenter", f"--target={server.pid}", "--net", sys.executable, "-c", CLIENT]
    return subprocess.run(
        [*inside, str(server.port), *arguments],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout


@pytest.mark.parametrize("wait_ms", [0, 50])
def test_requests_that_come_with_the_syn_are_counted_and_have_waited(exporter, start, wait_ms):
    server = start(
        Service, "talker", prefix=WITH_FAST_OPEN, script=f"sleep:{wait_ms},read:100,write:100,eof"
    )
    exporter.workload_of(server.port)
    began = time.monotonic()
    assert int(run_client(server)) == REQUESTS
    most = time.monotonic() - began
    end = exporter.wait_for_end(server.port, REQUESTS)
    assert REQUESTS * wait_ms / 1000 <= end.seconds("queue") < most


def test_later_requests_of_such_a_connection_are_like_any_others(exporter, start):
    server = start(Service, "talker", prefix=WITH_FAST_OPEN, script="read:100,write:100,loop")
    exporter.workload_of(server.port)
    assert int(run_client(server, "more")) == REQUESTS
    exporter.wait_for_end(server.port, 2 * REQUESTS)


def test_one_that_waits_is_queued(exporter, start):
    server = start(Service, "talker", prefix=WITH_FAST_OPEN, script="wait,read:100,write:100,eof")
    exporter.workload_of(server.port)
    began = time.monotonic()
    client = subprocess.Popen(
        ["nsenter", f"--target={server.pid}", "--net", sys.executable, "-c", CLIENT]
        + [str(server.port)],
        stdout=subprocess.DEVNULL,
    )
    try:
        queued = exporter.wait_for_endpoint(server.port, lambda e: e.gauges()[0], 1)
        age = queued.get("workload_request_oldest_queued_seconds")
        assert 0 < age < time.monotonic() - began
        for _ in range(REQUESTS):
            server.ask("go")
        assert client.wait(30) == 0
    finally:
        client.kill()
        client.wait()
    exporter.wait_for_end(server.port, REQUESTS)
