# SPDX-License-Identifier: Apache-2.0
"""
A server that speaks TLS and answers 100 bytes with 100 bytes, one thread per connection. It closes
when the client does, and says no goodbye of its own. Arguments: port, certificate, key, how many
session tickets it sends after a handshake of TLS 1.3, and for how many milliseconds it pauses before
it answers.
"""

import socket
import ssl
import sys
import threading
import time


def talk(client, context, pause):
    with context.wrap_socket(client, server_side=True) as connection:
        while True:
            size = 0
            while size < 100:
                part = connection.recv(100 - size)
                if not part:
                    return
                size += len(part)
            time.sleep(pause / 1000)
            connection.sendall(b"a" * 100)


def main():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*sys.argv[2:4])
    context.num_tickets = int(sys.argv[4])
    with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as listener:
        print("ready", flush=True)
        while True:
            client, _ = listener.accept()
            threading.Thread(target=talk, args=(client, context, int(sys.argv[5])), daemon=True).start()


main()
