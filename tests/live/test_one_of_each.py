# SPDX-License-Identifier: Apache-2.0
"""
One request, one wait for a lock, one thread: each is counted as one and takes the time it took at
least. Every kernel of the matrix runs this (tests/kernels).
"""

import time

import pytest

from clients import LATE_SECONDS, REQUEST, receive
from exposition import Endpoint, Pool
from services import Service

STEP_SECONDS = 0.3
LOCK_SECONDS = SERVICE_SECONDS = 2  # more than the machine may let a look at it wait


@pytest.mark.bounds
def test_one_request_waits_is_served_and_is_counted(exporter, talk):
    case = talk("wait,read:100,wait,write:100,eof")
    began = time.monotonic()
    case.client.sendall(REQUEST)
    sent = time.monotonic()
    exporter.wait_for_endpoint(case.port, lambda e: e.gauges()[:2], (1, 0))
    time.sleep(STEP_SECONDS)
    waited = time.monotonic() - sent
    case.server.ask("go")
    taken = exporter.wait_for_endpoint(case.port, lambda e: e.gauges()[:2], (0, 1)).scrape.ended
    time.sleep(STEP_SECONDS)
    served = time.monotonic() - taken
    case.server.ask("go")
    receive(case.client)
    case.client.close()
    end = exporter.wait_for_end(case.port, 1)
    queue, service = end.seconds("queue"), end.seconds("service")
    assert queue >= waited - LATE_SECONDS and service >= served
    assert end.seconds("duration") == pytest.approx(queue + service, rel=1e-9)
    assert queue + service <= end.scrape.ended - began
    assert end.get("workload_received_bytes_total") == len(REQUEST)


def test_one_wait_for_a_lock_is_counted(exporter, start, connect):
    """Two requests at once: the second one waits until the first gives the lock back."""
    server = start(Service, "pool_server", workers=2, lock_us=int(LOCK_SECONDS * 1e6))
    workload = exporter.workload_of(server.port)

    def idle():
        end = exporter.settled(lambda s: Pool(s, workload, "worker-#").threads("idle") == 2)
        pool = Pool(end, workload, "worker-#")
        return *pool.mutex_waits(), pool.seconds("lock"), pool.seconds("runnable")

    before = idle()  # threads that begin at once may wait for a lock of the C library
    clients = [connect(server.port) for _ in range(2)]
    for client in clients:
        client.sendall(REQUEST)
    exporter.wait_until(lambda s: Pool(s, workload, "worker-#").threads("lock") == 1)
    for client in clients:
        receive(client)
    own = server.ask("stats")
    assert own["lock_sleeps"] == 1
    count, seconds, lock, runnable = (now - then for now, then in zip(idle(), before))
    assert count == 1
    # A wait ends when the thread runs again, the state when it is woken.
    assert 0 < lock <= seconds <= lock + runnable
    assert seconds <= own["lock_wait_ns"] / 1e9


@pytest.mark.bounds
def test_one_thread_is_counted_and_idle_until_it_serves(exporter, start, connect):
    server = start(Service, "pool_server", workers=1, service_us=int(SERVICE_SECONDS * 1e6))
    workload = exporter.workload_of(server.port)

    def threads(state):
        return lambda scrape: Pool(scrape, workload, "worker-#").threads(state)

    exporter.wait_for_equal(threads(None), 1)
    exporter.wait_for_equal(threads("idle"), 1)
    client = connect(server.port)
    client.sendall(REQUEST)
    exporter.wait_for_equal(threads("sleep"), 1)
    receive(client)
    end = exporter.wait_for_equal(threads("idle"), 1)
    assert Pool(end, workload, "worker-#").seconds("sleep") >= SERVICE_SECONDS - LATE_SECONDS
    assert Pool(end, workload, "worker-#", role="serving").threads() == 1
    client.close()
    exporter.wait_for_endpoint(server.port, Endpoint.counts, (1, 1, 1))
