# SPDX-License-Identifier: Apache-2.0
"""Locks and parks as the C libraries and runtimes of Debian's suites do them, in roots of their own."""

import shutil
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "live"))

from exporter import BUILD, Exporter  # pylint: disable=wrong-import-position
from exposition import Endpoint, PoolChange  # pylint: disable=wrong-import-position
from services import (  # pylint: disable=wrong-import-position
    Load,
    Process,
    free_port,
    java_program,
    unique_name,
)

HERE = Path(__file__).parent
USERLANDS = BUILD / "userlands"
IDLE_SECONDS = 20
WARM_SECONDS = 3
RUST_NAMES = ("rust", "parking_lot")
ASKED = ("openjdk", *RUST_NAMES)  # their workers get requests, at a rate per second
RATE = 40
JAVA_POOL = ("JavaPool", "16")
TURNS = 4  # workers of pool.rs that share a receiver, in the pool turn-#
POOLS = ("idle-#", "producer-#")  # of pool.rs, beside the main thread and who passes connections on
PTHREAD = ("mutex", "recursive", "timed", "robust", "pi", "rwlock", "stream")
CPP = ("mutex", "timed", "rwlock")
RUST = ("mutex", "rwlock")

# Name, root (None: that of this machine), program and its arguments before the port, kinds of locks.
SERVICES = [
    ("glibc-2.31", "bullseye", ["pool"], PTHREAD),
    ("glibc-2.36", "bookworm", ["pool"], PTHREAD),
    ("glibc-2.41", "trixie", ["pool"], PTHREAD),
    ("glibc-newest", "sid", ["pool"], PTHREAD),
    ("musl-1.2.3", None, ["pool_musl"], PTHREAD),
    ("musl-1.2.5", "trixie", ["pool_musl"], PTHREAD),
    ("c++-gcc-12", "bookworm", ["pool_cpp"], CPP),
    ("c++-gcc-12-glibc-2.41", "trixie", ["pool_cpp"], CPP),
    ("c++-newest", "sid", ["/work/pool_cpp"], CPP),
    ("rust-1.85", "trixie", ["/work/pool_rs"], RUST),
    ("rust-newest", "sid", ["/work/pool_rs"], RUST),
    ("parking_lot", "trixie", ["/work/pool_parking_lot"], RUST),
    ("go-1.19", "bookworm", ["/work/pool_go"], ()),
    ("go-1.24", "trixie", ["/work/pool_go"], ()),
    ("go-newest", "sid", ["/work/pool_go"], ()),
    ("openjdk-17", None, ["java-17", *JAVA_POOL], ()),
    ("openjdk-21", "trixie", ["java-21", *JAVA_POOL], ()),
    ("openjdk-25", "trixie", ["java-25", *JAVA_POOL], ()),
    ("cpython-3.11", None, ["/usr/bin/python3", "-B", "pool.py"], ()),
    ("cpython-3.13", "trixie", ["/usr/bin/python3.13", "-B", "pool.py"], ()),
]
NAMES = [service[0] for service in SERVICES]


class Service(Process):
    """
    One of the services, in a pid namespace of its own: its second thread has the id 2. Its program has
    a name of its own, as programs of one name would be one workload.
    """

    def __init__(self, root, words):
        self.root = USERLANDS / root / "root" if root else Path("/")
        self.folder = (self.root / "work" if root else USERLANDS / "bin") / unique_name("service")
        self.folder.mkdir()
        self.name = unique_name("pool")
        namespace = ["unshare", "--pid", "--fork", "--kill-child", f"--mount-proc={self.root}/proc"]
        namespace += ["/usr/sbin/chroot", self.root]
        super().__init__(
            [*namespace, *self._command(*words), free_port()], stdin=-1, stdout=-1, text=True
        )
        said = self.process.stdout.readline().split()
        if said[:1] != ["ready"]:
            self.stop()
            raise AssertionError(f"{words} did not start: {said}")
        self.port = int(said[1])

    def _inside(self, path):
        return Path("/") / path.relative_to(self.root)

    def _command(self, program, *arguments):
        own = self.folder / self.name
        if program.startswith("java-"):
            (home,) = (self.root / "usr/lib/jvm").glob(f"{program}-openjdk-*")
            own = java_program(home, self.folder / "home", self.name, self._inside)
            shutil.copy(USERLANDS / "JavaPool.class", self.folder)
            return [own, "-cp", self._inside(self.folder), *arguments]
        if "python" in program:
            own.symlink_to(program)
            shutil.copy(HERE / "pool.py", self.folder)
            return [self._inside(own), *arguments[:-1], self._inside(self.folder) / arguments[-1]]
        built = program.startswith("/")
        shutil.copy(self.root / program[1:] if built else USERLANDS / "bin" / program, own)
        return [self._inside(own), *arguments]

    def stop(self):
        super().stop()
        shutil.rmtree(self.folder)

    def contend(self, kind):
        self.process.stdin.write(f"contend {kind}\n")
        self.process.stdin.flush()
        own = {}
        while True:
            words = self.process.stdout.readline().split()
            assert words, "it ended"
            if words == ["ok"]:
                return own
            own[words[0]] = int(words[1])


