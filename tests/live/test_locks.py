# SPDX-License-Identifier: Apache-2.0
"""Waiting for locks: as the threads' own clocks around the lock call say."""

import platform
import time

import pytest

from exporter import EMULATED, SLOWER
from exposition import Pool
from services import Load, Process, Service, free_port, python_link, unique_name

LOCKERS = "locker-#"
MEASURE_SECONDS = 3
PARK_SECONDS = 1


def contend(exporter, start, **options):
    """Lets threads contend; returns the pool as measured and their own clocks."""
    server = start(Service, "locker", **options)
    workload = exporter.workload_of(server.port)
    server.ask("start")
    time.sleep(MEASURE_SECONDS)
    own = server.ask("finish")
    end = exporter.settled(lambda s: not Pool(s, workload, LOCKERS).threads())
    return Pool(end, workload, LOCKERS), own


def check_waits(count, sleeps, switches):
    """
    One for each acquisition that slept. On an emulated machine, where a woken thread runs for
    longer than EPISODE_GAP_NS before it tries again, it may be one for each of its sleeps.
    """
    most = switches if EMULATED else sleeps
    assert 0.95 * sleeps <= count <= 1.05 * most, (sleeps, count, switches)


@pytest.mark.parametrize("mode", ["mutex", "robust", "rwlock", "pi"])
@pytest.mark.parametrize(
    "hold", [{"hold_us": 2000}, {"hold_sleep_us": 2000}], ids=["computing", "sleeping"]
)
@pytest.mark.times
def test_lock_waits_are_what_threads_measure_themselves(exporter, start, mode, hold):
    pool, own = contend(exporter, start, mode=mode, threads=4, think_us=1000, **hold)
    count, seconds = pool.mutex_waits()
    assert own["sleeps"] > 100 / SLOWER
    # A thread that waits for a rwlock is woken to try again; what it runs for that is in its own
    # time and not in ours (1 % as a rule, 5 % once while the host took CPU time away).
    assert seconds * 1e9 == pytest.approx(own["wait_ns"], rel=0.05)
    # A writer may sleep on both words of a rwlock, one after the other: that is one wait too.
    check_waits(count, own["sleeps"], own["switches"])


# Two threads that wait for nobody at words of their own, which count where locks have their owner.
OWN_FUTEX = """
import ctypes, socket, struct, sys, threading
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
call = ctypes.CDLL(None).syscall
def wait(value, operation, futex):
    word, timeout = ctypes.c_uint32(value), struct.pack("qq", 0, 20_000_000)
    while True:
        call(futex, ctypes.byref(word), operation, ctypes.c_uint32(value), timeout, None, 0)
futex = int(sys.argv[2])
for value, operation in ((0x80000001, 128), (0x80000001, 0), (0x80000000 | 4711, 128)):
    threading.Thread(target=wait, args=(value, operation, futex), daemon=True).start()
threading.Event().wait()
"""
FUTEX = {"x86_64": 202, "aarch64": 98}


def test_a_program_s_own_futex_is_no_lock_whatever_its_value(exporter, start):
    name = unique_name("futex")
    words = (free_port(), FUTEX[platform.machine()])
    start(Process, [python_link(name), "-c", OWN_FUTEX, *words])
    # Its main thread waits in the same way, for Python's own lock.
    end = exporter.wait_until(lambda s: Pool(s, name, name).seconds("idle") > 4 * PARK_SECONDS)
    assert Pool(end, name, name).seconds("lock") < PARK_SECONDS / 10  # some of its start
    assert Pool(end, name, name).mutex_waits()[1] < PARK_SECONDS / 10


UNSEEN = 0.01  # of the time: some machines show nobody when an agent of their host runs


@pytest.mark.parametrize("mode", ["mutex", "robust", "rwlock", "pi"])
def test_lock_state_and_lock_waits_tell_the_same(exporter, start, mode):
    """And no more than the threads' own clocks; a wait ends when the thread runs again."""
    pool, own = contend(exporter, start, mode=mode, threads=4, hold_sleep_us=2000)
    count, seconds = pool.mutex_waits()
    lock, runnable = pool.seconds("lock"), pool.seconds("runnable")
    assert 0 < lock <= seconds
    assert seconds <= (lock + runnable) * (1 + UNSEEN)
    assert seconds * 1e9 <= own["wait_ns"] * (1 + UNSEEN)
    assert 0 < count <= own["switches"]


@pytest.mark.times
def test_lock_state_is_the_time_of_the_lock_waits(exporter, start):
    pool, own = contend(exporter, start, mode="mutex", threads=4, hold_sleep_us=2000)
    assert pool.seconds("lock") * 1e9 == pytest.approx(own["wait_ns"], rel=0.05)


