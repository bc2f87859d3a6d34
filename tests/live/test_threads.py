# SPDX-License-Identifier: Apache-2.0
"""Thread pools: where their time goes, and that it adds up to threads x time."""

import os
import time
from pathlib import Path

import pytest

from clients import REQUEST, exchange_once, receive
from exporter import bound
from exposition import Endpoint, Pool, PoolChange
from kernel_types import mounted
from services import SCRATCH, JavaPool, Load, Service
from utilization import Utilization

POSSIBLE_CPUS = "/sys/devices/system/cpu/possible"
WINDOW_SECONDS = 10
LOCKERS = "locker-#"
RESTING = {"condvar": 8, "blocked": 4, "sleepers": 4}


def exact(tolerance):
    """Thread seconds over threads x time."""
    return pytest.approx(1, abs=tolerance)


@pytest.fixture(scope="module")
def quiet(exporter, start_for_module):
    """Ten seconds of pools that have nothing to compute: {name: PoolChange}."""
    pools = {}
    for mode, threads in RESTING.items():
        server = start_for_module(Service, "locker", mode=mode, threads=threads)
        server.ask("start")
        pools[mode] = (exporter.workload_of(server.port), LOCKERS, threads)
    server = start_for_module(Service, "pool_server", workers=6)
    pools["accept"] = (exporter.workload_of(server.port), "worker-#", 6)
    java = start_for_module(JavaPool, 5)
    pools["java"] = (exporter.workload_of(java.port), "pool-#-thread-#", 5)
    exporter.wait_for_equal(
        lambda s: {name: Pool(s, *pool[:2]).threads() for name, pool in pools.items()},
        {name: pool[2] for name, pool in pools.items()},
    )
    before = exporter.scrape()
    time.sleep(WINDOW_SECONDS)
    after = exporter.scrape()
    return {name: PoolChange(before, after, *pool) for name, pool in pools.items()}


@pytest.mark.long
@pytest.mark.parametrize("name", [*RESTING, "accept", "java"])
def test_time_of_a_quiet_pool_is_threads_times_time(quiet, name):
    quiet[name].check_whole()
    assert quiet[name].after.threads() == quiet[name].threads


@pytest.mark.parametrize("name", ["condvar", "accept", "java"])
def test_a_pool_without_work_is_idle_and_shows_no_lock(quiet, name):
    pool = quiet[name]
    pool.check_all("idle")
    assert pool.after.seconds("lock") == pool.before.seconds("lock")
    assert pool.after.mutex_waits() == pool.before.mutex_waits()
    assert pool.after.threads("idle") == pool.threads


def test_a_thread_blocked_for_the_whole_time_is_idle_now_and_not_when_it_wakes(quiet):
    quiet["blocked"].check_all("idle")


def test_a_thread_that_sleeps_is_asleep(quiet):
    """Each wakes twenty times a second, and may have to wait for a CPU then."""
    quiet["sleepers"].check_all("sleep", "running", "runnable")
    assert quiet["sleepers"].share("sleep") > 0.5


@pytest.mark.times
def test_a_thread_that_sleeps_does_little_else(quiet):
    assert quiet["sleepers"].share("sleep") == exact(0.1)


def test_a_computing_pool_runs_or_waits_for_a_cpu(exporter, start):
    """Overload: four threads on two CPUs."""
    server = start(Service, "locker", mode="burn", threads=4)
    workload = exporter.workload_of(server.port)
    server.ask("start")
    exporter.wait_for_equal(lambda s: Pool(s, workload, LOCKERS).threads(), 4)
    before = exporter.scrape()
    time.sleep(5)
    pool = PoolChange(before, exporter.scrape(), workload, LOCKERS, 4)
    waits = pool.after.get("workload_runqueue_wait_seconds_count")
    pool.check_whole()
    pool.check_all("running", "runnable")
    assert pool.share("runnable") > 0.3
    assert waits > pool.before.get("workload_runqueue_wait_seconds_count")
    reference = server.ask("finish")
    total = exporter.settled(lambda s: not Pool(s, workload, LOCKERS).threads())
    check_lives(Pool(total, workload, LOCKERS), reference)


