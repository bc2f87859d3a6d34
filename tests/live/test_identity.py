# SPDX-License-Identifier: Apache-2.0
"""Who a service is when the process that began to listen is not the one that serves."""

import os
import random
import signal
import subprocess
from pathlib import Path

from clients import exchange_once
from services import (
    Service,
    free_port,
    nginx_conf,
    own_copy,
    program_copy,
    unique_name,
    wait_until,
)

STARTS = 20
# When a parent ends: before it can be looked at, while it is, and after.
MOMENTS_US = (0, 500, 5000, 60000, 150000)


def long_name(prefix):
    """Longer than the name of a thread may be."""
    return unique_name(prefix) + "_whose_name_is_long"


def moment():
    return random.choice(MOMENTS_US)


def infos(scrape, port):
    """What workload_info says of those who live and listen on @port."""
    names = {labels["workload"] for labels, _ in scrape.rows("workload_connections", port=port)}
    return [
        labels
        for name in names
        for labels, _ in scrape.rows("workload_info", workload=name)
        if scrape.sum("workload_processes", workload=name)
    ]


def seen_of(port, name):
    """A look at a scrape: who listens on @port, and all names that begin as @name does."""

    def see(scrape):
        rows = [labels for labels, _ in scrape.rows("workload_info")]
        return (
            [(row["workload"], row["exe"], row["runtime"]) for row in infos(scrape, port)],
            {row["workload"] for row in rows if row["workload"][:15] == name[:15]},
        )

    return see


def test_a_daemon_is_named_whole_whenever_its_parents_end(exporter, start, connect):
    """Also where its main thread has ended."""
    for number in range(STARTS):
        name = long_name("daemon")
        server = start(
            Service,
            "daemoniser",
            name=name,
            before_us=moment(),
            linger_us=moment(),
            main_ends=number % 2,
        )
        # The first that is shown is right: what is seen is looked at until something is.
        scrape = exporter.wait_until(lambda s, p=server.port: infos(s, p) and s)
        expected = ([(name, str(server.path), "native")], {name})
        assert seen_of(server.port, name)(scrape) == expected
        exchange_once(connect(server.port))
        exporter.wait_for_equal(
            lambda s, n=name: s.sum("workload_request_queue_seconds_count", workload=n), 1
        )
        exporter.wait_for_equal(lambda s, n=name: s.one("workload_processes", workload=n), 1)
        assert seen_of(server.port, name)(exporter.scrape()) == expected
        server.stop()


def test_a_daemon_that_becomes_another_program_is_that(exporter, start, connect):
    for _ in range(STARTS):
        became = own_copy("pool_server", long_name("became"))
        server = start(
            Service,
            "daemoniser",
            name=long_name("wrapper"),
            before_us=moment(),
            linger_us=moment(),
            exec=became,
        )
        exporter.wait_for_equal(
            seen_of(server.port, became.name),
            ([(became.name, str(became), "native")], {became.name}),
        )
        exchange_once(connect(server.port))
        exporter.wait_for_equal(
            lambda s, n=became.name: s.sum("workload_request_queue_seconds_count", workload=n), 1
        )
        server.stop()


def has_ended(pid):
    """Whoever adopted it may take its time to collect it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


class NginxDaemon:
    """nginx as a daemon: the process that was started ends."""

    def __init__(self, directory):
        self.port = free_port()
        self.pid_file = directory / "nginx.pid"
        conf = directory / "nginx.conf"
        text = nginx_conf(directory, self.port, workers=2, location='return 200 "hello\\n";')
        conf.write_text(text.replace("daemon off;", "daemon on;"))
        self.name = unique_name("nginx")
        command = [program_copy("nginx", self.name), "-c", conf, "-p", directory, "-e", directory / "error.log"]
        subprocess.run([str(word) for word in command], check=True, timeout=20)
        wait_until(
            lambda: self.pid_file.exists() and self.pid_file.read_text().strip(),
            20,
            "nginx did not start",
        )
        self.pid = int(self.pid_file.read_text())

    def stop(self):
        try:
            os.kill(self.pid, signal.SIGTERM)
        except ProcessLookupError:
            return
        wait_until(lambda: has_ended(self.pid), 20, "nginx did not end")


def test_nginx_as_a_daemon_has_its_name_every_time(exporter, start, tmp_path):
    for number in range(5):
        directory = tmp_path / str(number)
        directory.mkdir()
        server = start(NginxDaemon, directory)
        scrape = exporter.wait_until(lambda s, p=server.port: infos(s, p) and s)
        (info,) = infos(scrape, server.port)
        assert (info["workload"], Path(info["exe"]).name, info["runtime"]) == (
            server.name,
            server.name,
            "native",
        )
        server.stop()
