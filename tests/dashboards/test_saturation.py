# SPDX-License-Identifier: Apache-2.0
"""
Saturation is seen where workers share a name with masters, acceptors and housekeepers, and nothing
else is: real servers at 16 clients for 4 workers, and at rest.
"""

import socket
import time

import pytest

import panels
import servers
from clients import REQUEST
from exporter import Exporter
from prometheus import Prometheus, scrape_config
from services import Load, free_port, starter, wait_until
from shortened import short_rules

pytestmark = pytest.mark.times
WINDOW_SECONDS = 4
START_SECONDS = 60
FIRE_SECONDS = 60
FULL, REST = 0.95, 0.05
SATURATED = "WorkloadPoolSaturated"


def utilization_query():
    """That of the column in the overview's table."""
    (table,) = [p for p in panels.panels(panels.load("overview")) if p["type"] == "table"]
    names = {
        override["matcher"]["options"]: prop["value"]
        for override in table["fieldConfig"]["overrides"]
        for prop in override["properties"]
        if prop["id"] == "displayName"
    }
    (letter,) = [name[-1] for name, shown in names.items() if shown == "Utilization"]
    (found,) = [t["expr"] for t in table["targets"] if t["refId"] == letter]
    return found


def answers(name, port):
    """Whether a server has said something to a request; not all of them speak HTTP."""
    said = b"version\r\n" if name == "memcached" else b"GET / HTTP/1.0\r\n\r\n"
    try:
        with socket.create_connection(("127.0.0.1", port), 5) as client:
            client.settimeout(5)
            client.sendall(said.ljust(len(REQUEST), b"\n"))
            return bool(client.recv(100))
    except OSError:
        return False


class Scene:
    """`busy` and `rest`: name -> utilization of its threads that serve, and what fired, by state."""

    def __init__(self, start, directory):
        self.start = start
        self.exporter = start(Exporter)
        self.prometheus = start(
            Prometheus,
            directory,
            [scrape_config("workload", [f"127.0.0.1:{self.exporter.port}"])],
            short_rules(directory),
            {"cluster": "test"},
        )
        self.servers, self.ports = {}, {}
        for name, make in {**servers.SATURABLE, **servers.RESTING}.items():
            self.ports[name] = free_port()
            self.servers[name] = make(start, self.ports[name])
        for name, port in self.ports.items():
            wait_until(lambda n=name, p=port: answers(n, p), START_SECONDS, f"{name} did not answer")
        self.loads = [self.load(name) for name in servers.SATURABLE]
        for name in servers.SATURABLE:
            self.prometheus.wait_for(self.fires(name), seconds=FIRE_SECONDS)
        self.busy, self.busy_fired = self.look()
        for load in self.loads:
            load.stop()
        for name in servers.SATURABLE:
            self.prometheus.wait_for(self.fires(name), lambda rows: not rows, FIRE_SECONDS)
        self.rest, self.rest_fired = self.look()

    def load(self, name):
        if name == "native":
            return self.start(Load, self.ports[name], clients=servers.CLIENTS)
        return self.start(servers.HttpLoad, self.ports[name])

    def workload(self, name):
        return self.servers[name].name

    def fires(self, name):
        labels = f'alertname="{SATURATED}", workload="{self.workload(name)}"'
        return f'ALERTS{{alertstate="firing", {labels}}}'

    def look(self):
        """What the overview shows after some seconds, and which alerts fire."""
        time.sleep(WINDOW_SECONDS + 1)
        query = utilization_query().replace("$__rate_interval", f"{WINDOW_SECONDS}s")
        shown = {
            labels["workload"]: value
            for labels, value in self.prometheus.query(panels.substitute(query))
        }
        names = list(self.servers)
        return (
            {name: shown.get(self.workload(name)) for name in names},
            {name: self.prometheus.firing(workload=self.workload(name)) for name in names},
        )


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    with starter() as start:
        yield Scene(start, tmp_path_factory.mktemp("prometheus"))


@pytest.mark.parametrize("name", servers.SATURABLE)
def test_a_saturated_server_is_seen(scene, name):
    assert FULL <= scene.busy[name] <= 1.001
    assert SATURATED in scene.busy_fired[name]


@pytest.mark.parametrize("name", [*servers.SATURABLE, *servers.RESTING])
def test_a_server_at_rest_is_idle(scene, name):
    assert 0 <= scene.rest[name] <= REST
    assert not scene.rest_fired[name]


@pytest.mark.parametrize("name", servers.RESTING)
def test_housekeepers_that_sleep_are_not_what_serves(scene, name):
    assert 0 <= scene.busy[name] <= REST
    assert not scene.busy_fired[name]
