# SPDX-License-Identifier: Apache-2.0
"""
More connections and threads than the exporter's memory limit has room for: what the kernel keeps of
each is charged to its cgroup.
"""

import collections
import contextlib
import subprocess

import pytest

from attackers import Scraper
from clients import exchange, exchange_once
from exporter import Exporter, bound
from exposition import Endpoint, Pool
from limits import MemoryLimit
from services import Service, unique_name

pytestmark = pytest.mark.bounds

LIMIT_BYTES = 32 << 20
EACH = 9000
CONNECTIONS = 54000
THREADS = 10000
THREADS_EACH = 5000
SCRAPE_SECONDS = bound(0.25, 5)
AFTER_SECONDS = bound(15, 60)


@pytest.fixture
def limited():
    """limited(...) is an exporter in a cgroup of LIMIT_BYTES, which must not have been killed."""
    with contextlib.ExitStack() as stack:
        limit = stack.enter_context(MemoryLimit(LIMIT_BYTES))

        def function(*arguments):
            exporter = Exporter(*arguments, launcher=limit.launcher)
            stack.callback(exporter.stop)
            return exporter, limit

        yield function


def crowds(start, count, **options):
    return [start(Service, "crowd", name=unique_name("crowd"), **options) for _ in range(count)]


def room(exporter, kind):
    pattern = r"room for (?P<sockets>\d+) sockets and (?P<threads>\d+) threads"
    return int(exporter.wait_for_log(pattern)[kind])


def entries(scrape, name):
    return scrape.sum("workload_exporter_map_entries", map=name)


def counted(*command):
    """What the kernel has, by the first word of each line of @command."""
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return collections.Counter(line.split()[0] for line in lines).most_common(8)


def wait_for_room(exporter, name, fits):
    """Until what has ended is forgotten. A failure tells what the kernel still has."""
    try:
        exporter.wait_until(lambda s: entries(s, name) < fits / 50, AFTER_SECONDS)
    except AssertionError as late:
        scrape = exporter.scrape()
        raise AssertionError(
            f"{entries(scrape, name)} {name} of {fits}, losses {scrape.losses()}, sockets "
            f"{counted('ss', '-Htan')}, threads {counted('ps', '-eLo', 'comm=')}"
        ) from late


def fate(scrape, service):
    """Of @service's connections: those that are measured, and those that were refused."""
    return (
        scrape.sum("workload_connections", workload=service.name),
        scrape.sum(
            "workload_measurements_dropped_total", workload=service.name, reason="connection_limit"
        ),
    )


def expect_exact(start, connect, exporter):
    """A service that starts now is measured."""
    server = start(Service, "pool_server", workers=2)
    client = connect(server.port)
    for done in range(1, 4):
        exchange(client)
        exporter.wait_for_endpoint(server.port, Endpoint.counts, (done,) * 3)
    assert Pool(exporter.scrape(), server.name, "worker-#").threads() == 2


def expect_alive(exporter, limit):
    assert limit.kills() == 0
    assert exporter.stop() == 0


@pytest.mark.parametrize("backend", ["socket", pytest.param("syscall", marks=pytest.mark.times)])
def test_connections_beyond_the_limit_are_counted(start, connect, limited, figures, backend):
    exporter, limit = limited(f"--requests.backend={backend}")
    fits = room(exporter, "sockets")
    with Scraper(exporter.port) as scraper:
        many = crowds(start, CONNECTIONS // EACH, connections=EACH)
        scrape = exporter.scrape()
    fates = [fate(scrape, service) for service in many]
    assert [sum(each) for each in fates] == [EACH] * len(many)
    measured = sum(tracked for tracked, _ in fates)
    assert fits * 3 / 4 < measured <= entries(scrape, "sockets") <= fits
    assert scrape.sum("workload_exporter_map_capacity", map="sockets") == fits
    figures(measured=measured, peak_memory=f"{limit.peak_bytes() >> 10} kB", **scraper.figures())
    assert not scraper.failures and scraper.longest_but_one() < SCRAPE_SECONDS
    for service in many:
        service.stop()
    wait_for_room(exporter, "sockets", fits)
    expect_exact(start, connect, exporter)
    # As much as before, that is: nothing that has ended is taken for one that is there.
    (again,) = crowds(start, 1, connections=EACH)
    exporter.wait_until(lambda s: fate(s, again)[0] > min(EACH, measured) * 0.95)
    expect_alive(exporter, limit)


def test_connections_that_are_open_at_the_start_are_counted(start, connect, limited):
    many = crowds(start, CONNECTIONS // EACH, connections=EACH)
    exporter, limit = limited()
    fits = room(exporter, "sockets")
    # It goes on looking for them while it serves.
    scrape = exporter.wait_for_equal(
        lambda s: [sum(fate(s, service)) for service in many], [EACH] * len(many), AFTER_SECONDS
    )
    assert sum(fate(scrape, service)[0] for service in many) > fits * 3 / 4
    for service in many:
        service.stop()
    wait_for_room(exporter, "sockets", fits)
    expect_exact(start, connect, exporter)
    expect_alive(exporter, limit)


def test_threads_beyond_the_limit_are_found_once_there_is_room(start, connect, limited):
    exporter, limit = limited()
    fits = room(exporter, "threads")
    assert fits < THREADS
    many = crowds(start, THREADS // THREADS_EACH, threads=THREADS_EACH)
    late = start(Service, "pool_server", workers=2)
    scrape = exporter.wait_until(lambda s: s.losses().get("thread_limit"))
    assert fits * 3 / 4 < entries(scrape, "threads") <= fits
    assert Pool(scrape, late.name, "worker-#").threads() == 0
    exchange_once(connect(late.port))
    exporter.wait_for_endpoint(late.port, Endpoint.counts, (1, 1, 1))
    for service in many:
        service.stop()
    exporter.wait_until(
        lambda s: Pool(s, late.name, "worker-#").threads() == 2, AFTER_SECONDS
    )
    wait_for_room(exporter, "threads", fits)  # the first room was for those that were missed
    expect_exact(start, connect, exporter)
    expect_alive(exporter, limit)
