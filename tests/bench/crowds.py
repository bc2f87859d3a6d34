# SPDX-License-Identifier: Apache-2.0
"""
Much of one thing, in sizes: each crowd knows how to start, and what the exporter must say of it.

A crowd has a `title`, `sizes`, and wrong(scrape, first): in words, what the exporter says otherwise
than the truth; `first` tells whether it ran before the crowd. What the exporter could not hold must
be in its drop counters: then it is in lost(), not in wrong().
"""

import re

import paths  # noqa: F401 (the helpers of the live tests)
from services import Service, unique_name

CHURN_SECONDS = 3
PORTS_OF_A_SERVICE = 50
CONNECTIONS_OF_A_SERVICE = 10000


def _dropped(scrape, reason):
    return scrape.sum("workload_exporter_dropped_total", reason=reason)


def _unequal(what, seen, expected):
    return [] if seen == expected else [f"{what}: {seen:.0f}, in truth {expected}"]


class Crowd:
    """Processes of tests/workloads/crowd.c, by default a single one of size @size."""

    sizes = ()
    title = ""

    def __init__(self, size):
        self.size = size
        self.services = self.begin(size)

    def begin(self, size):
        raise NotImplementedError

    def act(self):
        """What happens while it is measured; nothing as a rule."""

    def wrong(self, scrape, first):
        raise NotImplementedError

    def lost(self, _scrape):
        """What did not fit and was counted, in words."""
        return ""

    @property
    def service(self):
        return self.services[0]

    def stop(self):
        for service in self.services:
            service.stop()


def _start_all(count, **options):
    """@count workloads; letters only in their names, else they would be one pool or the other."""
    services = []
    try:
        for _ in range(count):
            services.append(Service("crowd", name=unique_name("crowd"), **options))
    except BaseException:
        for service in services:
            service.stop()
        raise
    return services


class Connections(Crowd):
    """Idle keep-alive connections, each after one request, as many a service as it may have files."""

    title = "idle keep-alive connections"
    sizes = (100, 1000, 10000, 100000)

    def begin(self, size):
        each = min(size, CONNECTIONS_OF_A_SERVICE)
        return _start_all(size // each, connections=each)

    def wrong(self, scrape, first):
        name = "workload_request_duration_seconds_count"
        return [
            text
            for service in self.services
            for text in [
                *_unequal(
                    "connections",
                    scrape.sum("workload_connections", port=service.port),
                    self.size // len(self.services),
                ),
                *_unequal(
                    "requests",
                    scrape.sum(name, port=service.port),
                    self.size // len(self.services) if first else 0,
                ),
            ]
        ]


class Listeners(Crowd):
    """Listening ports, fifty a service."""

    title = "listeners"
    sizes = (10, 100, 1000)

    def begin(self, size):
        each = min(size, PORTS_OF_A_SERVICE)
        return _start_all(size // each, listeners=each)

    def _shown(self, scrape):
        names = {service.name for service in self.services}
        rows = scrape.rows("workload_connections")
        return sum(row[0]["workload"] in names and row[0]["port"] != "other" for row in rows)

    def wrong(self, scrape, first):
        missing = self.size - self._shown(scrape)
        if missing <= _dropped(scrape, "endpoint_table_full"):
            return []
        return [f"{missing} of {self.size} ports are missing and not counted"]

    def lost(self, scrape):
        missing = self.size - self._shown(scrape)
        return f"{missing} ports in `other`, counted" if missing else ""


class Workloads(Crowd):
    """Services, one process and one port each."""

    title = "workloads"
    sizes = (10, 50, 200)

    def begin(self, size):
        return _start_all(size)

    def wrong(self, scrape, first):
        names = {service.name for service in self.services}
        rows = scrape.rows("workload_processes")
        shown = sum(row[1] for row in rows if row[0]["workload"] in names)
        return _unequal("processes of workloads with a name", shown, self.size)


class Threads(Crowd):
    """Idle threads of one service."""

    title = "idle threads"
    sizes = (100, 1000, 5000)

    def begin(self, size):
        return _start_all(1, threads=size)

    def wrong(self, scrape, first):
        seen = scrape.sum("workload_threads", workload=self.service.name)
        return _unequal("threads", seen, self.size + 1)


class Churn(Crowd):
    """Starts a second, of what ends at once."""

    processes = 0

    def begin(self, size):
        options = {"per_second": size, "seconds": CHURN_SECONDS, "processes": self.processes}
        return _start_all(1, **options)

    def act(self):
        said = self.service.ask("start")
        self.started = said["started"]
        self.rate = said["started"] * 1e9 / said["elapsed_ns"]

    def _counted(self, scrape, name, pool=None):
        labels = {"pool": pool} if pool else {}
        return scrape.sum(f"workload_threads_{name}_total", workload=self.service.name, **labels)

    def wrong(self, scrape, first):
        """The main thread is older than the listener, so it has not started in a watched pool."""
        if not first:
            return []
        pool = re.sub(r"\d+", "#", self.service.name)
        started = self._counted(scrape, "started", pool)
        return [
            *_unequal("threads started", started, self.started),
            *_unequal(
                "threads started and not ended",
                self._counted(scrape, "started") - self._counted(scrape, "exited"),
                0,
            ),
        ]


class ThreadStarts(Churn):
    title = "thread starts a second"
    sizes = (200, 1000, 2000)


class ProcessStarts(Churn):
    title = "process starts a second"
    sizes = (100, 300, 1000)
    processes = 1


CROWDS = {
    "connections": Connections,
    "listeners": Listeners,
    "workloads": Workloads,
    "threads": Threads,
    "thread-starts": ThreadStarts,
    "process-starts": ProcessStarts,
}
