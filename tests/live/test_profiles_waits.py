# SPDX-License-Identifier: Apache-2.0
"""
Profiles of waits, of programs that have measured their own, and beside the exact metrics of the same
time: how often and how long at each place, and where waits go on for longer than a profile.
"""

import subprocess
import time

import pytest

from databases import POSTGRESQL, PostgreSQL
from exporter import SLOWER
from profiles import BLOCK, MUTEX, OFFCPU, begun, take_pprof, wait_until_read
from services import Process, Redis, Service

SECONDS = 10 * SLOWER
STATES = ("runnable", "lock", "disk", "network", "wait", "sleep")
# Who waits only for a moment is sampled now and then where many do: most of these are all sampled.
WITHIN = 0.15
LONG = ("thread_run", "round_run", "long_wait")
SHORT = ("thread_run", "round_run", "short_wait")
NAP = ("thread_run", "round_run", "nap")


def near(expected, within=WITHIN, least=0.05):
    return pytest.approx(expected, rel=within, abs=least)


def profile_begun(exporter, seconds, path, **options):
    return begun(take_pprof, exporter, seconds, path=path, program="profiles_waits", **options)


def wait_until_waits_are_read(exporter, waiter):
    """It uses no CPU of which there could be samples."""
    workload = exporter.workload_of(waiter.port)
    wait_until_read(exporter, workload, lambda: waiter.ask("run 1"), MUTEX)


@pytest.fixture
def wait(profiling, start):
    """wait(rounds, path, **options): a profile of all of a run, what threads measured, and metrics."""

    def run(rounds, path, program="waiter", **options):
        waiter = start(Service, program, **options)
        workload = profiling.workload_of(waiter.port)
        wait_until_waits_are_read(profiling, waiter)
        before = profiling.scrape()
        result = profile_begun(profiling, SECONDS, path, workload=workload)
        own = waiter.ask(f"run {rounds}")
        assert not result.done(), "the machine is too slow: the run is longer than the profile"
        profile = result.result()
        after = profiling.scrape()
        spent = {
            state: sum(
                sign * scrape.sum("workload_thread_seconds_total", workload=workload, state=state)
                for sign, scrape in ((1, after), (-1, before))
            )
            for state in STATES
        }
        print(f"own {own}\nmetrics {spent}")
        for name, site in (("long", LONG), ("short", SHORT), ("nap", NAP)):
            print(name, {state: profile.waits(*site, states=[state]) for state in STATES})
        return profile, own, spent

    return run


def expect_complete(profile):
    """By time; a thread that has just begun has none while it waits for its first CPU."""
    blocked = [stack for stack in profile.stacks if stack.state != "runnable"]
    missing = sum(stack.ns for stack in blocked if not stack.is_complete)
    assert missing <= 0.01 * sum(stack.ns for stack in blocked), profile.ends()


# --- each place -------------------------------------------------------------------------------------


@pytest.mark.parametrize("program", ["waiter", "waiter_musl"])
def test_each_place_has_its_waits_and_their_time_and_all_of_them_the_time_of_the_metrics(
    wait, program
):
    profile, own, spent = wait(40, OFFCPU, program)
    assert profile.types == ["waits/count", "offcpu/nanoseconds"]
    expect_complete(profile)
    for state, seconds in spent.items():
        assert profile.waits(states=[state])[1] == near(seconds), state
    count, locked = profile.waits(*LONG, states=["lock"])
    assert count == near(own["long_switches"], within=0.3, least=3)
    assert locked == near(spent["lock"])
    # Until the thread runs on, it waits for a CPU.
    queued = profile.waits(*LONG, states=["runnable"])[1]
    assert locked + queued == near(own["long_wait_ns"] / 1e9)
    assert profile.waits(*LONG, "sys_futex", states=["lock"]) == (count, locked)
    naps, slept = profile.waits(*NAP, "sys_clock_nanosleep", states=["sleep"])
    assert naps == near(own["naps"], least=3)
    queued = profile.waits(*NAP, states=["runnable"])[1]
    assert slept + queued == near(own["nap_ns"] / 1e9)


def test_short_waits_are_sampled_and_told_as_long_as_they_are(wait):
    """Beside long ones of the same threads."""
    profile, own, spent = wait(25, OFFCPU, shorts=50)
    assert own["short_switches"] > own["long_switches"]
    for state in ("lock", "sleep"):
        assert profile.waits(states=[state])[1] == near(spent[state], within=0.5, least=0.1)
    for name, site in (("long", LONG), ("short", SHORT)):
        seconds = profile.waits(*site, states=["lock", "runnable"])[1]
        assert seconds == near(own[f"{name}_wait_ns"] / 1e9, within=0.7, least=0.1), name


@pytest.mark.parametrize(
    ("path", "states", "others"),
    [(MUTEX, {"lock"}, set()), (BLOCK, {"lock", "sleep"}, {"wait", "network", "disk"})],
)
def test_pages_of_less_have_the_same_of_that(wait, path, states, others):
    profile, own, spent = wait(30, path)
    assert profile.types == ["contentions/count", "delay/nanoseconds"]
    assert {stack.state for stack in profile.stacks} - others == states
    assert profile.waits(*LONG)[0] == near(own["long_switches"], within=0.3, least=3)
    for state in states:
        assert profile.waits(states=[state])[1] == near(spent[state]), state


def test_what_waits_for_work_has_no_waits_but_for_a_cpu(profiling, start):
    idle = start(Service, "waiter")
    workload = profiling.workload_of(idle.port)
    result = profile_begun(profiling, 2, OFFCPU, workload=workload)
    for _ in range(20):
        idle.ask("nothing")
    profile = result.result()
    assert profile.waits(states=["runnable"])[0] >= 1
    # But for a page that is read from the disk.
    assert {stack.state for stack in profile.stacks} <= {"runnable", "disk"}


