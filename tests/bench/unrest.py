# SPDX-License-Identifier: Apache-2.0
"""
What happens to services on a bad day, again and again: one actor for each kind of trouble.

An actor repeats turn() in a thread of its own until stop(); `failure` is what ended it before that.
While `quiet` is held, no turn of that actor is under way.
"""

import contextlib
import signal
import socket
import subprocess
import threading
import time

import paths
import services
from clients import REQUEST, exchange, reset
from services import IN_OWN_NETWORK, Load, unique_name

TURN_SECONDS = 0.5
TIMEOUT_SECONDS = 10


def service_start(*words, **options):
    """A service that tries a second port: another program may take the first one meanwhile."""
    try:
        return services.Service(*words, **options)
    except AssertionError:
        return services.Service(*words, **options)


class Actor(threading.Thread):
    """Repeats turn()."""

    def __init__(self, pause_seconds=TURN_SECONDS):
        super().__init__(daemon=True, name=type(self).__name__)
        self.quiet = threading.Lock()
        self.failure = None
        self.turns = 0
        self._over = threading.Event()
        self._pause_seconds = pause_seconds

    def turn(self):
        raise NotImplementedError

    def close(self):
        """Ends what outlives a turn."""

    def run(self):
        try:
            while not self._over.wait(self._pause_seconds):
                with self.quiet:
                    self.turn()
                    self.turns += 1
        except Exception as error:  # whatever it is, the soak reports it
            self.failure = f"{self.name}: {error!r}"

    def stop(self):
        self._over.set()
        if self.is_alive():
            self.join()
        self.close()


class Steady(Actor):
    """A thread-pool server that nothing happens to: its counts must be exact to the last."""

    def __init__(self):
        super().__init__(0.01)
        self.server = service_start("pool_server", workers=4, mode="queue", service_us=1000)
        self.requests = 0

    def turn(self):
        load = Load(self.server.port, clients=4, requests=200, keep_alive=1)
        said = load.finish()
        load.stop()
        assert said["errors"] == 0
        self.requests += said["requests"]

    def close(self):
        self.server.stop()


class Restarts(Actor):
    """A service that is killed in the middle of its requests and started again."""

    def __init__(self):
        super().__init__()
        self.name_of_service = unique_name("phoenix")

    def turn(self):
        server = service_start("pool_server", name=self.name_of_service, workers=3, service_us=5000)
        try:
            load = Load(server.port, clients=6, seconds=30)
            time.sleep(TURN_SECONDS)
            server.stop()
            load.stop()
        finally:
            server.stop()


class Resets(Actor):
    """Clients that reset, half-close or leave in each moment of a request."""

    def __init__(self):
        super().__init__(0.05)
        self.server = service_start("pool_server", workers=4, service_us=3000)

    def _connect(self):
        address = ("127.0.0.1", self.server.port)
        return socket.create_connection(address, TIMEOUT_SECONDS)

    def turn(self):
        connections = [self._connect() for _ in range(6)]
        with contextlib.suppress(OSError):
            connections[1].sendall(REQUEST)
            connections[2].sendall(REQUEST[:10])
            exchange(connections[3])
            connections[4].sendall(REQUEST)
            connections[4].shutdown(socket.SHUT_WR)
            exchange(connections[5])
            connections[5].sendall(REQUEST)
        for connection in connections[:4]:
            reset(connection)
        for connection in connections[4:]:
            connection.close()

    def close(self):
        self.server.stop()


class Namespaces(Actor):
    """Services in network namespaces of their own that come and go, each on the same port."""

    PORT = 8080

    def turn(self):
        server = service_start("pool_server", prefix=IN_OWN_NETWORK, port=self.PORT, workers=2)
        try:
            inside = ["nsenter", f"--net=/proc/{server.pid}/ns/net"]
            load = Load(self.PORT, prefix=inside, clients=2, requests=50)
            said = load.finish()
            load.stop()
            assert said["errors"] == 0
        finally:
            server.stop()


class Locking(Actor):
    """Threads that contend for a lock, end and are started again."""

    def turn(self):
        server = service_start("locker", threads=4, hold_us=200, think_us=500)
        try:
            server.ask("start")
            time.sleep(TURN_SECONDS)
            server.ask("finish")
        finally:
            server.stop()


class Crowding(Actor):
    """Many threads and programs that end at once, and listeners that nobody sees twice."""

    def turn(self):
        for processes in (0, 1):
            server = service_start("crowd", per_second=200, processes=processes, listeners=5)
            try:
                server.ask("start")
            finally:
                server.stop()
        listening = [paths.BUILD / "workloads" / "short_lived", "--children=20"]
        subprocess.run(listening, check=True, timeout=TIMEOUT_SECONDS)


class Frozen(Actor):
    """A service that is stopped and goes on, while clients wait."""

    def __init__(self):
        super().__init__()
        self.server = service_start("pool_server", workers=2)

    def turn(self):
        load = Load(self.server.port, clients=4, requests=40)
        self.server.process.send_signal(signal.SIGSTOP)
        time.sleep(TURN_SECONDS)
        self.server.process.send_signal(signal.SIGCONT)
        said = load.finish()
        load.stop()
        assert said["errors"] == 0

    def close(self):
        self.server.stop()


class SlowScrapers(Actor):
    """Scrapers that ask byte by byte, read little, leave in the middle, or never ask."""

    def __init__(self, address):
        super().__init__()
        self._address = address  # a function: the exporter is restarted meanwhile

    def turn(self):
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            slow, reader, silent = (
                stack.enter_context(socket.create_connection(self._address(), TIMEOUT_SECONDS))
                for _ in range(3)
            )
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            reader.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
            for byte in b"GET /metrics HTTP/1.1\r\n":
                slow.sendall(bytes([byte]))
                time.sleep(0.02)
            reader.recv(1000)
            silent.shutdown(socket.SHUT_WR)
