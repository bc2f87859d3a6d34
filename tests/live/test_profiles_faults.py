# SPDX-License-Identifier: Apache-2.0
"""
Profiles of page faults, of a program that knows at which place it has how many, and as the kernel
counts them.
"""

import contextlib
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import profiles
from exporter import SLOWER, bound
from profiles import SIGMAS, begun, sigmas_off, take, take_pprof, wait_until_read
from services import SCRATCH, Service, unique_name, wait_until

FAULT = "/debug/pprof/fault"
EACH = 31  # MINOR_FAULTS_EACH
SECONDS = 6 * SLOWER
TOUCHES = {"most": "touch_most", "some": "touch_some", "least": "touch_least"}
PROGRAMS = {"minor": "profiles_minor", "major": "profiles_major"}


@pytest.fixture
def toucher(profiling, start):
    """toucher(**options): one whose code is known."""

    def begin(**options):
        service = start(Service, "toucher", **options)
        assert profiling.workload_of(service.port) == service.name
        wait_until_read(profiling, service.name, lambda: time.sleep(0.01), FAULT)
        return service

    return begin


@contextlib.contextmanager
def recorded(service):
    """What it counts while this lasts, by the clock of the day: told(when) is that at a moment."""
    rows, over = [], threading.Event()

    def record():
        rows.append((time.time(), service.ask("stats")))
        while not over.wait(0.05):
            rows.append((time.time(), service.ask("stats")))

    def told(when):
        (before, one), (after, other) = next(
            (a, b) for a, b in zip(rows, rows[1:]) if a[0] <= when <= b[0]
        )
        share = (when - before) / (after - before)
        return {key: one[key] + share * (other[key] - one[key]) for key in one}

    with ThreadPoolExecutor(1) as thread:
        recording = thread.submit(record)
        try:
            wait_until(lambda: rows, 10, "it does not answer")
            yield told
        finally:
            over.set()
            recording.result()


def expect_as_counted(exporter, service, state, samples):
    """
    A profile with each place's share of the faults, and their number as the kernel counts it; both
    as far as they may be by chance, of @samples that were taken at least.
    """
    with recorded(service) as told:
        profile = take_pprof(exporter, SECONDS, path=FAULT, workload=service.name)
        time.sleep(0.2)
    begin = profile.began.timestamp()
    before, after = told(begin), told(begin + profile.duration)
    assert profile.types == ["faults/count"]
    own = profiles.Profile([stack for stack in profile.stacks if stack.state == state])
    counted = after[state] - before[state]
    print(f"{state}: {own.samples} found, {counted:.0f} counted, {profile.ends()}")
    assert counted > samples, "the machine gives too few of them"
    assert own.samples == pytest.approx(counted, rel=0.02 + SIGMAS / samples**0.5)
    places = {key: own.calling("main", "worker", name, "touch") for key, name in TOUCHES.items()}
    assert sum(places.values()) >= 0.98 * own.samples, own.stacks
    for key, share in profiles.shares({key: before[key] for key in TOUCHES}, after).items():
        off = sigmas_off(places[key] * samples / own.samples, samples, share)
        print(f"{key}: {places[key]}, {share:.3f} is true: off by {off:.1f}")
        assert abs(off) < SIGMAS, key
    return profile


def test_each_place_has_its_share_and_all_of_them_what_the_kernel_counts(profiling, toucher):
    """At one page in 250 µs or so: nothing is left out of those that are looked at."""
    service = toucher(rest=200)
    with recorded(service) as told:
        time.sleep(0.5)
        begin = time.time()
        time.sleep(1)
        end = time.time()
        time.sleep(0.2)
    rate = told(end)["minor"] - told(begin)["minor"]
    profile = expect_as_counted(profiling, service, "minor", rate * SECONDS / EACH / 1.5)
    assert profile.period == ("faults count", 1)


def test_a_flood_of_them_is_sampled_and_told_as_much_as_it_is(profiling, toucher):
    """Of a thread one is looked at every 4 to 8 ms."""
    expect_as_counted(profiling, toucher(), "minor", SECONDS / 0.008)


@pytest.fixture
def file_of_a_disk():
    SCRATCH.mkdir(parents=True, exist_ok=True)
    path = SCRATCH / unique_name("pages")
    with path.open("wb") as file:
        file.write(os.urandom(16 << 20))
        file.flush()
        os.fsync(file.fileno())
    yield path
    path.unlink()


@pytest.mark.bounds
def test_a_page_that_is_read_from_a_disk_is_a_major_fault(profiling, toucher, file_of_a_disk):
    service = toucher(file=file_of_a_disk, rest=5000)
    expect_as_counted(profiling, service, "major", bound(300, 80))


def test_memory_that_a_system_call_touches_has_that_innermost(profiling, toucher):
    service = toucher(call=1)
    profile = take(profiling, SECONDS, path=FAULT, workload=service.name)
    assert profile.calling("worker", "touch_most", "touch", "sys_read") > 0.5 * profile.samples
    assert profile.calling("touch", "sys_read") > 0.99 * profile.samples, profile.stacks


def test_beside_other_profiles_each_has_what_it_is_of(profiling, toucher):
    """All three write to the same sets; and wakeups come while the stack of a fault is followed."""
    service = toucher()
    options = {"seconds": SECONDS, "workload": service.name}
    fault = begun(take, profiling, path=FAULT, program=PROGRAMS["minor"], **options)
    waits = begun(take, profiling, path="/debug/pprof/offcpu", program="profiles_waits", **options)
    cpu = take(profiling, **options)
    for profile, states in (
        (fault.result(), {"minor", "major"}),
        (waits.result(), {"runnable", "disk", "lock", "wait"}),
        (cpu, {"running"}),
    ):
        found = {stack.state for stack in profile.stacks}
        print(found, profile.samples, profile.ends())
        assert found <= states
    fault.result().expect_complete()
    cpu.expect_complete()
    assert fault.result().calling("worker", "touch_most", "touch") > 0.6 * fault.result().samples
    assert cpu.calling("main", "worker") > 0.95 * cpu.samples


def test_none_is_looked_at_while_no_profile_of_them_is_taken(profiling, toucher):
    service = toucher()

    def looked_at():
        return sum(profiles.runs(profiling, name) for name in PROGRAMS.values())

    def expect_none():
        before, faults = looked_at(), service.ask("stats")["minor"]
        wait_until(lambda: service.ask("stats")["minor"] > faults + 10_000, 10, "it has no faults")
        assert looked_at() == before

    with profiles.statistics():
        expect_none()
        take(profiling, 1)
        expect_none()
        before = looked_at()
        take(profiling, 1, path=FAULT)
        assert looked_at() > before
        expect_none()