# --- waits that are longer than a profile -----------------------------------------------------------


def test_a_wait_that_began_before_the_profile_has_the_time_of_it_and_no_stack(profiling, start):
    waiter = start(Service, "waiter")
    workload = profiling.workload_of(waiter.port)
    waiter.ask("block")
    profiling.wait_until(
        lambda s: s.sum("workload_threads", workload=workload, state="lock") == 1
    )
    profile = take_pprof(profiling, 2, path=MUTEX, workload=workload)
    count, seconds = profile.waits("[began_before]", states=["lock"])
    assert count == 0
    assert seconds == near(profile.duration, within=0.1)
    waiter.ask("nothing")


def test_a_wait_that_outlasts_the_profile_has_its_stack_and_the_time_up_to_its_end(profiling, start):
    """It is told every second, and once: its stack was told with the first."""
    waiter = start(Service, "waiter")
    workload = profiling.workload_of(waiter.port)
    wait_until_waits_are_read(profiling, waiter)
    result = profile_begun(profiling, 4, MUTEX, workload=workload)
    before = time.time()
    waiter.ask("block")
    profiling.wait_until(
        lambda s: s.sum("workload_threads", workload=workload, state="lock") == 1
    )
    after = time.time()
    profile = result.result()
    waiter.ask("nothing")
    count, seconds = profile.waits("blocked_run", "long_wait")
    assert count == 1
    ended = profile.began.timestamp() + profile.duration
    assert ended - after - 0.1 <= seconds <= ended - before + 0.1
    assert profile.waits()[1] - seconds < 0.05


def test_profiles_that_are_taken_at_once_have_what_was_in_their_own_time(profiling, start):
    waiter = start(Service, "waiter")
    workload = profiling.workload_of(waiter.port)
    wait_until_waits_are_read(profiling, waiter)
    first = profile_begun(profiling, 5, MUTEX, workload=workload)
    waiter.ask("block")
    profiling.wait_until(
        lambda s: s.sum("workload_threads", workload=workload, state="lock") == 1
    )
    second = take_pprof(profiling, 2, path=MUTEX, workload=workload)
    waiter.ask("nothing")
    assert first.result().waits("blocked_run", "long_wait")[1] >= second.duration
    assert second.waits("[began_before]")[1] == near(second.duration, within=0.1)
    assert not second.waits("blocked_run")[1]


# --- servers ----------------------------------------------------------------------------------------


def test_a_database_that_writes_to_its_disk_waits_where_it_does(profiling, start, tmp_path):
    server = start(Redis, tmp_path, "--appendonly", "yes", "--appendfsync", "always")
    command = ["redis-benchmark", "-p", server.port, "-c", 4, "-n", 10**9, "-t", "set", "-q"]
    start(Process, command, stdout=subprocess.DEVNULL)
    workload = profiling.workload_of(server.port)
    profiling.wait_until(
        lambda s: s.sum("workload_request_duration_seconds_count", port=server.port) > 100
    )
    wait_until_read(profiling, workload)
    profile = take_pprof(profiling, 3, path=BLOCK, workload=workload)
    expect_complete(profile)
    writes = ("main", "beforeSleep", "flushAppendOnlyFile", "sys_fdatasync")
    count, seconds = profile.waits(*writes, states=["disk"])
    print(f"at {count} writes {seconds} s, of all {profile.waits()}")
    assert count > 10
    assert seconds > 0.9 * profile.waits()[1]


class Session(Process):
    """psql, which is given one statement after the other."""

    def __init__(self, port):
        command = [POSTGRESQL / "psql", "-h", "127.0.0.1", "-p", port, "-U", "postgres", "-qAt"]
        super().__init__(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def begin(self, statement):
        self.process.stdin.write(f"{statement};\n\\echo done\n")
        self.process.stdin.flush()

    def wait(self):
        for line in self.process.stdout:
            if line == "done\n":
                return
        raise AssertionError("psql has ended")

    def run(self, statement):
        self.begin(statement)
        self.wait()


@pytest.mark.xdist_group("postgresql")
def test_a_client_whose_row_is_locked_waits_where_postgresql_does(profiling, start):
    """In epoll_wait(2), and from a connection that does not block; as event loops that are idle."""
    server = start(PostgreSQL)
    holder, waiter = (start(Session, server.port) for _ in range(2))
    holder.run("create table t as select 0 as i")
    holder.run("begin")
    holder.run("update t set i = 1")
    waiter.run("select 1")
    workload = profiling.workload_of(server.port)

    def use_cpu():
        for session in (holder, waiter):
            session.run("select sum(i) from generate_series(1, 100000) as i")

    wait_until_read(profiling, workload, use_cpu)
    result = profile_begun(profiling, SECONDS, OFFCPU, workload=workload)
    before = time.time()
    waiter.begin("update t set i = 2")
    profile = result.result()
    holder.run("commit")
    waiter.wait()
    backend = ("PostmasterMain", "PostgresMain", "LockAcquireExtended", "ProcSleep")
    count, seconds = profile.waits(*backend, "sys_epoll_wait", states=["wait"])
    lasted = profile.began.timestamp() + profile.duration - before
    print(f"waits {count}, {seconds} s, at most {lasted} s")
    # The detector of deadlocks wakes it up once, after a second.
    assert 1 <= count <= 5
    assert 0.5 * lasted < seconds <= 1.1 * profile.duration
