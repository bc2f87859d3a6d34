# SPDX-License-Identifier: Apache-2.0
"""Probes on mutexes (--mutex.backend=uprobe): as the threads' own clocks and counts say."""

import os
import platform
import re
import shutil
import subprocess
import sys
import time
from subprocess import PIPE

import pytest

from exporter import Exporter
from exposition import Pool
from services import SCRATCH, WORKLOADS, Process, Service, unique_name

LOCKERS = "locker-#"
MEASURE_SECONDS = 2
ATTACH_SECONDS = 20
PROBED_PER_SCRAPE = 16
LOOK_AGAIN_SECONDS = 10.1
LOOKS = 10  # 2 without the services of other tests


@pytest.fixture(scope="module")
def probing():
    with Exporter("--mutex.backend=uprobe", "--log.level=debug") as running:
        yield running
        assert running.stop() == 0


def acquisitions(scrape, workload):
    """Of the threads that contend: others take locks of the C library, to start a thread."""
    name = "workload_mutex_acquisitions_total"
    return scrape.sum(name, workload=workload, pool=LOCKERS)


def assert_all_counted(end, workload, own):
    """Before Linux 6.2 a few are lost, and said to be."""
    lost = end.one("workload_exporter_dropped_total", reason="thread_busy")
    assert own["acquisitions"] - lost <= acquisitions(end, workload) <= own["acquisitions"]
    major, minor = (int(word) for word in re.findall(r"\d+", platform.release())[:2])
    assert (major, minor) < (6, 2) or not lost


def result_of(exporter, process):
    """What the exporter says has become of the probes on a process."""
    exporter.wait_until(
        lambda s: any(f"mutexes of process {process.pid}:" in line for line in exporter.log),
        ATTACH_SECONDS,
    )
    return exporter.wait_for_log(rf'mutexes of process {process.pid}: ([^"]*)')[1]


def contend(exporter, server):
    """Threads contend; returns the scrape at the end and their own clocks."""
    workload = exporter.workload_of(server.port)
    server.ask("start")
    time.sleep(MEASURE_SECONDS)
    own = server.ask("finish")
    end = exporter.settled(lambda s: not Pool(s, workload, LOCKERS).threads())
    return end, workload, own


def assert_exact(end, workload, own):
    """The threads' own clocks include what the probes themselves cost."""
    count, seconds = Pool(end, workload, LOCKERS).mutex_waits()
    assert_all_counted(end, workload, own)
    assert 0.99 * own["sleeps"] <= count <= own["acquisitions"]
    assert 0 < seconds * 1e9 <= own["wait_ns"]
    return seconds


@pytest.fixture(params=["mutex", "robust", "pi"])
def probed(probing, start, request, program):
    """What is measured, and what threads measure themselves, of @program."""
    mode = request.param
    if (program, mode) == ("locker_musl", "pi"):
        mode = "mutex"  # musl before 1.2 has no priority inheritance
    server = start(Service, program, mode=mode, threads=4, hold_sleep_us=2000, think_us=500)
    assert "probes are on its mutexes" in result_of(probing, server)
    return contend(probing, server)


@pytest.mark.parametrize("program", ["locker", "locker_musl", "locker_static"])
def test_every_acquisition_is_counted(probed):
    assert_exact(*probed)


@pytest.mark.parametrize("program", ["locker", "locker_musl", "locker_static"])
@pytest.mark.times
def test_waits_are_what_threads_measure(probed):
    assert assert_exact(*probed) * 1e9 == pytest.approx(probed[2]["wait_ns"], rel=0.05)


def test_free_mutexes_are_counted_and_never_waited_for(probing, start):
    server = start(Service, "locker", threads=1, hold_us=50, think_us=500)
    result_of(probing, server)
    end, workload, own = contend(probing, server)
    assert own["acquisitions"] > 50
    assert_all_counted(end, workload, own)
    assert Pool(end, workload, LOCKERS).mutex_waits() == (0, 0)


@pytest.mark.times
def test_other_locks_are_still_seen_when_they_sleep(probing, start):
    server = start(Service, "locker", mode="rwlock", threads=4, hold_sleep_us=2000, think_us=500)
    result_of(probing, server)
    end, workload, own = contend(probing, server)
    count, seconds = Pool(end, workload, LOCKERS).mutex_waits()
    assert count == pytest.approx(own["sleeps"], rel=0.05)
    assert seconds * 1e9 == pytest.approx(own["wait_ns"], rel=0.1)
    assert acquisitions(end, workload) == 0


@pytest.fixture
def stripped():
    path = WORKLOADS / unique_name("stripped")
    shutil.copy(WORKLOADS / "locker_static", path)
    subprocess.run(["strip", path], check=True)
    yield path.name
    path.unlink()


