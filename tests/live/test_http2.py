# SPDX-License-Identifier: Apache-2.0
"""
HTTP/2 of nginx and of gRPC: many requests share a connection, which is counted and not measured. In
TLS it is known by a client that offers nothing else.
"""

import subprocess

import pytest

import servers
from clients import exchange, trusting
from exporter import bound
from services import Nginx, TlsServer, certificate, free_port, nginx_tls

CALLS = 200
TURNS = 3
CONNECTIONS = 4
HELLO = 6  # bytes of an answer of nginx

CLIENT = """
import sys, grpc
port, certificate, calls = sys.argv[1:]
credentials = certificate and grpc.ssl_channel_credentials(open(certificate, "rb").read())
channel = (
    grpc.secure_channel(f"localhost:{port}", credentials)
    if certificate
    else grpc.insecure_channel(f"localhost:{port}")
)
ask = channel.unary_unary("/test.Echo/Ask")
for i in range(int(calls)):
    assert ask(b"q" * 100) == b"q" * 100
channel.close()
"""


def h2load(url, requests, at_once, *options):
    done = subprocess.run(
        ["h2load", "-n", str(requests), "-c", str(CONNECTIONS), "-m", str(at_once), *options, url],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert f"{requests} succeeded, 0 failed" in done.stdout, done.stdout


def is_multiplexed(exporter, port, connections, answered):
    """All of @connections, on which so many bytes were answered at least."""
    exporter.wait_for_endpoint(
        port,
        lambda e: (
            e.get("workload_multiplexed_connections_total"),
            e.get("workload_connections_accepted_total"),
            e.get("workload_sent_bytes_total") > answered,
            e.gauges(),
        ),
        (connections, connections, True, (0, 0, 0, 0)),
    )


def test_http_2_is_counted_and_not_measured(exporter, start, tmp_path):
    nginx = start(Nginx, tmp_path, listen="http2")
    exporter.workload_of(nginx.port)
    h2load(f"http://127.0.0.1:{nginx.port}/", 2000, 10)
    is_multiplexed(exporter, nginx.port, CONNECTIONS, 2000 * HELLO)
    exporter.wait_for_end(nginx.port, 0)


@pytest.fixture
def tls(exporter, start, tmp_path):
    """nginx that speaks HTTP/2 in TLS."""
    nginx = start(Nginx, tmp_path, listen=nginx_tls(tmp_path, "http2"))
    exporter.workload_of(nginx.port)
    return nginx


@pytest.mark.parametrize("at_once", [1, 10])
def test_a_client_in_tls_that_offers_http_2_alone_is_not_measured(exporter, tls, at_once):
    h2load(f"https://127.0.0.1:{tls.port}/", CALLS, at_once, "--npn-list=h2")
    is_multiplexed(exporter, tls.port, CONNECTIONS, CALLS * HELLO)
    exporter.wait_for_end(tls.port, 0)


@pytest.mark.bounds
def test_a_client_in_tls_that_offers_http_1_too_is_measured_as_it_asks(exporter, tls):
    """
    A turn is a request there. So is a handshake's first, and its last, unless nginx reads that with
    the first request. That the client has nginx's settings it says with a request, or alone: nothing
    answers that, and where its request follows more than 10 ms later, it was no part of that. Nor is
    the end a goodbye of a client that has no CPU for 10 ms before it: it has given up.
    """
    h2load(f"https://127.0.0.1:{tls.port}/", CALLS, 1, "--npn-list=h2,http/1.1")
    turns = range(CALLS + CONNECTIONS, CALLS + 2 * CONNECTIONS + 1)

    def ends(endpoint):
        return endpoint.counts()[0] in turns, endpoint.leavers()

    end = exporter.wait_for_endpoint(tls.port, ends, (True, CONNECTIONS))
    alone, late = end.outcome()["unanswered"], end.abandoned()[1]
    assert 0 <= alone <= CONNECTIONS
    assert late <= bound(0, 1)
    exporter.wait_for_end(
        tls.port,
        end.counts()[0],
        abandoned=(0, late),
        goodbyes=CONNECTIONS - late,
        unanswered=alone,
    )


@pytest.mark.parametrize("offered, known", [(["h2"], 1), (["h2", "http/1.1"], 0), (["http/1.1"], 0)])
def test_the_first_message_in_tls_may_be_read_in_two(exporter, start, connect, tmp_path, offered, known):
    """OpenSSL reads the header of a record first, unless it is told otherwise (as by nginx)."""
    server = start(TlsServer, tmp_path)
    exporter.workload_of(server.port)
    context = trusting()
    context.set_alpn_protocols(offered)
    client = context.wrap_socket(connect(server.port))
    for _ in range(TURNS):
        exchange(client)
    client.close()
    end = exporter.wait_for_end(server.port, 0 if known else TURNS + 2)
    assert end.get("workload_multiplexed_connections_total") == known


def call(port, files):
    command = ["/usr/bin/python3", "-c", CLIENT, port, files[0] if files else "", CALLS]
    subprocess.run([str(word) for word in command], check=True, timeout=60)


def test_grpc_is_counted_and_not_measured(exporter, start):
    """It sends its settings before it has read anything."""
    port = free_port()
    servers.grpc(start, port)
    exporter.workload_of(port)
    call(port, None)
    is_multiplexed(exporter, port, 1, CALLS * 100)
    exporter.wait_for_end(port, 0, unrequested=1)


def test_grpc_in_tls_is_counted_and_not_measured(exporter, start, tmp_path):
    files, port = certificate(tmp_path), free_port()
    servers.grpc(start, port, files)
    exporter.workload_of(port)
    call(port, files)
    is_multiplexed(exporter, port, 1, CALLS * 100)
    exporter.wait_for_end(port, 0)
