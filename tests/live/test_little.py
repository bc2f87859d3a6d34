# SPDX-License-Identifier: Apache-2.0
"""
The gauge of requests in service and the histogram of service times are two ways to count the same
(Little's law): the mean of the one is what the sum of the other grows by per second. So whatever a
request looks like, the two must say the same, and what is known of the clients.
"""

import subprocess
import sys
import time

import pytest

from exporter import SLOWER
from services import WITH_FAST_OPEN, Process, Service

CLIENTS = 20
SERVICE_SECONDS = THINK_SECONDS = 0.4
SAMPLES = 6

# Each client in its turn, so that at any time as many are served as ever.
CLIENT = f"""
import socket, sys, threading, time
port, kind = int(sys.argv[1]), sys.argv[2]
POST = b"POST /x HTTP/1.1\\r\\nHost: x\\r\\n".ljust(96, b"x") + b"\\r\\n\\r\\n"

def connect():
    client = socket.socket()
    client.connect(("127.0.0.1", port))
    return client

def receive(client):
    missing = 100
    while missing:
        missing -= len(client.recv(missing)) or sys.exit(1)

def turn(client):
    if kind == "fast-open":
        client = socket.socket()
        client.sendto(b"q" * 100, socket.MSG_FASTOPEN, ("127.0.0.1", port))
    elif kind == "slow-upload":
        client.sendall(b"q" * 50)
        time.sleep({SERVICE_SECONDS} / 2)
        client.sendall(b"q" * 50)
    elif kind == "late-body":
        client.sendall(POST)
    else:
        client = client or connect()
        client.sendall(b"q" * 100)
    receive(client)
    if kind == "late-body":
        time.sleep({THINK_SECONDS} / 4)
        client.sendall(b"b" * 500)
        time.sleep({THINK_SECONDS} * 3 / 4)
    else:
        time.sleep({THINK_SECONDS})
    if kind == "goodbye":
        client.sendall(b"q" * 100)
    if kind in ("goodbye", "fast-open"):
        client.close()

def run(i):
    client = None if kind in ("goodbye", "fast-open") else connect()
    time.sleep({SERVICE_SECONDS + THINK_SECONDS} * i / {CLIENTS})
    while True:
        turn(client)

for i in range({CLIENTS}):
    threading.Thread(target=run, args=(i,)).start()
"""


@pytest.mark.times
@pytest.mark.parametrize(
    "kind, script",
    [
        ("plain", "read:100,sleep:400,write:100,loop"),
        ("streaming", "read:100,write:50,sleep:400,write:50,loop"),
        ("slow-upload", "read:100,sleep:200,write:100,loop"),
        ("late-body", "read:100,sleep:400,write:100,once:1000,loop"),
        ("goodbye", "read:100,sleep:400,write:100,once:100,eof"),
        ("fast-open", "read:100,sleep:400,write:100,eof"),
    ],
)
def test_gauge_and_histogram_agree(exporter, start, kind, script):
    server = start(
        Service, "talker", prefix=WITH_FAST_OPEN if kind == "fast-open" else (), script=script
    )
    exporter.workload_of(server.port)
    inside = ["nsenter", f"--target={server.pid}", "--net"] if kind == "fast-open" else []
    start(Process, [*inside, sys.executable, "-c", CLIENT, server.port, kind], stderr=subprocess.DEVNULL)
    exporter.wait_for_endpoint(server.port, lambda e: e.counts()[0] > CLIENTS, True)
    time.sleep(1)
    before = exporter.endpoint(server.port)
    gauges = []
    for _ in range(SAMPLES):
        time.sleep(1.05)  # a sweep of its own
        after = exporter.endpoint(server.port)
        gauges.append(after.get("workload_requests_in_service"))
    mean = (after.seconds("service") - before.seconds("service")) / (
        after.scrape.at - before.scrape.at
    )
    served = CLIENTS * SERVICE_SECONDS / (SERVICE_SECONDS + THINK_SECONDS)
    assert sum(gauges) / SAMPLES == pytest.approx(mean, rel=0.1 * SLOWER)
    assert mean == pytest.approx(served, rel=0.1 * SLOWER)
