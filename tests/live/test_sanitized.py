# SPDX-License-Identifier: Apache-2.0
"""
The whole exporter under AddressSanitizer and UndefinedBehaviorSanitizer (`make asan`), under load:
services that come and go, scrapes in every format, and clients that do not speak HTTP. It must not
report anything, and have lost no memory at its end.
"""

import random
import socket
import threading

import pytest

import exporter as exporter_module
from clients import exchange
from exporter import BUILD
from services import Load, Service

BINARY = BUILD / "asan" / "workload_exporter"
REPORT = ("Sanitizer", "runtime error")
ROUNDS = 6
ACCEPT = [
    "text/plain",
    "application/openmetrics-text; version=1.0.0",
    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited",
    "*/*;q=2, ;;;=" + "x" * 500,
]
HOSTILE = [
    b"\0" * 4000,
    b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 2000,
    b"GET /" + b"%2e" * 5000,
    b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999\r\n\r\nbody",
    b"GET /metrics?collect[]=%00&exclude[]=requests HTTP/1.1\r\nHost: x\r\n\r\n" * 50,
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
]


def be_hostile(port, chance):
    for content in HOSTILE:
        with socket.create_connection(("127.0.0.1", port), 10) as client:
            try:
                client.sendall(content[: chance.randrange(1, len(content) + 1)])
                if chance.random() < 0.5:
                    client.settimeout(0.2)
                    client.recv(4096)
            except OSError:
                pass  # turned away: fine


def scrape_all(exporter):
    for accept in ACCEPT:
        for coding in ("identity", "gzip"):
            status, body = get(exporter.port, accept, coding)
            assert status == 200
            assert body
    assert exporter.request("/")[0] == 200


def get(port, accept, coding):
    from http.client import HTTPConnection

    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", "/metrics", headers={"Accept": accept, "Accept-Encoding": coding})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


# Leaks are looked for by a thread that stops the others by ptrace, which the sandbox forbids.
@pytest.mark.parametrize("sandbox, leaks", [("off", 1), ("on", 0)], ids=["leaks", "sandbox"])
def test_nothing_is_reported_under_load(exporters, start, connect, monkeypatch, sandbox, leaks):
    monkeypatch.setattr(exporter_module, "BINARY", BINARY)
    monkeypatch.setenv("ASAN_OPTIONS", f"detect_leaks={leaks}:exitcode=99")
    exporter = exporters(f"--security.sandbox={sandbox}", "--workloads.grace-period=1s")
    chance = random.Random(5)
    for _ in range(ROUNDS):
        service = start(Service, "pool_server", workers=4, work_us=200)
        load = start(Load, service.port, clients=8, seconds=1)
        hostile = threading.Thread(target=be_hostile, args=(exporter.port, chance))
        hostile.start()
        scrape_all(exporter)
        hostile.join()
        load.finish()
        service.stop()
        scrape_all(exporter)
    talker = start(Service, "talker", script="read:100,write:100,loop")
    exchange(connect(talker.port))
    exporter.workload_of(talker.port)
    assert exporter.stop() == 0
    assert not [line for line in exporter.log if line and any(word in line for word in REPORT)]