def test_a_lock_that_nobody_else_wants_is_never_waited_for(exporter, start):
    pool, own = contend(exporter, start, mode="mutex", threads=1, hold_us=100, think_us=100)
    assert own["acquisitions"] > 100
    assert pool.mutex_waits() == (0, 0)
    assert pool.seconds("lock") == 0


@pytest.mark.times
def test_a_hot_lock_in_a_service_shows_in_its_pool(exporter, start):
    server = start(Service, "pool_server", workers=4, lock_us=5000)
    workload = exporter.workload_of(server.port)
    load = start(Load, server.port, clients=8, requests=400)
    assert load.finish()["errors"] == 0
    own = server.ask("stats")
    end = exporter.wait_for_equal(lambda s: Pool(s, workload, "worker-#").threads("idle"), 4)
    count, seconds = Pool(end, workload, "worker-#").mutex_waits()
    assert seconds * 1e9 == pytest.approx(own["lock_wait_ns"], rel=0.05)
    check_waits(count, own["lock_sleeps"], own["lock_switches"])


def share_a_connection(exporter, start, wait, requests=200):
    """
    Workers that share a connection to another service behind a mutex, and get requests that a thread
    around epoll has read; returns their pool and what they say of the mutex.
    """
    behind = start(Service, "pool_server", workers=1, service_us=10000)
    server = start(Service, "handoff_server", workers=4, upstream_port=behind.port, wait=wait)
    workload = exporter.workload_of(server.port)
    load = start(Load, server.port, clients=8, requests=requests)
    assert load.finish()["errors"] == 0
    end = exporter.settled(lambda s: Pool(s, workload, "worker-#").threads("idle") == 4)
    return Pool(end, workload, "worker-#"), server.ask("stats")


# Waits for the lock of the workers' queue, which on a busy machine are some, and none of their own.
AT_THE_QUEUE = 0.05
HOW_A_WORKER_WAITS = ("recv", "read", "poll", "polls", "select")


@pytest.mark.parametrize("wait", HOW_A_WORKER_WAITS)
def test_a_lock_around_a_call_to_another_service_is_no_turn(exporter, start, wait):
    """Although nobody knows that its owner, which waits for that service, is at a request."""
    pool, own = share_a_connection(exporter, start, wait)
    count, seconds = pool.mutex_waits()
    assert own["lock_sleeps"] > 10
    assert own["lock_sleeps"] <= count <= own["lock_switches"] * (1 + AT_THE_QUEUE)
    assert own["lock_wait_ns"] / 2 < seconds * 1e9 <= own["lock_wait_ns"] * (1 + AT_THE_QUEUE)
    assert 0 < pool.seconds("lock") <= seconds


@pytest.mark.parametrize("wait", HOW_A_WORKER_WAITS)
@pytest.mark.times
def test_waits_at_a_lock_around_a_call_are_what_workers_measure(exporter, start, wait):
    pool, own = share_a_connection(exporter, start, wait)
    assert pool.mutex_waits()[1] * 1e9 == pytest.approx(own["lock_wait_ns"], rel=0.05)
    assert pool.seconds("lock") * 1e9 == pytest.approx(own["lock_wait_ns"], rel=0.05)


@pytest.mark.parametrize("turns", [0, 1], ids=["alone", "beside turns"])
@pytest.mark.times
def test_a_contended_lock_between_two_requests_is_a_lock(exporter, start, turns):
    """Also where the same threads wait for work at another one in turns, which is none."""
    server = start(
        Service, "pool_server", workers=8, turns=turns, lock_us=1000, lock_late=1
    )
    workload = exporter.workload_of(server.port)
    # Until it is known of that lock: not for these.
    start(Load, server.port, clients=1, requests=20, rate=50, keep_alive=0).finish()
    exporter.wait_for_equal(lambda s: Pool(s, workload, "worker-#").threads("idle"), 8)
    before, own = Pool(exporter.scrape(), workload, "worker-#"), server.ask("stats")
    load = start(Load, server.port, clients=16, requests=1000, keep_alive=0)
    assert load.finish()["errors"] == 0
    end = exporter.wait_for_equal(lambda s: Pool(s, workload, "worker-#").threads("idle"), 8)
    after = Pool(end, workload, "worker-#")
    waited = (server.ask("stats")["lock_wait_ns"] - own["lock_wait_ns"]) / 1e9
    assert waited > 1
    assert after.mutex_waits()[1] - before.mutex_waits()[1] == pytest.approx(waited, rel=0.05)
    assert after.seconds("lock") - before.seconds("lock") == pytest.approx(waited, rel=0.05)
