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

from exporter import EMULATED
from services import WITH_FAST_OPEN, HttpScript, Process, Service, TlsServer, in_own_network

CLIENTS = 20
SERVICE_SECONDS = THINK_SECONDS = 0.4
# In an emulated machine clients that wait for a CPU come in step: many samples, of clients that do not
# all wait for the same time, and what they are known to do is not what they do.
SAMPLES, JITTER = (20, 0.9) if EMULATED else (6, 0)

# What each client does on its connection, again and again, at a time of its own: so at any time as many
# requests are in service as ever. A client of a kind in ONCE makes a new connection each time.
ONCE = ("goodbye", "tls-goodbye", "fast-open")
# Servers that have a network of their own: one whose sockets take little of an answer at a time.
NETWORKS = {
    "fast-open": WITH_FAST_OPEN,
    "blocked-write": in_own_network(tcp_wmem="4096 16384 65536"),
}
FLOOD_KB = 1000  # much more than such a socket takes
CONTINUE = "HTTP/1.1 100 Continue\r\n\r\n"
FINAL = "HTTP/1.1 200 OK\r\nContent-Length: 61\r\n\r\n".ljust(100, "x")
CLIENT = f"""
import contextlib, random, socket, ssl, sys, threading, time
port, kind = int(sys.argv[1]), sys.argv[2]
POST = b"POST /x HTTP/1.1\\r\\nHost: x\\r\\n".ljust(96, b"x") + b"\\r\\n\\r\\n"

def connect():
    client = socket.socket()
    if kind == "blocked-write":
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    client.connect(("127.0.0.1", port))
    if kind != "tls-goodbye":
        return client
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(client)

def receive(client, missing):
    while missing:
        missing -= len(client.recv(missing)) or sys.exit(1)

def ask(client):
    if kind in ("late-body", "expect"):
        client.sendall(POST)
    elif kind == "slow-upload":
        client.sendall(b"q" * 50)
        time.sleep({SERVICE_SECONDS} / 2)
        client.sendall(b"q" * 50)
    elif kind != "fast-open":
        client.sendall(b"q" * 100)
    if kind == "expect":
        receive(client, {len(CONTINUE)})
        time.sleep({SERVICE_SECONDS} / 2)
        client.sendall(b"b" * 500)
    elif kind == "blocked-write":
        time.sleep({SERVICE_SECONDS})
        receive(client, {FLOOD_KB << 10} - 100)
    receive(client, 100)

def leave(client):
    if kind == "goodbye":
        client.sendall(b"q" * 100)
    elif kind == "tls-goodbye":
        client.setblocking(False)
        with contextlib.suppress(OSError):
            client.unwrap()
    client.close()

def turn(client):
    if kind == "fast-open":
        client = socket.socket()
        client.sendto(b"q" * 100, socket.MSG_FASTOPEN, ("127.0.0.1", port))
    client = client or connect()
    ask(client)
    think = {THINK_SECONDS} * random.uniform(1 - {JITTER}, 1 + {JITTER})
    if kind == "late-body":
        time.sleep(think / 4)
        client.sendall(b"b" * 500)
        time.sleep(think * 3 / 4)
    else:
        time.sleep(think)
    if kind in {ONCE}:
        leave(client)

def run(i):
    client = None if kind in {ONCE} else connect()
    time.sleep({SERVICE_SECONDS + THINK_SECONDS} * i / {CLIENTS})
    while True:
        turn(client)

for i in range({CLIENTS}):
    threading.Thread(target=run, args=(i,)).start()
"""
SCRIPTS = {
    "plain": "read:100,sleep:400,write:100,loop",
    "streaming": "read:100,write:50,sleep:400,write:50,loop",
    "slow-upload": "read:100,sleep:200,write:100,loop",
    "late-body": "read:100,sleep:400,write:100,once:1000,loop",
    "goodbye": "read:100,sleep:400,write:100,once:100,eof",
    "fast-open": "read:100,sleep:400,write:100,eof",
    "blocked-write": f"read:100,flood:{FLOOD_KB},loop",
}


def serve(start, kind, directory):
    milliseconds = int(1000 * SERVICE_SECONDS)
    if kind == "tls-goodbye":
        return start(TlsServer, directory, pause=milliseconds)
    if kind == "expect":
        return start(HttpScript, [CONTINUE, {"body": 500}, {"pause": milliseconds // 2}, FINAL])
    return start(Service, "talker", prefix=NETWORKS.get(kind, ()), script=SCRIPTS[kind])


@pytest.mark.times
@pytest.mark.parametrize("kind", [*SCRIPTS, "tls-goodbye", "expect"])
def test_gauge_and_histogram_agree(exporter, start, tmp_path, kind):
    server = serve(start, kind, tmp_path)
    exporter.workload_of(server.port)
    inside = ["nsenter", f"--target={server.pid}", "--net"] if kind in NETWORKS else []
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
    assert sum(gauges) / SAMPLES == pytest.approx(mean, rel=0.1)
    assert EMULATED or mean == pytest.approx(served, rel=0.1)
