# SPDX-License-Identifier: Apache-2.0
"""What clients do on a socket, and the sizes that the bundled services expect."""

import fcntl
import socket
import ssl
import struct
import termios
import time

import pytest

from exporter import bound
from services import READY_SECONDS, wait_until

REQUEST = b"q" * 100
UPLOAD = b"POST / HTTP/1.1\r\nContent-Length: 100\r\nX: ".ljust(96, b"x") + b"\r\n\r\n"  # its body follows
ANSWER_BYTES = 100
GOODBYE_SECONDS = 0.01  # a client that ends later than this after it has sent has waited
# So much may lie between what a client does and what is seen of it, on a busy machine: a segment is
# taken in after the send has returned (ksoftirqd), and a client that is woken by an answer on the
# server's CPU reads its clock before the server has returned from its send.
LATE_SECONDS = bound(0.02, 0.2)


def receive(client, size=ANSWER_BYTES):
    """Exactly @size bytes."""
    missing = size
    while missing:
        part = client.recv(missing)
        assert part, f"the peer closed, {missing} bytes early"
        missing -= len(part)


def exchange(client):
    """One request and its answer."""
    client.sendall(REQUEST)
    receive(client)


def exchange_once(client):
    """The same on a connection that ends then: an open one is waited for until a sweep passes by."""
    exchange(client)
    client.close()


def hold_back(client):
    """
    What it sends goes out with the end of the connection, and is a goodbye for sure: a server that
    closes as soon as it has read would at times be first, and a client may lose its CPU in between.
    """
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 0)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)


def reset(client):
    """Closes with RST in place of FIN."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def trusting(version="TLSv1_3"):
    """For a client that speaks TLS with any server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
    return context


def answer(client, last):
    """Receives an answer that ends with @last."""
    got = b""
    while not got.endswith(last):
        part = client.recv(65536)
        assert part, got
        got += part
    return got


def think(client, server, seconds):
    """Lets so much time pass after the server has read all that @client has sent, and waits for more."""
    unread = bytearray(4)

    def all_has_arrived():
        fcntl.ioctl(client, termios.TIOCOUTQ, unread)
        return not any(unread)

    wait_until(all_has_arrived, READY_SECONDS, "the client's bytes do not arrive")
    server.wait_for_rest()
    time.sleep(seconds)


class Asking:
    """
    Adds up what a client waits for answers: `with asking: ...`, again and again. In between it thinks
    for @think_seconds at least.
    """

    def __init__(self, think_seconds):
        self.think_seconds, self.seconds = think_seconds, 0.0

    def __enter__(self):
        self.seconds -= time.monotonic()

    def __exit__(self, *_):
        self.seconds += time.monotonic()

    def check(self, end):
        """No client's think time is in them: of one turn's at most where the machine is busy."""
        late = bound(LATE_SECONDS, self.think_seconds)
        assert 0 < end.seconds("duration") <= self.seconds + late
        assert end.seconds("duration") == pytest.approx(
            end.seconds("queue") + end.seconds("service"), rel=1e-9
        )
