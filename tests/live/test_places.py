# SPDX-License-Identifier: Apache-2.0
"""Ports and pools that are gone give their places back, and lose nothing of what they counted."""

import itertools
import string
import threading
import time

import pytest

from clients import exchange
from exposition import Endpoint, Pool
from services import Service
from test_lifecycle import limit_of, rows_by_port

GRACE = "--workloads.grace-period=1s"
MANY = 150  # more than a workload has rows of either
GIVEN_BACK_SECONDS = 4  # three sweeps, a second and a scrape apart
REQUESTS = "workload_request_duration_seconds_count"
QUEUED = "workload_request_queue_seconds_count"
EXITED = "workload_threads_exited_total"
SECONDS = "workload_thread_seconds_total"


class Sums:
    """
    What rows of a workload have counted, those included that are gone: as rate() adds up, a row
    that comes again begins at 0. `labels` are all that there were.
    """

    def __init__(self, workload, *names):
        self.workload, self.names = workload, names
        self.last, self.gone, self.labels = {}, dict.fromkeys(names, 0), set()

    def add(self, scrape):
        now = {
            (name, frozenset(labels.items())): value
            for name in self.names
            for labels, value in scrape.rows(name, workload=self.workload)
        }
        for key in self.last.keys() - now.keys():
            self.gone[key[0]] += self.last[key]
        for key in self.last.keys() & now.keys():
            assert now[key] >= self.last[key], f"{key} fell from {self.last[key]} to {now[key]}"
        self.last = now
        self.labels.update(key[1] for key in now)

    def get(self, name):
        return self.gone[name] + sum(v for key, v in self.last.items() if key[0] == name)

    def others(self, label):
        return [labels for labels in self.labels if dict(labels)[label] == "other"]


class Scraper:
    """Scrapes while its block runs, into @sums; what it fails with, the block ends with."""

    def __init__(self, exporter, sums, seconds):
        self.exporter, self.sums, self.seconds = exporter, sums, seconds
        self.ended, self.failure = threading.Event(), None
        self.thread = threading.Thread(target=self._run)

    def _run(self):
        try:
            while not self.ended.wait(self.seconds):
                self.sums.add(self.exporter.scrape())
        except BaseException as failure:  # told by the block
            self.failure = failure

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()
        if self.failure:
            raise self.failure


def visit(connect, server, command="open"):
    """A port that has one visitor; returns it."""
    port = server.ask(command)["port"]
    client = connect(port)
    exchange(client)
    client.close()
    return port


def names(count):
    """Of threads, in letters: digits do not tell pools apart."""
    pairs = itertools.product(string.ascii_lowercase, repeat=2)
    return ["name-" + "".join(pair) for pair in itertools.islice(pairs, count)]


def settle(exporter, sums, see, expected, seconds=60):
    """Scrapes into @sums until see(scrape) is as expected."""

    def added(scrape):
        sums.add(scrape)
        return see(scrape)

    return exporter.wait_for_equal(added, expected, seconds)


@pytest.mark.long
def test_ports_one_after_the_other_are_never_other(start, connect, exporters):
    exporter = exporters(GRACE)
    server = start(Service, "changer")
    workload = exporter.workload_of(server.port)
    sums = Sums(workload, REQUESTS, QUEUED, "workload_received_bytes_total")
    with Scraper(exporter, sums, 0.25):
        for _ in range(MANY):
            visit(connect, server)
            time.sleep(0.1)  # so that there are never more than fifty rows
    end = settle(exporter, sums, lambda s: len(s.rows(REQUESTS, workload=workload)), 1)
    assert [sums.get(name) for name in sums.names] == [MANY, MANY, 100 * MANY]
    assert not sums.others("port")
    assert not end.losses_of(workload)
    assert rows_by_port(end, REQUESTS, workload) == {str(server.port): 0}


