# SPDX-License-Identifier: Apache-2.0
"""An exporter or a service in a time namespace, whose clocks are off: times are as elsewhere."""

import time

import pytest

from clients import REQUEST, exchange_once
from exposition import Endpoint, Pool, PoolChange
from services import Service

WORKERS = 2
TOLERANCE_SECONDS = 1
AHEAD = {"ahead": 100000, "behind": -30}


@pytest.fixture(params=AHEAD.values(), ids=AHEAD.keys())
def in_time_namespace(request):
    """Runs a command there."""
    offset = request.param
    return ["unshare", "--time", f"--monotonic={offset}", f"--boottime={offset}"]


def thread_seconds(scrape, server):
    return Pool(scrape, server.name, "worker-#").seconds()


def check(exporter, start, connect, prefix=()):
    """A server whose name, thread times and waiting requests are seen as they are."""
    before = time.monotonic()
    server = start(Service, "pool_server", workers=WORKERS, prefix=prefix)
    started = time.monotonic()
    assert exporter.workload_of(server.port) == server.name
    exchange_once(connect(server.port))
    exporter.wait_for_endpoint(server.port, Endpoint.counts, (1, 1, 1))
    scrape = exporter.wait_for_equal(
        lambda s: Pool(s, server.name, "worker-#").threads("idle"), WORKERS
    )
    # In the middle of these there is at most what the start took.
    assert scrape.began - started <= thread_seconds(scrape, server) / WORKERS + TOLERANCE_SECONDS
    assert thread_seconds(scrape, server) / WORKERS <= scrape.ended - before + TOLERANCE_SECONDS
    (info,) = scrape.rows("workload_info", workload=server.name)
    assert info[0]["exe"] == str(server.path)
    server.ask("stuck")
    sent = time.monotonic()
    for _ in range(2 * WORKERS):
        connect(server.port).sendall(REQUEST)

    def age(scrape):
        return scrape.one("workload_request_oldest_queued_seconds", port=server.port)

    aged = exporter.wait_until(lambda s: 0.5 < age(s))
    assert age(aged) <= aged.ended - sent + 0.01
    assert aged.began - sent <= age(aged) + TOLERANCE_SECONDS
    # The same time passes for both.
    PoolChange(scrape, aged, server.name, "worker-#", WORKERS).check_whole()


def test_an_exporter_in_a_time_namespace_measures_as_outside(
    exporters, start, connect, in_time_namespace
):
    exporter = exporters(launcher=in_time_namespace)
    check(exporter, start, connect)
    scrape = exporter.scrape()
    assert scrape.one("process_start_time_seconds") == pytest.approx(time.time(), abs=60)


def test_a_service_in_a_time_namespace_is_measured_as_outside(
    exporter, start, connect, in_time_namespace
):
    check(exporter, start, connect, in_time_namespace)
