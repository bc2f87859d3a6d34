# SPDX-License-Identifier: Apache-2.0
"""Clients that mean harm, and a scraper beside them that takes the time."""

import contextlib
import http.client
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "live"))

from hypervisor import stolen_seconds  # noqa: E402
from services import Process  # noqa: E402

SCRAPE_EVERY_SECONDS = 0.2
KEPT = 2000  # connections that an attacker keeps open at the same time


class Background:
    """Calls turn() again and again in a thread, until the end of the block."""

    def __init__(self):
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def turn(self):
        raise NotImplementedError

    def pause(self, seconds):
        self._end.wait(seconds)

    def _run(self):
        while not self._end.is_set():
            self.turn()

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()


class Scraper(Background):
    """Scrapes from @source, each time on a connection of its own; what was stolen does not count."""

    def __init__(self, port, source="127.0.0.1", headers=None):
        super().__init__()
        self.port, self.source, self.headers = port, source, headers or {}
        self.seconds, self.failures = [], []

    def turn(self):
        stolen, began = stolen_seconds(), time.monotonic()
        connection = http.client.HTTPConnection(
            "127.0.0.1", self.port, timeout=30, source_address=(self.source, 0)
        )
        try:
            connection.request("GET", "/metrics", headers=self.headers)
            response = connection.getresponse()
            response.read()
            if response.status != 200:
                self.failures.append(response.status)
        except (OSError, http.client.HTTPException) as error:
            self.failures.append(repr(error))
        finally:
            connection.close()
        elapsed = time.monotonic() - began
        self.seconds.append(max(elapsed - (stolen_seconds() - stolen), 0))
        self.pause(SCRAPE_EVERY_SECONDS)

    def longest_but_one(self):
        """Of many one may be late by chance: on a machine with two CPUs others run, too."""
        return sorted(self.seconds)[-2]

    def figures(self):
        return {
            "scrapes": len(self.seconds),
            "failed": self.failures[0] if self.failures else 0,
            "longest": f"{max(self.seconds) * 1000:.0f} ms",
        }


class Flood(Process):
    """
    @rate connections a second from @sources in turn: each sends one of @requests, in turn as well,
    and never reads.
    """

    def __init__(self, port, requests, rate, sources=("127.0.0.1",)):
        super().__init__(
            [sys.executable, __file__, port, rate, *sources],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.made = 0
        self.process.stdin.write("".join(f"{one.hex()}\n" for one in requests).encode() + b"\n")
        self.process.stdin.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.made = int(self.process.communicate()[0])
        self.stop()


def flood(port, rate, sources):
    """Reads requests up to an empty line; then until standard input ends. Says how many it made."""
    requests = [bytes.fromhex(line) for line in iter(lambda: sys.stdin.readline().strip(), "")]
    end = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), end.set())).start()
    clients, made = [], 0
    while not end.wait(1 / rate):
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        client.settimeout(5)
        with contextlib.suppress(OSError):
            client.bind((sources[made % len(sources)], 0))
            client.connect(("127.0.0.1", port))
            client.setblocking(False)
            client.send(requests[made % len(requests)])
        made += 1
        clients.append(client)
        if len(clients) > KEPT:
            clients.pop(0).close()
    print(made)


if __name__ == "__main__":
    flood(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:])
