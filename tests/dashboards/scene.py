# SPDX-License-Identifier: Apache-2.0
"""
Services, each driven into one condition that an alert is about, observed by real exporters that a
real Prometheus scrapes. All run at the same time: the alerts of one must not fire for another.
"""

import socket
import threading
from pathlib import Path

from clients import REQUEST, exchange
from exporter import Exporter
from kernel_types import without
from prometheus import Prometheus, scrape_config
from services import SCRATCH, Load, Service
from shortened import short_rules

BPF_STATS = Path("/proc/sys/kernel/bpf_stats_enabled")
JOB = "workload"
LOAD = {"clients": 6, "rate": 60, "keep_alive": 1}


class IdleConnections:
    """Connections on which nothing is said: they fill an accept queue that nobody empties."""

    AT_ONCE = 8
    PAUSE_SECONDS = 0.5

    def __init__(self, port):
        self.port = port
        self.sockets = []
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self):
        while not self.ended.wait(self.PAUSE_SECONDS):
            client = socket.socket()
            client.setblocking(False)
            client.connect_ex(("127.0.0.1", self.port))
            self.sockets.append(client)
            if len(self.sockets) > 2 * self.AT_ONCE:
                self.sockets.pop(self.AT_ONCE).close()

    def stop(self):
        self.ended.set()
        self.thread.join()
        for client in self.sockets:
            client.close()
        self.sockets.clear()


class HungRequest:
    """A client that has got an answer, and waits for the next one."""

    def __init__(self, port):
        self.client = socket.create_connection(("127.0.0.1", port), timeout=10)
        exchange(self.client)
        self.client.sendall(REQUEST)

    def stop(self):
        self.client.close()


class Scene:
    """
    services: condition -> service; expected: condition -> names of the alerts that must fire for
    it, and no other may.
    """

    EXPECTED = {
        "healthy": set(),
        "too few threads": {
            "WorkloadQueueDepthHigh",
            "WorkloadQueueWaitHigh",
            "WorkloadPoolSaturated",
        },
        "hot lock": {"WorkloadLockContention"},
        "slow downstream": {"WorkloadDownstreamSlow"},
        "the downstream itself": set(),
        "too few CPUs": {"WorkloadCpuStarvation"},
        "full accept queue": {"WorkloadAcceptQueueNearLimit", "WorkloadAcceptQueueOverflows"},
        "stuck workers": {"WorkloadStuck"},
        "a request that hangs": {"WorkloadRequestHung"},
        "reads unseen": set(),
    }

    def __init__(self, directory):
        self.running = []
        self.services = {}
        self.stats_before = BPF_STATS.read_text()
        BPF_STATS.write_text("1")
        self.exporter = self._start(Exporter)
        # What is not measured unless it is asked for, for the panels that show it.
        self.syscall = self._start(
            Exporter,
            "--requests.backend=syscall",
            "--mutex.backend=uprobe",
            "--collector.profiles",
            "--profiles.lock-sites",
        )
        self.fragile = self._start(Exporter)
        lacking = without(directory, "btf_trace_sched_wakeup_new")
        self.partial = self._start(Exporter, launcher=lacking)
        self.prometheus = self._start(
            Prometheus,
            directory,
            [
                scrape_config(JOB, [self._address(self.exporter)]),
                scrape_config("workload_syscall", [self._address(self.syscall)]),
                scrape_config("workload_fragile", [self._address(self.fragile)]),
                scrape_config("workload_partial", [self._address(self.partial)]),
            ],
            short_rules(directory),
            {"cluster": "test"},
        )

    def _start(self, kind, *arguments, **options):
        self.running.append(kind(*arguments, **options))
        return self.running[-1]

    @staticmethod
    def _address(exporter):
        return f"127.0.0.1:{exporter.port}"

    def _serve(self, condition, program="pool_server", **options):
        self.services[condition] = self._start(Service, program, **options)
        return self.services[condition]

    def _load(self, condition, **options):
        return self._start(Load, self.services[condition].port, **options)

    def name(self, condition):
        return self.services[condition].name

    def begin(self):
        """Starts the services and what puts them into their condition."""
        self._serve("healthy", workers=8, service_us=2000)
        self._serve("too few threads", workers=4, service_us=400000)
        self._serve("hot lock", workers=8, lock_us=50000)
        downstream = self._serve("the downstream itself", workers=8, service_us=2000000)
        self._serve("slow downstream", workers=8, upstream_port=downstream.port)
        self._serve("too few CPUs", workers=8, busy_us=300000, prefix=["taskset", "-c", "0"])
        self._serve("full accept queue", workers=6, service_us=2000, backlog=4)
        self._serve("stuck workers", workers=8, service_us=2000)
        hung = "read:100,write:100,read:100,sleep:600000,write:100,loop"
        self._serve("a request that hangs", "talker", script=hung)
        self._serve("reads unseen", "talker", script="splice:100,write:100,loop")
        # For the panels. It wakes up so often that on a busy machine it lacks CPUs indeed: of its
        # alerts nothing is expected.
        self._serve("slow disk", "syncer", threads=1, bytes=4096, directory=SCRATCH)

        self._load("healthy", **LOAD)
        self._load("stuck workers", **LOAD)
        self.loads = [
            self._load("full accept queue", **LOAD),
            self._load("reads unseen", **LOAD),
            self._load("too few threads", clients=30),
            self._load("hot lock", clients=8, keep_alive=1),
            self._load("slow downstream", clients=6, keep_alive=1),
            self._load("too few CPUs", clients=8, keep_alive=1),
        ]
        self.services["slow disk"].ask("start")
        # All workers have a connection of their own by now: those that come wait for ever.
        self.exporter.wait_for_endpoint(
            self.services["full accept queue"].port, lambda e: e.gauges()[3], LOAD["clients"]
        )
        self.loads.append(self._start(IdleConnections, self.services["full accept queue"].port))
        self.loads.append(self._start(HungRequest, self.services["a request that hangs"].port))
        self.services["stuck workers"].ask("stuck")
        self.fragile.stop()

    def end(self):
        """Ends the conditions; services that were healthy or are so again keep their load."""
        self.services["stuck workers"].ask("release")
        self.services["slow disk"].ask("finish")
        for load in self.loads:
            load.stop()
        self.services["a request that hangs"].stop()
        self._start(Exporter, address=self._address(self.fragile))
        self.partial.stop()
        self._start(Exporter, address=self._address(self.partial))

    def stop(self):
        for process in reversed(self.running):
            process.stop()
        BPF_STATS.write_text(self.stats_before)
