# SPDX-License-Identifier: Apache-2.0
"""
The services that are measured, each with the client that drives it.

A load has a `name`, the `variants` that are worth measuring beside it, and measure(seconds), which
returns one interval: `requests` that the client saw answered, in `seconds`, with `p99_ns`, and the
CPU time `cpu_ns` that the service used. check(scrape, interval) says in words where the exporter,
started before the interval, disagrees with it; an empty list if it does not. A load whose programs
have clocks of their own has means(scrape, interval): the exporter's times over theirs. A load may
have prepare(exporter), which waits until all of it is observed.
"""

import csv
import shutil
import socket
import subprocess
import time

import paths
import processes
import services
from exposition import Endpoint, Pool
from machine import CLIENT_CORE, SERVICE_CORE, on_core, take_precedence
from services import Load as PoolClient
from services import Process, Service, free_port, nginx_conf, wait_until

READY_SECONDS = 20
MUTEX_PROBES = "--mutex.backend=uprobe"
ACQUISITIONS = "workload_mutex_acquisitions_total"
ANSWER_SECONDS = 10


def _exchange(port, request):
    """The first answer of a server, to know its size."""
    with socket.create_connection(("127.0.0.1", port), ANSWER_SECONDS) as connection:
        connection.sendall(request)
        return connection.recv(65536)


def _answers(port, request):
    try:
        return bool(_exchange(port, request))
    except OSError:
        return False


def _report(text):
    lines = (line.split() for line in text.splitlines() if line != "ok")
    return {key: int(value) for key, value in lines}


def _differences(scrape, port, expected):
    """What the exporter counted otherwise than exactly @expected answered requests."""
    end = Endpoint(scrape, port)
    wrong = []
    if end.counts() != (expected,) * 3:
        wrong.append(f"counted {end.counts()} requests, the client {expected}")
    if end.abandoned() != (0, 0):
        wrong.append(f"{end.abandoned()} requests abandoned, the client none")
    return wrong


