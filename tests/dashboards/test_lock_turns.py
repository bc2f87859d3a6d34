# SPDX-License-Identifier: Apache-2.0
"""
Workers that hold a lock while they wait for work are idle, all of them, and no alert is about them;
with the same workers under load a lock that holds requests up is seen.
"""

import time

import pytest

from exporter import Exporter
from exposition import Endpoint, PoolChange
from prometheus import Prometheus, scrape_config
from services import Load, Service, starter
from shortened import short_rules

pytestmark = pytest.mark.times
WORKERS = 8
HOLD_US = 20000
# Long enough for the alert, with the times of shortened.py.
SPARSE_SECONDS = 18
FIRE_SECONDS = 60
CONTENTION = "WorkloadLockContention"

# What they do with locks: who accepts, or takes a connection from a queue, has one; and under load
# another lock is contended for in the request, the same one is, another one after the request.
SERVERS = {
    "accept": {"turns": 1, "lock_us": HOLD_US},
    "queue": {"turns": 1, "lock_us": HOLD_US, "mode": "queue"},
    "served with the lock": {"turns": 2, "service_us": HOLD_US},
    "lock between requests": {"turns": 1, "lock_us": HOLD_US, "lock_late": 1},
}


class Scene:
    """`sparse`: name -> what its workers did while they had little to do."""

    def __init__(self, start, directory):
        self.exporter = start(Exporter)
        self.prometheus = start(
            Prometheus,
            directory,
            [scrape_config("workload", [f"127.0.0.1:{self.exporter.port}"])],
            short_rules(directory),
            {"cluster": "test"},
        )
        self.servers = {n: start(Service, "pool_server", workers=WORKERS, **options)
                        for n, options in SERVERS.items()}  # fmt: skip
        sparse = [self.load(start, name, clients=1, rate=5) for name in SERVERS]
        for server in self.servers.values():
            # Each worker has had its turn twice.
            self.exporter.wait_until(
                lambda s, p=server.port: Endpoint(s, p).counts()[0] >= 2 * WORKERS
            )
        before = self.exporter.scrape()
        time.sleep(SPARSE_SECONDS)
        after = self.exporter.scrape()
        self.sparse = {
            name: PoolChange(before, after, server.name, "worker-#", WORKERS)
            for name, server in self.servers.items()
        }
        self.sparse_alerts = {name: self.prometheus.query(self.alert(name)) for name in SERVERS}
        for load in sparse:
            assert load.interrupt()["errors"] == 0
        for name in SERVERS:
            self.load(start, name, clients=WORKERS)

    def load(self, start, name, **options):
        return start(Load, self.servers[name].port, keep_alive=0, **options)

    def alert(self, name, state=".+"):
        """Whether the alert has ever been pending or firing; its expression is true in both."""
        labels = f'alertname="{CONTENTION}", workload="{self.servers[name].name}"'
        return f'max_over_time(ALERTS{{{labels}, alertstate=~"{state}"}}[10m])'


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    with starter() as start:
        yield Scene(start, tmp_path_factory.mktemp("prometheus"))


# Who serves with the lock in its hands makes the others wait for it indeed.
@pytest.mark.parametrize("name", [name for name in SERVERS if SERVERS[name]["turns"] == 1])
def test_workers_that_take_turns_to_wait_for_work_are_idle(scene, name):
    workers = scene.sparse[name]
    before, after = workers.before.mutex_waits(), workers.after.mutex_waits()
    assert workers.share() == pytest.approx(1, abs=0.01)
    # Five requests of 20 ms in each second, of eight workers: 1.25 %.
    assert workers.share("idle") > 0.97
    # Two may meet, when one has just begun to wait for work.
    assert workers.share("lock") < 0.001
    assert after[1] - before[1] < 0.01


@pytest.mark.parametrize("name", SERVERS)
def test_they_are_no_contention(scene, name):
    assert not scene.sparse_alerts[name]


@pytest.mark.parametrize("name", SERVERS)
def test_a_lock_that_holds_requests_up_is(scene, name):
    scene.prometheus.wait_for(scene.alert(name, "firing"), seconds=FIRE_SECONDS)