def check_lives(pool, reference):
    """
    A thread lives for longer than its main function takes, and is started and joined in more; its
    new name is seen when it is switched.
    """
    lived = pool.seconds() * 1e9
    assert 0.98 * reference["inside_ns"] <= lived <= reference["thread_ns"]


def test_a_thousand_short_threads_are_all_accounted(exporter, start):
    server = start(
        Service, "locker", mode="churn", threads=8, children=125, hold_sleep_us=20000
    )
    workload = exporter.workload_of(server.port)
    server.ask("start")
    reference = server.ask("finish")
    end = Pool(
        exporter.settled(lambda s: not Pool(s, workload, LOCKERS).threads()),
        workload,
        LOCKERS,
    )
    assert reference["threads"] == 1008
    assert started_and_exited(end) == (1008, 1008)
    check_lives(end, reference)


def started_and_exited(pool):
    return tuple(pool.get(f"workload_threads_{what}_total") for what in ("started", "exited"))


def test_a_pool_keeps_its_total_while_its_threads_come_and_go(exporter, start):
    """Two, which wait at the end, and their children."""
    server = start(Service, "locker", mode="churn", threads=2, children=400, hold_sleep_us=5000)
    workload = exporter.workload_of(server.port)
    server.ask("start")
    exporter.wait_until(lambda s: started_and_exited(Pool(s, workload, LOCKERS))[0] >= 100)
    last = 0
    for _ in range(10):
        pool = Pool(exporter.scrape(), workload, LOCKERS)
        assert pool.seconds() >= last
        # How many of those that have been joined have not quite exited is up to the scheduler.
        assert pool.threads() >= 2
        last = pool.seconds()
        time.sleep(0.2)
    end = exporter.settled(lambda s: started_and_exited(Pool(s, workload, LOCKERS)) == (802, 800))
    assert Pool(end, workload, LOCKERS).threads() == 2
    server.ask("finish")


def test_threads_older_than_the_listener_are_all_found(exporter, start):
    for _ in range(4):
        server = start(Service, "locker", mode="condvar", threads=300, early=1)
        workload = exporter.workload_of(server.port)
        exporter.wait_for_equal(lambda s, w=workload: Pool(s, w, LOCKERS).threads("idle"), 300)


def test_threads_born_after_the_main_thread_has_ended_belong_to_its_service(exporter, start):
    server = start(Service, "pool_server", leave=1, workers=4)
    workload = exporter.workload_of(server.port)
    exporter.wait_until(lambda s: Pool(s, workload, "worker-#").threads() == 4)
    start(Load, server.port, clients=4, requests=100).finish()
    exporter.wait_for_end(server.port, 100)
    assert exporter.workload_of(server.port) == workload


def test_threads_that_name_themselves_are_in_the_pool_of_that_name(exporter, start):
    server = start(Service, "pool_server", workers=7, mode="queue")
    workload = exporter.workload_of(server.port)
    exporter.wait_for_equal(
        lambda s: {
            pool: Pool(s, workload, pool).threads() for pool in ("worker-#", "acceptor-#")
        },
        {"worker-#": 7, "acceptor-#": 1},
    )


def test_prefork_workers_that_take_turns_to_accept_are_idle(exporter, start):
    """All but one wait for a lock that is held until a client comes; the master for its children."""
    server = start(Service, "forker", children=4, turns=1, supervise=1)
    workload = exporter.workload_of(server.port)
    assert start(Load, server.port, clients=4, requests=400).finish()["errors"] == 0
    end = exporter.wait_until(lambda s: Pool(s, workload, workload).threads("idle") == 5 and s)
    assert Pool(end, workload, workload).threads() == 5
    assert not Pool(end, workload, workload).seconds("lock")
    exporter.wait_for_end(server.port, 400)


def test_a_worker_asleep_in_a_request_is_busy(exporter, start, connect):
    server = start(Service, "pool_server", workers=2, service_us=1500000)
    workload = exporter.workload_of(server.port)
    client = connect(server.port)
    exporter.wait_for_equal(lambda s: Pool(s, workload, "worker-#").threads("idle"), 2)
    client.sendall(b"q" * 100)
    during = exporter.wait_for_equal(lambda s: Pool(s, workload, "worker-#").threads("sleep"), 1)
    assert Pool(during, workload, "worker-#").threads("idle") == 1
    exporter.wait_for_equal(lambda s: Pool(s, workload, "worker-#").threads("idle"), 2)


