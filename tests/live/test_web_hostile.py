# SPDX-License-Identifier: Apache-2.0
"""Clients that mean harm, from the very address that the scraper has: it is served all the same."""

import contextlib
import os
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from exporter import bound
from web import Authority, Client, basic, bcrypt

pytestmark = pytest.mark.bounds

HOSTILE = 200
REQUEST = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"


@contextlib.contextmanager
def hostile(port, count=HOSTILE, first=b"", receive_bytes=None):
    """@count connections that have sent @first; those that are refused are left out."""
    clients = []
    try:
        for _ in range(count):
            client = socket.socket()
            if receive_bytes:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
            client.settimeout(5)
            client.connect(("127.0.0.1", port))
            clients.append(client)
            client.setblocking(False)
            with contextlib.suppress(OSError):
                client.send(first)
        yield clients
    finally:
        for client in clients:
            client.close()


@contextlib.contextmanager
def in_background(work):
    """Calls work() again and again until the end."""
    end = threading.Event()

    def run():
        while not end.is_set():
            work()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()


def expect_scrapes(exporter, times=5, seconds=bound(2, 10)):
    for _ in range(times):
        scrape = exporter.scrape()
        assert scrape.ended - scrape.began < seconds


@pytest.fixture(scope="module")
def target(exporters_for_module):
    return exporters_for_module()


def test_two_hundred_silent_clients_starve_nobody(target):
    with hostile(target.port):
        expect_scrapes(target)
    evicted = target.scrape().one("workload_exporter_http_refused_total", reason="evicted")
    assert evicted >= HOSTILE - 128


def test_two_hundred_slow_writers_starve_nobody(target):
    with hostile(target.port, first=b"GET /metrics HTTP/1.1\r\nX: ") as clients:

        def drip():
            for client in clients:
                with contextlib.suppress(OSError):
                    client.send(b"x")
            time.sleep(0.1)

        with in_background(drip):
            expect_scrapes(target)


def test_two_hundred_slow_readers_starve_nobody(target):
    with hostile(target.port, first=REQUEST * 20, receive_bytes=2048):
        time.sleep(1.1)  # they count as stalled from now on
        expect_scrapes(target)


def test_clients_that_come_all_the_time_starve_nobody(target):
    def come():
        with hostile(target.port, count=20, first=REQUEST[:20]):
            pass

    with in_background(come), in_background(come):
        expect_scrapes(target)


def test_a_byte_every_two_seconds_comes_to_an_end(target):
    with socket.create_connection(("127.0.0.1", target.port), 5) as client:
        began = time.monotonic()
        client.sendall(b"GET /metrics HTTP/1.1\r\nX: ")
        client.settimeout(2)
        ended = None
        while not ended and time.monotonic() < began + 40:
            try:
                ended = client.recv(1000) == b"" and time.monotonic()
            except TimeoutError:
                with contextlib.suppress(OSError):
                    client.send(b"x")
            except OSError:
                ended = time.monotonic()
    assert ended and 15 < ended - began < bound(26, 35)


MALFORMED = [
    b"\x16\x03\x01" + os.urandom(300),
    b"GET /metrics HTTP/1.1\r\n" + b"X: y\r\n" * 100000 + b"\r\n",
    b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 1000000 + b"\r\n\r\n",
    b"GET " + b"/" * 1000000 + b" HTTP/1.1\r\n\r\n",
    b"GET /metrics?" + b"a&" * 5000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\nContent-Length: 18446744073709551616\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
    b"GET /metrics HTTP/1.1\r\nAuthorization: Basic " + b"A" * 10000 + b"\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\nAccept: " + b",;q=" * 2000 + b"\r\n\r\n",
    b"\r\n" * 10000,
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET /\0metrics HTTP/1.1\r\nHost: x\r\n\r\n",
]


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def attack(port):
    for data in MALFORMED:
        with hostile(port, count=8, first=data) as clients:
            for client in clients:
                client.settimeout(0.05)
                with contextlib.suppress(OSError):
                    client.recv(1000)


def test_malformed_and_many_requests_leave_nothing_behind(target):
    def wave():
        attack(target.port)
        with ThreadPoolExecutor(8) as pool:
            statuses = list(pool.map(lambda _: target.request()[0], range(100)))
        assert set(statuses) == {200}

    wave()
    wave()
    open_before = descriptors(target.pid)
    target.expect_no_growth(lambda: [wave() for _ in range(3)], 1024)
    target.wait_until(lambda _: descriptors(target.pid) <= open_before + 2)
    assert target.process.poll() is None


# --- with TLS and passwords -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def secured(tmp_path_factory, exporters_for_module):
    folder = tmp_path_factory.mktemp("secured")
    authority = Authority(folder)
    authority.issue("server", "DNS:localhost")
    path = folder / "web.yml"
    path.write_text(
        "tls_server_config: {cert_file: server.crt, key_file: server.key}\n"
        f"basic_auth_users: {{prometheus: {bcrypt('right', cost=10)}}}\n"
    )
    running = exporters_for_module(f"--web.config.file={path}")
    running.client = Client(running.port, authority, None, basic("prometheus", "right"))
    running.stranger = lambda password: Client(
        running.port, authority, None, basic("prometheus", password), source="127.0.0.2"
    )
    return running


def expect_secured(secured, times=5, seconds=bound(5, 20), path="/metrics"):
    for _ in range(times):
        began = time.monotonic()
        assert secured.client.status(path) == 200
        assert time.monotonic() - began < seconds


def test_wrong_passwords_starve_no_right_one(secured):
    """From another address: the right one, not known yet, waits for one of them; then for none."""
    end = threading.Event()
    answers = []
    # A small one: what floods shares the interpreter with what reads, which has 20 s for an answer.
    path = "/"
    assert secured.stranger("wrong").status(path) == 401

    def flood(number):
        tries = 0
        while not end.is_set():
            tries += 1
            with contextlib.suppress(OSError):
                answers.append(secured.stranger(f"wrong {number} {tries}").status())

    with ThreadPoolExecutor(16) as pool:
        floods = [pool.submit(flood, number) for number in range(16)]
        try:
            time.sleep(0.5)
            began = time.monotonic()
            assert secured.client.status(path) == 200
            assert time.monotonic() - began < bound(10, 30)
            expect_secured(secured, seconds=bound(3, 20), path=path)
        finally:
            end.set()
        for ended in floods:
            ended.result()
    assert set(answers) <= {401, 429}
    assert len(answers) > 5


def test_two_hundred_stalled_handshakes_starve_nobody_and_cost_little(secured):
    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(20)
    with hostile(secured.port, first=hello):
        expect_secured(secured)
        time.sleep(0.3)  # none of them is new any more
        before, began = secured.cpu_run_ns(), time.monotonic()
        time.sleep(2)
        used = (secured.cpu_run_ns() - before) / 1e9 / (time.monotonic() - began)
    assert used < bound(0.3, 1)
    expect_secured(secured)


def test_broken_handshakes_leave_nothing_behind(secured):
    attack(secured.port)
    expect_secured(secured)
    secured.expect_no_growth(lambda: [attack(secured.port) for _ in range(5)], 1024)
    expect_secured(secured)