class Locks:
    """What a scrape says about the locks of one service, or of one of its pools."""

    def __init__(self, scrape, service, pool=None):
        wanted = {"workload": service.name, **({"pool": pool} if pool else {})}
        self.all_threads = scrape.sum("workload_threads", **wanted)
        self.threads = scrape.sum("workload_threads", state="lock", **wanted)
        self.seconds = scrape.sum("workload_thread_seconds_total", state="lock", **wanted)
        self.count = scrape.sum("workload_mutex_wait_seconds_count", **wanted)
        self.waited = scrape.sum("workload_mutex_wait_seconds_sum", **wanted)


@pytest.fixture(scope="module")
def userlands():
    """All of them at once under one exporter, and what it said before and after a rest."""
    processes, services = [], {}
    try:
        with Exporter() as exporter:
            for name, root, words, _ in SERVICES:
                services[name] = Service(root, words)
                processes.append(services[name])
            for name, service in services.items():
                assert exporter.workload_of(service.port) == service.name
                if name.startswith(ASKED):
                    processes.append(Load(service.port, clients=4, rate=RATE))
            time.sleep(WARM_SECONDS)
            before = exporter.scrape()
            time.sleep(IDLE_SECONDS)
            yield exporter, services, before, exporter.scrape()
    finally:
        for process in reversed(processes):
            process.stop()


@pytest.mark.parametrize("name", NAMES)
def test_pools_with_little_to_do_wait_for_no_lock(userlands, name):
    _, services, before, after = userlands
    service = services[name]
    for pool in [*POOLS, service.name] if name.startswith(RUST_NAMES) else [None]:
        then, now = Locks(before, service, pool), Locks(after, service, pool)
        assert now.all_threads > 0
        assert now.threads == 0
        if name.startswith(("go", "openjdk", "cpython")):
            # The runtimes themselves take locks, and may wait for one for some microseconds.
            assert now.seconds - then.seconds < 0.01
        else:
            assert (now.count, now.seconds) == (then.count, then.seconds)


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith(ASKED)])
def test_pools_that_are_asked_serve(userlands, name):
    """Otherwise they would say nothing about workers."""
    _, services, before, after = userlands
    then, now = (Endpoint(scrape, services[name].port) for scrape in (before, after))
    assert now.counts()[2] - then.counts()[2] >= RATE * IDLE_SECONDS / 2


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith(RUST_NAMES)])
def test_who_waits_for_a_turn_to_receive_is_idle(userlands, name):
    """A channel has a lock of its own, and whoever it wakes while it holds that lock waits for it."""
    _, services, before, after = userlands
    pool = PoolChange(before, after, services[name].name, "turn-#", TURNS)
    pool.check_whole()
    assert pool.share("idle") > 0.9
    assert pool.share("lock") < 0.01


@pytest.mark.times
@pytest.mark.parametrize(
    "name,kind", [(service[0], kind) for service in SERVICES for kind in service[3]]
)
def test_waits_for_a_lock_are_what_the_program_measures_itself(userlands, name, kind):
    exporter, services, _, _ = userlands
    before = Locks(exporter.scrape(), services[name])
    own = services[name].contend(kind)["wait_ns"] / 1e9
    time.sleep(0.2)
    after = Locks(exporter.scrape(), services[name])
    assert own > 1
    assert after.waited - before.waited == pytest.approx(own, rel=0.05)
    assert after.seconds - before.seconds == pytest.approx(own, rel=0.05)


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("go")])
def test_a_lock_of_the_runtime_of_go_is_a_lock(userlands, name):
    exporter, services, _, _ = userlands
    before = Locks(exporter.scrape(), services[name])
    services[name].contend("runtime")
    exporter.wait_until(lambda s: Locks(s, services[name]).count > before.count)