def test_a_stripped_static_program_is_named_and_seen_when_it_sleeps(probing, start, stripped):
    server = start(Service, stripped, name=stripped, threads=4, hold_sleep_us=2000, think_us=500)
    assert "static and stripped" in result_of(probing, server)
    end, workload, own = contend(probing, server)
    count, seconds = Pool(end, workload, LOCKERS).mutex_waits()
    assert 0 < count <= own["switches"]
    assert 0 < seconds * 1e9 <= own["wait_ns"]
    assert acquisitions(end, workload) == 0
    no_functions = end.one("workload_exporter_mutex_processes", result="no_functions")
    assert no_functions >= 1


@pytest.fixture
def own_libraries():
    """A directory with a copy of the C library, and how to start a program with it."""
    path = SCRATCH / unique_name("libs")
    path.mkdir(parents=True)
    libc = subprocess.run(["ldd", WORKLOADS / "locker"], capture_output=True, text=True).stdout
    source = next(word for word in libc.split() if word.startswith("/") and "libc.so" in word)
    shutil.copy(source, path / "libc.so.6")
    return path


def test_a_library_that_was_replaced_is_named_with_what_to_do(probing, start, own_libraries):
    library = own_libraries / "libc.so.6"
    prefix = ["env", f"LD_LIBRARY_PATH={own_libraries}"]
    server = start(Service, "locker", mode="burn", threads=1, prefix=prefix)
    shutil.copy(library, own_libraries / "new")
    (own_libraries / "new").rename(library)
    assert "restart the service" in result_of(probing, server)


UNMAPS = """
import _ctypes, ctypes, socket, sys
library = ctypes.CDLL(sys.argv[1])
listener = socket.create_server(("127.0.0.1", 0))
print(flush=True)
sys.stdin.readline()
_ctypes.dlclose(library._handle)
print(flush=True)
sys.stdin.readline()
"""


@pytest.mark.long
def test_a_library_that_is_unmapped_loses_its_probes(probing, start, own_libraries):
    library = own_libraries / "libpthread-2.0.so"
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", library],
        input="int pthread_mutex_lock(void *mutex) { return !mutex; }",
        text=True,
        check=True,
    )
    process = start(
        Process, [sys.executable, "-c", UNMAPS, library], stdin=PIPE, stdout=PIPE, text=True
    )
    process.process.stdout.readline()
    assert "probes are on its mutexes" in result_of(probing, process)
    process.process.stdin.write("\n")
    process.process.stdin.flush()
    process.process.stdout.readline()
    probing.wait_until(
        lambda s: any(
            f"mutexes of process {process.pid}: the library that was probed" in line
            for line in probing.log
        ),
        30,
    )


def test_a_container_with_its_own_library_is_probed_there(probing, start):
    """In a mount namespace of its own, where the paths of its libraries mean nothing outside."""
    root = SCRATCH / unique_name("root")
    libraries = subprocess.run(
        ["ldd", WORKLOADS / "locker"], capture_output=True, text=True, check=True
    ).stdout
    for word in libraries.split():
        if word.startswith("/"):
            (root / word[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(word, root / word[1:])
    shutil.copy(WORKLOADS / "locker", root / "locker")
    # pivot_root wants a mount point; what is inside then has no path outside.
    script = (
        f'mount --bind {root} {root} && cd {root} && mkdir -p old && '
        'pivot_root . old && exec old/usr/sbin/chroot . /locker "$@"'
    )
    prefix = ["unshare", "--mount", "sh", "-c", script]
    server = start(Service, "locker", prefix=prefix, threads=4, hold_sleep_us=2000, think_us=500)
    assert "probes are on its mutexes" in result_of(probing, server)
    assert_exact(*contend(probing, server))


def test_processes_that_nobody_watches_are_left_alone(probing, start):
    """
    No probe is in a process that does not listen: its locks cost what they always cost. Where another
    test has let this process listen, it is a service, and what it starts is a part of it.
    """
    sleeper = start(Process, ["sleep", "60"])
    server = start(Service, "locker", mode="burn", threads=1)
    result_of(probing, server)
    probed = {int(pid) for line in probing.log for pid in re.findall(r"mutexes of process (\d+):", line)}
    assert server.pid in probed
    if os.getpid() in probed:
        pytest.skip("this process has listened itself")
    assert sleeper.pid not in probed


@pytest.mark.long
def test_more_processes_than_one_scrape_probes_have_their_turn(start):
    """Also where each scrape finds those looked at before due to be looked at again."""
    servers = [start(Service, "pool_server", workers=1) for _ in range(PROBED_PER_SCRAPE + 4)]
    lines = {f"mutexes of process {server.pid}:" for server in servers}
    with Exporter("--mutex.backend=uprobe", "--log.level=debug") as exporter:
        for _ in range(LOOKS):
            exporter.scrape()
            lines = {line for line in lines if not any(line in said for said in exporter.log)}
            if not lines:
                break
            time.sleep(LOOK_AGAIN_SECONDS)
    assert not lines


def test_nothing_is_probed_unless_asked_for(exporter):
    scrape = exporter.scrape()
    assert not scrape.rows("workload_exporter_mutex_processes")
    assert not scrape.rows("workload_mutex_acquisitions_total")
    assert not scrape.rows("workload_exporter_probe_attached", feature="mutex")