class Nginx:
    """The worst case: one worker on one core, an empty answer, keep-alive, always busy."""

    name = "nginx"
    title = "nginx, empty reply, keep-alive"
    variants = ("exporter", "syscall", "bpftrace-requests", "bcc-syscount", "bcc-tcprtt")
    REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"

    def __init__(self):
        directory = paths.SCRATCH / "nginx"
        directory.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        conf = directory / "nginx.conf"
        conf.write_text(nginx_conf(directory, self.port, workers=1, location="return 204;"))
        self._server = Process(
            [*on_core(SERVICE_CORE), "nginx", "-c", conf, "-p", directory]
            + ["-e", directory / "error.log"]
        )
        take_precedence(self._server.pid)
        wait_until(lambda: _answers(self.port, self.REQUEST), READY_SECONDS, "nginx is not ready")
        self._answer_bytes = len(_exchange(self.port, self.REQUEST))

    def measure(self, seconds):
        command = [
            *on_core(CLIENT_CORE),
            paths.BUILD / "workloads" / "keepalive_client",
            f"--port={self.port}",
            f"--request={self.REQUEST.decode()}",
            f"--response-bytes={self._answer_bytes}",
            f"--ms={seconds * 1000:.0f}",
        ]
        cpu_ns = processes.tree_cpu_ns(self._server.pid)
        said = _report(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        return {
            "requests": said["requests"],
            "seconds": said["elapsed_ns"] / 1e9,
            "p99_ns": said["response_p99_ns"],
            "cpu_ns": processes.tree_cpu_ns(self._server.pid) - cpu_ns,
        }

    def check(self, scrape, interval):
        return _differences(scrape, self.port, interval["requests"])

    def stop(self):
        self._server.stop()


class Redis:
    """redis-benchmark without pipelining: GET on fifty connections."""

    name = "redis"
    title = "Redis, redis-benchmark -t get -P 1"
    variants = ("exporter", "syscall", "bpftrace-requests")

    def __init__(self):
        directory = paths.SCRATCH / "redis"
        directory.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self._server = Process(
            [*on_core(SERVICE_CORE), "redis-server", "--port", self.port, "--bind", "127.0.0.1"]
            + ["--save", "", "--appendonly", "no", "--dir", directory],
            stdout=subprocess.DEVNULL,
        )
        take_precedence(self._server.pid)
        wait_until(lambda: _answers(self.port, b"PING\r\n"), READY_SECONDS, "redis is not ready")
        self._per_second = self._run(20000)["rps"]

    def _run(self, requests):
        done = subprocess.run(
            [*on_core(CLIENT_CORE), "redis-benchmark", "-p", str(self.port), "-t", "get"]
            + ["-P", "1", "-n", str(requests), "--csv"],
            capture_output=True,
            text=True,
            check=True,
        )
        (row,) = csv.DictReader(done.stdout.splitlines())
        return {"rps": float(row["rps"]), "p99_ns": float(row["p99_latency_ms"]) * 1e6}

    def measure(self, seconds):
        requests = max(1000, round(self._per_second * seconds))
        cpu_ns = processes.cpu_ns(self._server.pid)
        said = self._run(requests)
        cpu_ns = processes.cpu_ns(self._server.pid) - cpu_ns
        return {
            "requests": requests,
            "seconds": requests / said["rps"],
            "p99_ns": said["p99_ns"],
            "cpu_ns": cpu_ns,
        }

    def check(self, scrape, interval):
        # The client first asks for two settings, both in one message: one turn more.
        return _differences(scrape, self.port, interval["requests"] + 1)

    def stop(self):
        self._server.stop()


class PoolServer:
    """An ordinary service: four workers on one core, one millisecond of computation each."""

    name = "pool"
    title = "thread-pool server, 1 ms of work"
    variants = ("exporter", "syscall", "bpftrace-switches", "bcc-runqlat")
    WORKERS = 4
    WORK = {"work_us": 1000}
    REQUESTS_PER_SECOND = 1000

    def __init__(self):
        options = {"workers": self.WORKERS, "mode": "queue", **self.WORK}
        self._server = Service("pool_server", prefix=on_core(SERVICE_CORE), **options)
        take_precedence(self._server.pid)
        self.port = self._server.port

    def measure(self, seconds):
        before, cpu_ns = self._server.ask("stats"), processes.cpu_ns(self._server.pid)
        began = time.monotonic()
        client = PoolClient(
            self.port,
            prefix=on_core(CLIENT_CORE),
            clients=self.WORKERS,
            keep_alive=1,
            requests=round(self.REQUESTS_PER_SECOND * seconds),
        )
        take_precedence(client.pid)
        said = client.finish()
        ended = time.monotonic()
        client.stop()
        cpu_ns = processes.cpu_ns(self._server.pid) - cpu_ns
        after = self._server.ask("stats")
        own = {key: after[key] - before[key] for key in ("service_ns", "sending_ns")}
        return {
            "requests": said["requests"],
            "errors": said["errors"],
            "seconds": ended - began,
            "p99_ns": said["response_p99_ns"],
            "cpu_ns": cpu_ns,
            **own,
            "response_ns": said["response_ns"],
        }

    def check(self, scrape, interval):
        return _differences(scrape, self.port, interval["requests"])

    def means(self, scrape, interval):
        """
        A request is served until its answer leaves, which is during the send: a thread that loses its
        CPU in a send may lose it before or after that.
        """
        end = Endpoint(scrape, self.port)
        service_ns, most = end.seconds("service") * 1e9, interval["service_ns"]
        least = most - interval["sending_ns"]
        return {
            "service": service_ns / min(max(service_ns, least), most),
            "duration": end.seconds("duration") * 1e9 / interval["response_ns"],
        }

    def stop(self):
        self._server.stop()


class Locks:
    """A program that does little else than lock: four threads, a table of 64 mutexes."""

    name = "locks"
    title = "lock-heavy program, 4 threads"
    variants = ("exporter", "uprobe", "bpftrace-locks", "bcc-funclatency", "bcc-klockstat")

    def __init__(self):
        self._server = Service("locker", mode="table", threads=4)
        take_precedence(self._server.pid)

    def prepare(self, exporter):
        """Waits until probes are on the program's mutexes, where the exporter uses probes."""
        if MUTEX_PROBES in exporter.process.args:
            exporter.wait_for_log(f"mutexes of process {self._server.pid}: probes are on")

    def measure(self, seconds):
        cpu_ns = processes.cpu_ns(self._server.pid)
        self._server.ask("start")
        began = time.monotonic()
        time.sleep(seconds)
        own = self._server.ask("finish")
        ended = time.monotonic()
        return {
            "requests": own["acquisitions"],
            "seconds": ended - began,
            "p99_ns": own["acquisition_p99_ns"],
            "cpu_ns": processes.cpu_ns(self._server.pid) - cpu_ns,
        }

    def check(self, scrape, interval):
        """With probes every acquisition is counted, else those that slept, which are fewer."""
        labels = {"workload": self._server.name, "pool": "locker-#"}
        if not scrape.rows(ACQUISITIONS, **labels):
            counted = Pool(scrape, **labels).mutex_waits()[0]
            right = 0 < counted <= interval["requests"]
        else:
            counted = scrape.sum(ACQUISITIONS, **labels)
            right = counted == interval["requests"]
        if right:
            return []
        return [f"counted {counted} acquisitions, the program {interval['requests']}"]

    def stop(self):
        self._server.stop()


class SampledNginx(Nginx):
    """The same beside what takes stacks a hundred times a second."""

    name = "profiles-cpu"
    variants = (
        "exporter",
        "profiles",
        "profile-cpu",
        "bcc-profile",
        "bpftrace-profile",
        "perf-record-fp",
        "perf-record-dwarf",
    )


class ContendedPool(PoolServer):
    """Four workers that sleep in turns while they hold one lock, beside what takes stacks of waits."""

    name = "profiles-waits"
    title = "thread-pool server, 0.1 ms of sleep under one lock"
    variants = ("exporter", "profiles", "profile-offcpu", "bcc-offcputime")
    WORK = {"lock_us": 100}
    REQUESTS_PER_SECOND = 4000

    def means(self, scrape, interval):
        """None: a tenth of a request is what two programs see at different times."""
        return {}


LOADS = {load.name: load for load in (Nginx, Redis, PoolServer, Locks)}
PROFILED = {load.name: load for load in (SampledNginx, ContendedPool)}


def clean():
    for directory in (paths.SCRATCH, services.SCRATCH):
        shutil.rmtree(directory, ignore_errors=True)