def at_rest(exporter, workload, pool, state):
    """The scrape since which its one thread is in @state: before, it may be on its way to it."""
    others = []

    def rests(scrape):
        seen = Pool(scrape, workload, pool)
        others.append(seen.seconds() - seen.seconds(state))
        return seen.threads(state) == 1 and others[-2:-1] == pytest.approx(others[-1:], abs=1e-9)

    return exporter.wait_until(rests)


@pytest.mark.parametrize("block", ["peek", "eof", "wait"], ids=["recv", "read", "futex"])
def test_a_reader_whose_request_another_thread_has_answered_is_idle(exporter, talk, block):
    """It waits for that one in the request, and for whatever comes next outside of it."""
    case = talk(f"read:100,hand:100,{block}")
    workload = exporter.workload_of(case.port)
    case.client.sendall(REQUEST)
    before = at_rest(exporter, workload, "talker-#", "wait")
    time.sleep(1)
    served = PoolChange(before, exporter.scrape(), workload, "talker-#", 1)
    served.check_whole()
    served.check_all("wait")
    case.server.ask("go")
    receive(case.client)
    before = at_rest(exporter, workload, "talker-#", "idle")
    time.sleep(1)
    answered = PoolChange(before, exporter.scrape(), workload, "talker-#", 1)
    answered.check_whole()
    answered.check_all("idle")
    case.client.close()
    if block == "wait":
        case.server.ask("go")
    exporter.wait_for_end(case.port, 1)


@pytest.mark.parametrize("poll", [0, 1], ids=["recv", "poll"])
@pytest.mark.times
def test_a_worker_that_waits_for_another_service_is_on_the_network(exporter, start, poll):
    upstream = start(Service, "pool_server", workers=4, service_us=50000)
    server = start(
        Service, "pool_server", workers=4, upstream_port=upstream.port, upstream_poll=poll
    )
    exporter.workload_of(server.port)
    load = start(Load, server.port, clients=4)
    exporter.wait_until(lambda s: Endpoint(s, server.port).counts()[0] >= 8)
    utilization = Utilization(exporter, server, 4, seconds=3)
    assert load.interrupt()["errors"] == 0
    utilization.check("network")
    assert utilization.own == pytest.approx(1, abs=0.2)
    assert utilization.pool.share() == exact(0.01)


@pytest.fixture(scope="module")
def synced(exporter, start_for_module):
    """The pools of threads that write and of others, and what the first say of themselves."""
    server = start_for_module(Service, "syncer", threads=2, bytes=65536, directory=SCRATCH)
    workload = exporter.workload_of(server.port)
    server.ask("start")
    time.sleep(3)
    own = server.ask("finish")
    assert own["sleeps"] >= own["syncs"] > 10, "build/ is not on a disk"
    end = exporter.settled(lambda s: not Pool(s, workload, "syncer-#").threads())
    lost = "workload_measurements_dropped_total"
    own["unseen"] = end.sum(lost, workload=workload, reason="switch_unseen")
    return Pool(end, workload, "syncer-#"), Pool(end, workload, "sleeper-#"), own


def missing_waits(pool, own):
    """
    Sleeps that are in no histogram, and at most how many seconds the state has more for them: it
    lasts from one round into the next where a thread was not seen to wake and to run.
    """
    missing = max(0, own["sleeps"] - pool.get("workload_disk_wait_seconds_count"))
    return missing, missing * 2 * own["longest_ns"] / 1e9


def test_time_in_fsync_is_disk_and_what_a_cpu_takes(synced):
    """An fsync sleeps about twice: for the data, then for the journal."""
    pool, others, own = synced
    disk, busy = pool.seconds("disk"), pool.seconds("running") + pool.seconds("runnable")
    assert disk + busy == pytest.approx(pool.seconds(), rel=0.005)
    assert 0 < disk * 1e9 < own["sync_ns"]
    assert pool.get("workload_disk_wait_seconds_count") == pytest.approx(own["sleeps"], rel=0.02)
    missing, longer = missing_waits(pool, own)
    assert missing <= own["unseen"]
    # A wait ends when the thread runs again, the state when it is woken.
    waited = pool.get("workload_disk_wait_seconds_sum")
    assert 0.98 * disk - longer <= waited <= disk + pool.seconds("runnable")
    assert others.seconds("sleep") > 0
    assert others.seconds("disk") == others.get("workload_disk_wait_seconds_count") == 0