def test_a_port_without_scrapes_keeps_its_place_until_there_are_some(start, connect, exporters):
    """So many as have room: the rest is in `other`, and the next ones have places again."""
    exporter = exporters(GRACE)
    server = start(Service, "changer")
    workload = exporter.workload_of(server.port)
    room = limit_of("ENDPOINTS_PER_TREE") - 1
    ports = [visit(connect, server) for _ in range(room + 6)]
    placed = list(dict.fromkeys(ports))[:room]  # the kernel may have given one of them again
    sums = Sums(workload, REQUESTS)
    seen = settle(exporter, sums, lambda s: s.sum(REQUESTS, workload=workload), room + 6)
    others = sum(port not in placed for port in ports)
    assert rows_by_port(seen, REQUESTS, workload)["other"] == others
    settle(exporter, sums, lambda s: len(s.rows(REQUESTS, workload=workload)), 1)
    port = visit(connect, server)
    end = settle(exporter, sums, lambda s: Endpoint(s, port).counts(), (1, 1, 1))
    assert set(rows_by_port(end, REQUESTS, workload)) == {str(server.port), str(port)}
    assert sums.get(REQUESTS) == room + 7


@pytest.mark.long
@pytest.mark.parametrize("gap", [0.2, 1.3, GIVEN_BACK_SECONDS])
def test_a_port_that_comes_again_within_the_grace_counts_on(start, connect, exporters, gap):
    """Its slot may be another one, its row is not. One that comes later begins anew."""
    exporter = exporters("--workloads.grace-period=8s")
    server = start(Service, "changer")
    workload = exporter.workload_of(server.port)
    port = visit(connect, server)
    sums = Sums(workload, REQUESTS)
    for count in range(2, 5):
        until = time.monotonic() + gap
        settle(exporter, sums, lambda s, at=until: time.monotonic() >= at, True)
        assert visit(connect, server, "again") == port
        settle(exporter, sums, lambda s: Endpoint(s, port).counts(), (count,) * 3)
    settle(exporter, sums, lambda s: len(s.rows(REQUESTS, workload=workload)), 1)
    assert sums.get(REQUESTS) == 4
    assert visit(connect, server, "again") == port
    settle(exporter, sums, lambda s: Endpoint(s, port).counts(), (1, 1, 1))
    assert sums.get(REQUESTS) == 5


@pytest.mark.long
@pytest.mark.parametrize("seconds", [0, 5], ids=["at once", "later"])
def test_a_connection_that_outlives_its_listener_is_counted_at_its_port(
    start, connect, exporters, seconds
):
    """No socket listens there any more, which sweeps have found."""
    exporter = exporters(GRACE)
    server = start(Service, "epoll_server", ports=3)
    workload = exporter.workload_of(server.port)
    port = server.ask("ports")["port2"]
    client = connect(port)
    exchange(client)
    exporter.wait_for_endpoint(port, Endpoint.counts, (1, 1, 1))
    server.ask("close 2")
    until = time.monotonic() + seconds
    exporter.wait_until(lambda s: time.monotonic() >= until)
    for _ in range(9):
        exchange(client)
    end = exporter.wait_for_endpoint(port, Endpoint.counts, (10, 10, 10))
    assert end.get("workload_connections") == 1
    client.close()
    sums = Sums(workload, REQUESTS)
    end = settle(exporter, sums, lambda s: len(s.rows(REQUESTS, workload=workload)), 2)
    assert sums.get(REQUESTS) == 10
    assert not end.losses_of(workload)


def test_a_port_that_waits_in_other_gets_a_place_when_one_is_free(start, connect, exporters):
    exporter = exporters(GRACE)
    own = limit_of("ENDPOINTS_PER_TREE")
    server = start(Service, "epoll_server", ports=own + 1)
    workload = exporter.workload_of(server.port)
    ports = server.ask("ports")
    clients = {key: connect(port) for key, port in ports.items()}
    for client in clients.values():
        exchange(client)
    sums = Sums(workload, REQUESTS)
    full = settle(exporter, sums, lambda s: s.sum(REQUESTS, workload=workload), own + 1)
    shown = rows_by_port(full, REQUESTS, workload)
    assert shown["other"] == 1 and len(shown) == own + 1
    (waiting,) = {str(port) for port in ports.values()} - set(shown)
    gone = next(key for key, port in ports.items() if str(port) != waiting)
    server.ask(f"close {gone.removeprefix('port')}")
    clients[gone].close()
    settle(
        exporter,
        sums,
        lambda s: "other" not in (rows := rows_by_port(s, REQUESTS, workload)) and len(rows),
        own,
    )
    # Of its connection the last request counts in `other`, if that had seen its end.
    exchange(next(clients[key] for key, port in ports.items() if str(port) == waiting))
    exchange(connect(int(waiting)))
    settle(exporter, sums, lambda s: sums.get(REQUESTS), own + 3)
    assert rows_by_port(exporter.scrape(), REQUESTS, workload)[waiting] == 2


