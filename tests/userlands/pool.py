# SPDX-License-Identifier: Apache-2.0
"""pool.py PORT: threads of CPython that wait for work, and get some now and then. See pool.c."""

import socket
import sys
import threading
import time

WORKERS = 4


def serve(pieces):
    while True:
        pieces.acquire()


def produce(pieces):
    while True:
        time.sleep(0.05)
        pieces.release()


def main():
    listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
    pieces = threading.Semaphore(0)
    for _ in range(WORKERS):
        threading.Thread(target=serve, args=(pieces,), daemon=True).start()
    threading.Thread(target=produce, args=(pieces,), daemon=True).start()
    never = threading.Event()
    threading.Thread(target=never.wait, daemon=True).start()
    print("ready", listener.getsockname()[1], flush=True)
    sys.stdin.readline()


main()
