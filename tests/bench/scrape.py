#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
Time and memory of a scrape with 10 000 series, in each format, beside other exporters of Debian that
run at the same time on the same machine: `make bench-scrape`.

Prints a table; --write puts it, and what it was measured on, between the markers of tests/README.md.
"""

import argparse
import contextlib
import gzip
import http.client
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

import machine
import paths
import processes
from exporter import Exporter
from readme import machine_text, markdown, replaced
from services import Load, Process, Service, free_port, unique_name, wait_until

SERIES = 10000
SERVICES_MAX = 120
ROUNDS = 60
READY_SECONDS = 20
BEGIN, END = "<!-- scrape:begin -->", "<!-- scrape:end -->"
FORMATS = {
    "text": {"Accept": "text/plain;version=0.0.4"},
    "text, gzip": {"Accept": "text/plain;version=0.0.4", "Accept-Encoding": "gzip"},
    "OpenMetrics": {"Accept": "application/openmetrics-text;version=1.0.0"},
    "protobuf": {
        "Accept": "application/vnd.google.protobuf;"
        "proto=io.prometheus.client.MetricFamily;encoding=delimited"
    },
}
EVERY_PROCESS = {"process_names": [{"name": "{{.Comm}}", "cmdline": [".+"]}]}
HEAD = ("exporter", "format", "series", "bytes", "CPU", "until the last byte", "peak memory")


class Other(Process):
    """Another exporter, from Debian's package but not installed: that would start it for good."""

    def __init__(self, package, *flags):
        directory = paths.BUILD / "others" / package
        suite = platform.freedesktop_os_release()["VERSION_CODENAME"]
        fetch = [paths.ROOT / "scripts" / "fetch_package.sh", directory, suite, package]
        subprocess.run(fetch, check=True)
        self.name, self.port = package, free_port()
        super().__init__(
            [directory / "root" / "usr" / "bin" / package]
            + [f"--web.listen-address=127.0.0.1:{self.port}", *flags],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_until(self._answers, READY_SECONDS, f"{package} did not start")

    def _answers(self):
        with contextlib.suppress(OSError):
            return bool(fetched(http.client.HTTPConnection("127.0.0.1", self.port), {}))
        return False


def fetched(connection, headers):
    """(headers, body) of a scrape."""
    connection.request("GET", "/metrics", headers=headers)
    response = connection.getresponse()
    body = response.read()
    assert response.status == 200, body
    return response.headers, body


def series_of(port):
    text = fetched(http.client.HTTPConnection("127.0.0.1", port), FORMATS["text"])[1]
    return sum(1 for line in text.splitlines() if line and not line.startswith(b"#"))


def peak_bytes(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def is_in_format(name, headers, body):
    wanted = FORMATS[name]["Accept"].split(";")[0]
    if not headers["Content-Type"].startswith(wanted):
        return False
    return "gzip" not in name or gzip.decompress(body) != b""


def measured(pid, port, name):
    """Numbers of one format, medians of many scrapes; None if the exporter does not have it."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    headers, body = fetched(connection, FORMATS[name])
    if not is_in_format(name, headers, body):
        return None
    Path(f"/proc/{pid}/clear_refs").write_text("5")  # the peak begins anew
    cpu, wall = [], []
    for _ in range(ROUNDS):
        before, start = processes.cpu_ns(pid), time.perf_counter_ns()
        body = fetched(connection, FORMATS[name])[1]
        wall.append(time.perf_counter_ns() - start)
        time.sleep(0.01)  # what it does after its answer is part of what it takes
        cpu.append(processes.cpu_ns(pid) - before)
    connection.close()
    return {
        "series": series_of(port),
        "bytes": len(body),
        "cpu_ns": statistics.median(cpu),
        "wall_ns": statistics.median(wall),
        "peak_bytes": peak_bytes(pid),
    }


def crowd(exporter, stack):
    """Services, as many as it takes, each with two pools that have waited for everything."""
    for _ in range(SERVICES_MAX):
        name = unique_name("crowd")
        server = Service("pool_server", name=name, mode="queue", workers=2, lock_us=100)
        stack.callback(server.stop)
        exporter.workload_of(server.port)
        Load(server.port, clients=4, requests=20).finish()
        if series_of(exporter.port) >= SERIES:
            return
    raise AssertionError(f"{SERVICES_MAX} services are fewer than {SERIES} series")


def row(exporter, name, numbers):
    return (
        exporter,
        name,
        str(numbers["series"]),
        f"{numbers['bytes'] / 1000:.0f} kB",
        f"{numbers['cpu_ns'] / 1e6:.1f} ms",
        f"{numbers['wall_ns'] / 1e6:.1f} ms",
        f"{numbers['peak_bytes'] / 1e6:.0f} MB",
    )


def measure():
    """[(exporter, format, numbers)]"""
    results = []
    with contextlib.ExitStack() as stack:
        exporter = stack.enter_context(Exporter())
        crowd(exporter, stack)
        config = paths.RESULTS / "process-exporter.json"
        config.write_text(json.dumps(EVERY_PROCESS))  # JSON is YAML
        node = Other("prometheus-node-exporter")
        stack.callback(node.stop)
        process = Other("prometheus-process-exporter", f"--config.path={config}")
        stack.callback(process.stop)
        for what, pid, port in (
            ("workload_exporter", exporter.pid, exporter.port),
            ("node_exporter", node.pid, node.port),
            ("process-exporter", process.pid, process.port),
        ):
            for name in FORMATS:
                numbers = measured(pid, port, name)
                if numbers:
                    results.append((what, name, numbers))
                    print(*row(what, name, numbers), sep="  ", flush=True)
    return results


def write(path, described, results):
    table = markdown(HEAD, [row(*result) for result in results])
    numbers = f"{machine_text('make bench-scrape', described)}\n\n{table}"
    text = path.read_text(encoding="utf-8")
    path.write_text(replaced(text, numbers, BEGIN, END), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--write", metavar="FILE", type=Path, help="put the table there")
    options = parser.parse_args()
    if os.geteuid():
        sys.exit("bench-scrape: needs root: the exporter loads BPF programs")
    paths.RESULTS.mkdir(parents=True, exist_ok=True)
    described = machine.describe()
    with machine.precedence():
        results = measure()
    report = {"machine": described, "results": results}
    (paths.RESULTS / "scrape.json").write_text(json.dumps(report, indent=1) + "\n")
    if options.write:
        write(options.write, described, results)


if __name__ == "__main__":
    main()
