# SPDX-License-Identifier: Apache-2.0
"""What clients do on a socket, and the sizes that the bundled services expect."""

import socket
import struct

REQUEST = b"q" * 100
ANSWER_BYTES = 100
# A client may have its answer, and read its clock, before the server has returned from its send: it
# may be woken on the server's CPU. So much later than that the server has, on a busy machine, too.
RETURN_SECONDS = 0.2


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


def reset(client):
    """Closes with RST in place of FIN."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
