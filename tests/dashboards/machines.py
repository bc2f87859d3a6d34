# SPDX-License-Identifier: Apache-2.0
"""Machines in one: network namespaces, each with an address that Prometheus can reach."""

import random
import subprocess

from exporter import Exporter
from services import Load, Service, unique_name

PORT = 10070
WORKLOAD = "shop"


def ip(*words):
    subprocess.run(["ip", *(str(word) for word in words)], check=True)


class Machine:
    """
    A network namespace, connected with the host, in which an exporter and a service run. All
    exporters see all processes of the host: scrape() keeps what is this machine's own, and gives
    its service the name that it has on every machine.
    """

    def __init__(self, port, workers):
        self.name = unique_name("machine")
        self.running = []
        self.network = f"10.{random.randrange(64, 128)}.{random.randrange(256)}"
        self._connect()
        try:
            self.service = self._start(
                Service,
                "pool_server",
                port=port,
                workers=workers,
                service_us=1000,
                prefix=self.inside,
            )
            self.exporter = self._start(Exporter, address=self.target, launcher=self.inside)
        except BaseException:
            self.stop()
            raise

    @property
    def target(self):
        return f"{self.network}.2:{PORT}"

    @property
    def inside(self):
        """What a command begins with that runs on this machine."""
        return ["nsenter", f"--net=/run/netns/{self.name}"]

    def _connect(self):
        outer = f"v{self.name[-5:]}"
        ip("netns", "add", self.name)
        ip("link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", self.name)
        ip("address", "add", f"{self.network}.1/30", "dev", outer)
        ip("link", "set", outer, "up")
        for words in (["address", "add", f"{self.network}.2/30", "dev", "eth0"],
                      ["link", "set", "eth0", "up"],
                      ["link", "set", "lo", "up"]):  # fmt: skip
            ip("-n", self.name, *words)

    def _start(self, kind, *arguments, **options):
        self.running.append(kind(*arguments, **options))
        return self.running[-1]

    def load(self, **options):
        return self._start(Load, self.service.port, prefix=self.inside, **options)

    def scrape(self):
        own = {"source_labels": ["workload"], "regex": f"|{self.service.name}", "action": "keep"}
        name = {
            "source_labels": ["workload"],
            "regex": self.service.name,
            "target_label": "workload",
            "replacement": WORKLOAD,
        }
        return {
            "job_name": self.name,
            "static_configs": [{"targets": [self.target]}],
            "relabel_configs": [{"target_label": "job", "replacement": "workload"}],
            "metric_relabel_configs": [own, name],
        }

    def stop(self):
        for process in reversed(self.running):
            process.stop()
        ip("netns", "delete", self.name)