@pytest.mark.times
def test_time_in_fsync_is_what_the_scheduler_leaves_of_the_threads_lives(synced):
    pool, _, own = synced
    disk, busy = pool.seconds("disk"), pool.seconds("running") + pool.seconds("runnable")
    assert pool.seconds() * 1e9 == pytest.approx(own["life_ns"], rel=0.01)
    assert disk * 1e9 == pytest.approx(own["life_ns"] - own["busy_ns"], rel=0.05)
    assert own["sync_ns"] < (disk + busy) * 1e9 * 1.005
    _, longer = missing_waits(pool, own)
    waited = pool.get("workload_disk_wait_seconds_sum")
    assert waited == pytest.approx(disk, abs=0.02 * disk + longer)


@pytest.mark.skipif(os.cpu_count() < 2, reason="there is one CPU")
def test_what_happens_on_a_cpu_that_was_not_possible_is_counted_as_lost(exporters, start, tmp_path):
    """
    It would be written where another CPU writes, or a walk: their numbers would be torn or wrong.
    What the other CPU does to threads of this one (a timer that wakes them, a walk) is counted.
    """
    possible = tmp_path / "possible"
    possible.write_text("0\n")
    exporter = exporters(launcher=mounted(f"mount --bind {possible} {POSSIBLE_CPUS}"))
    servers = []
    for cpu in (0, 1):
        servers.append(
            start(Service, "locker", prefix=["taskset", "--cpu-list", cpu], mode="sleepers", threads=4)
        )
        servers[-1].ask("start")
    measured = exporter.workload_of(servers[0].port)

    def lost(scrape):
        return scrape.losses().get("cpu_unknown", 0)

    before = exporter.wait_until(lambda s: lost(s) and Pool(s, measured, LOCKERS).threads() == 4 and s)
    after = exporter.wait_until(lambda s: lost(s) > lost(before) and s.at > before.at + 1 and s)
    PoolChange(before, after, measured, LOCKERS, 4).check_whole()
    assert not after.losses().get("torn_read")


def test_a_java_pool_serves_and_is_named_a_jvm(exporter, start, connect):
    java = start(JavaPool, 3)
    workload = exporter.workload_of(java.port)
    for _ in range(20):
        exchange_once(connect(java.port))
    scrape = exporter.wait_for_equal(lambda s: Endpoint(s, java.port).counts(), (20, 20, 20))
    runtimes = {row[0]["runtime"] for row in scrape.rows("workload_info", workload=workload)}
    assert runtimes == {"jvm"}


@pytest.mark.bounds
def test_cpu_time_of_a_service_is_its_running_time(exporter, start):
    """At least: the kernel's clock leaves out what a hypervisor takes of a CPU meanwhile."""
    server = start(Service, "pool_server", workers=2, busy_us=2000)
    workload = exporter.workload_of(server.port)
    load = start(Load, server.port, clients=1)
    exporter.wait_until(lambda s: Endpoint(s, server.port).counts()[0] >= 10)
    cpu, scrapes = [], []
    for seconds in (3, 0):
        cpu.append(cpu_seconds(server.pid))
        scrapes.append(exporter.scrape())
        cpu.append(cpu_seconds(server.pid))
        time.sleep(seconds)
    load.interrupt()
    before, after = scrapes
    running = sum(
        s.sum("workload_thread_seconds_total", workload=workload, state="running") * sign
        for s, sign in ((after, 1), (before, -1))
    )
    assert 0.97 * (cpu[2] - cpu[1]) <= running
    assert running <= bound(1.03 * (cpu[3] - cpu[0]), os.cpu_count() * (after.ended - before.began))


def cpu_seconds(pid):
    """Of all threads alive, to the nanosecond."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9