def take_many_names(exporter, server, command, pause):
    """@command takes one after the other; returns what was counted, the end, and how long it took."""
    workload = exporter.workload_of(server.port)
    sums = Sums(workload, EXITED, SECONDS)
    began = time.monotonic()
    with Scraper(exporter, sums, 0.25):
        for name in names(MANY):
            server.ask(f"{command} {name}")
            time.sleep(pause)
    took = time.monotonic() - began
    end = settle(exporter, sums, lambda s: len(s.rows(EXITED, workload=workload)), 1)
    assert not sums.others("pool")
    assert not end.losses_of(workload)
    return sums, end, took


def test_thread_names_one_after_the_other_are_never_other(start, exporters):
    server = start(Service, "changer", sleep_us=30000)
    sums, _, took = take_many_names(exporters(GRACE), server, "thread", 0.02)
    # Each begins in the pool of its creator, and leaves that when it takes its name.
    assert sums.get(EXITED) == 2 * MANY
    assert sums.get(SECONDS) > took + MANY * 0.03


def test_names_of_one_thread_are_never_other(start, exporters):
    server = start(Service, "changer")
    sums, end, took = take_many_names(exporters(GRACE), server, "name", 0.03)
    last = Pool(end, sums.workload, names(MANY)[-1], role="other")
    assert last.threads() == 1
    assert MANY - 1 <= sums.get(EXITED) <= MANY
    assert sums.get(SECONDS) >= took


def test_a_thread_that_waits_in_other_gets_a_pool_when_a_place_is_free(start, exporters):
    """One place is the main thread's."""
    exporter = exporters(GRACE)
    server = start(Service, "changer")
    workload = exporter.workload_of(server.port)
    kept = names(limit_of("POOLS_PER_TREE") + 1)
    for name in kept:
        server.ask(f"keep {name}")

    def by_pool(scrape):
        rows = scrape.rows("workload_threads", workload=workload)
        threads = {}
        for labels, value in rows:
            threads[labels["pool"]] = threads.get(labels["pool"], 0) + value
        return threads

    seen = exporter.wait_for_equal(lambda s: sum(by_pool(s).values()), len(kept) + 1)
    seen = exporter.wait_until(lambda s: by_pool(s).get("other") == 2 and s)
    waiting = set(kept) - set(by_pool(seen))
    assert len(waiting) == 2
    leaving = [name for name in kept if name not in waiting][:2]
    for name in leaving:
        server.ask(f"leave {name}")
    pools = set(kept) - set(leaving)
    expected = dict.fromkeys(pools, 1)
    exporter.wait_for_equal(
        lambda s: {n: t for n, t in by_pool(s).items() if n in pools or n == "other"}, expected
    )


def test_a_pool_that_comes_again_within_the_grace_counts_on(start, exporters):
    exporter = exporters("--workloads.grace-period=6s")
    server = start(Service, "changer")
    workload = exporter.workload_of(server.port)
    sums = Sums(workload, EXITED, SECONDS)

    def ended(scrape):
        return Pool(scrape, workload, "name-again", role="other").get(EXITED)

    for count in range(1, 6):
        server.ask("thread name-again")
        settle(exporter, sums, ended, count)
        time.sleep(0.5)
    settle(exporter, sums, lambda s: len(s.rows(EXITED, workload=workload)), 1)
    # Each has left the pool of its creator as well, which goes on.
    assert sums.get(EXITED) == 5 + 5
    server.ask("thread name-again")
    settle(exporter, sums, ended, 1)
    assert sums.get(EXITED) == 6 + 6
