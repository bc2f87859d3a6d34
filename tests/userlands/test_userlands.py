# SPDX-License-Identifier: Apache-2.0
"""Locks and parks as the C libraries and runtimes of Debian's suites do them, in roots of their own."""

import shutil
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "live"))

from exporter import BUILD, Exporter  # pylint: disable=wrong-import-position
from services import Process, free_port, unique_name  # pylint: disable=wrong-import-position

USERLANDS = BUILD / "userlands"
IDLE_SECONDS = 20
WARM_SECONDS = 3
PTHREAD = ("mutex", "recursive", "timed", "robust", "pi", "rwlock", "stream")
CPP = ("mutex", "timed", "rwlock")
RUST = ("mutex", "rwlock")

# Name, root, program and its arguments before the port, kinds of locks. None: run where it is.
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
    ("openjdk-17", None, ["java", "-cp", str(USERLANDS), "JavaPool", "16"], ()),
    ("openjdk-21", "trixie", ["jvm/21", "-cp", "/work", "JavaPool", "16"], ()),
    ("openjdk-25", "trixie", ["jvm/25", "-cp", "/work", "JavaPool", "16"], ()),
    ("cpython-3.11", None, ["/usr/bin/python3", "-B", str(Path(__file__).with_name("pool.py"))], ()),
    ("cpython-3.13", "trixie", ["/usr/bin/python3.13", "-B", "/work/pool.py"], ()),
]


class Pool(Process):
    """One of the services, in a pid namespace of its own: its second thread has the id 2."""

    def __init__(self, root, words):
        self.root = USERLANDS / root / "root" if root else Path("/")
        self.copy = None
        namespace = ["unshare", "--pid", "--fork", "--kill-child", f"--mount-proc={self.root}/proc"]
        namespace += ["/usr/sbin/chroot", self.root]
        port = free_port()
        command = [*namespace, *self._command(words), port]
        super().__init__(command, stdin=-1, stdout=-1, text=True)
        said = self.process.stdout.readline().split()
        if said[:1] != ["ready"]:
            self.stop()
            raise AssertionError(f"{words} did not start: {said}")
        self.port = int(said[1])

    def _command(self, words):
        program = words[0]
        if program.startswith("jvm/"):
            # It finds its runtime relative to where it is.
            (home,) = (self.root / "usr/lib/jvm").glob(f"java-{program[4:]}-openjdk-*")
            shutil.copy(USERLANDS / "JavaPool.class", self.root / "work")
            return ["/" + str((home / "bin/java").relative_to(self.root)), *words[1:]]
        if program.endswith("python3.13"):
            shutil.copy(Path(__file__).with_name("pool.py"), self.root / "work")
        if program.startswith("pool"):
            # Programs of one name would be one workload.
            self.copy = (self.root / "tmp" if self.root != Path("/") else USERLANDS / "bin") / (
                unique_name(program.replace("_", ""))
            )
            shutil.copy(USERLANDS / "bin" / program, self.copy)
            inside = self.copy.relative_to(self.root)
            return ["/" + str(inside), *words[1:]]
        if program.startswith("/work/pool"):
            self.copy = self.root / "tmp" / unique_name(Path(program).name.replace("_", ""))
            shutil.copy(self.root / program[1:], self.copy)
            return ["/" + str(self.copy.relative_to(self.root)), *words[1:]]
        return words

    def stop(self):
        super().stop()
        if self.copy:
            self.copy.unlink(missing_ok=True)

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
    """What a scrape says about the locks of one workload."""

    def __init__(self, scrape, port):
        workload = scrape.rows("workload_connections", port=port)[0][0]["workload"]
        self.threads = scrape.sum("workload_threads", workload=workload, state="lock")
        self.seconds = scrape.sum("workload_thread_seconds_total", workload=workload, state="lock")
        self.count = scrape.sum("workload_mutex_wait_seconds_count", workload=workload)
        self.waited = scrape.sum("workload_mutex_wait_seconds_sum", workload=workload)


@pytest.fixture(scope="module")
def userlands():
    """All of them at once under one exporter, and what it said before and after a rest."""
    services = {}
    try:
        with Exporter() as exporter:
            for name, root, words, _ in SERVICES:
                services[name] = Pool(root, words)
            for service in services.values():
                exporter.workload_of(service.port)
            time.sleep(WARM_SECONDS)
            before = exporter.scrape()
            time.sleep(IDLE_SECONDS)
            yield exporter, services, before, exporter.scrape()
    finally:
        for service in services.values():
            service.stop()


@pytest.mark.parametrize("name", [service[0] for service in SERVICES])
def test_pools_with_little_to_do_wait_for_no_lock(userlands, name):
    _, services, before, after = userlands
    port = services[name].port
    then, now = Locks(before, port), Locks(after, port)
    assert now.threads == 0
    if name.startswith(("go", "openjdk", "cpython")):
        # The runtimes themselves take locks, and may wait for one for some microseconds.
        assert now.seconds - then.seconds < 0.01
    else:
        assert (now.count, now.seconds) == (then.count, then.seconds)


@pytest.mark.times
@pytest.mark.parametrize(
    "name,kind", [(service[0], kind) for service in SERVICES for kind in service[3]]
)
def test_waits_for_a_lock_are_what_the_program_measures_itself(userlands, name, kind):
    exporter, services, _, _ = userlands
    port = services[name].port
    before = Locks(exporter.scrape(), port)
    own = services[name].contend(kind)["wait_ns"] / 1e9
    time.sleep(0.2)
    after = Locks(exporter.scrape(), port)
    assert own > 1
    # Threads of a rwlock are woken to try again, which is their own time and not ours.
    tolerance = 0.1 if kind == "rwlock" else 0.05
    assert after.waited - before.waited == pytest.approx(own, rel=tolerance)
    assert after.seconds - before.seconds == pytest.approx(own, rel=tolerance)


@pytest.mark.parametrize("name", [s[0] for s in SERVICES if s[0].startswith("go")])
def test_a_lock_of_the_runtime_of_go_is_a_lock(userlands, name):
    exporter, services, _, _ = userlands
    port = services[name].port
    before = Locks(exporter.scrape(), port)
    services[name].contend("runtime")
    exporter.wait_until(lambda s: Locks(s, port).count > before.count)
