# SPDX-License-Identifier: Apache-2.0
"""
A server of HTTP/1.1 that plays a script for every request, one thread per connection. Arguments: port
and the script, a list in JSON of

  "text"            one send(2) of it
  ["text", ...]     one writev(2) of all of them
  {"message": [..]} one sendmsg(2) of all of them
  {"file": "text"}  one sendfile(2) of it
  {"body": N}       read N bytes
  {"pause": MS}     sleep
"""

import contextlib
import json
import os
import socket
import sys
import tempfile
import threading
import time


def send_file(client, text):
    with tempfile.TemporaryFile() as file:
        file.write(text)
        file.flush()
        assert os.sendfile(client.fileno(), file.fileno(), 0, len(text)) == len(text)


def take(client, size):
    while size:
        part = client.recv(size)
        if not part:
            raise ConnectionError
        size -= len(part)


def play(client, step):
    if isinstance(step, str):
        assert client.send(step.encode()) == len(step)
    elif isinstance(step, list):
        os.writev(client.fileno(), [part.encode() for part in step])
    elif "message" in step:
        client.sendmsg([part.encode() for part in step["message"]])
    elif "file" in step:
        send_file(client, step["file"].encode())
    elif "body" in step:
        take(client, step["body"])
    else:
        time.sleep(step["pause"] / 1000)


def talk(client, steps):
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        part = client.recv(65536)
        if not part:
            return False
        head += part
    for step in steps:
        play(client, step)
    return True


def serve(client, steps):
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with client, contextlib.suppress(ConnectionError):
        while talk(client, steps):
            pass


def main():
    steps = json.loads(sys.argv[2])
    with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as listener:
        print("ready", flush=True)
        while True:
            client, _ = listener.accept()
            threading.Thread(target=serve, args=(client, steps), daemon=True).start()


main()
