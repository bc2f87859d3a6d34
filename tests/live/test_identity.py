# SPDX-License-Identifier: Apache-2.0
"""Who a service is when the process that began to listen is not the one that serves."""

import os
import random
import signal
import subprocess
import time
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
PATIENCE_SECONDS = 1  # after which it is shown by the name of a thread, if there is no better yet
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


def who_listens(port):
    """A look at a scrape."""
    return lambda scrape: [
        (row["workload"], row["exe"], row["runtime"]) for row in infos(scrape, port)
    ]


def names_like(scrape, name):
    """All that begin as @name does."""
    names = {labels["workload"] for labels, _ in scrape.rows("workload_info")}
    return {other for other in names if other[:15] == name[:15]}


def named_at_once(exporter, port, expected, began):
    """
    Waits until @expected is who listens on @port, started at @began. Returns whether that was shown
    first, as it is where the exporter had to know it for the first page: else anything may be.
    """
    who = who_listens(port)
    first = exporter.wait_until(who)
    in_time = first.ended - began < PATIENCE_SECONDS
    assert who(first) == expected or not in_time
    exporter.wait_for_equal(who, expected)
    return in_time


def test_a_daemon_is_named_whole_whenever_its_parents_end(exporter, start, connect):
    """Also where its main thread has ended."""
    at_once = 0
    for number in range(STARTS):
        name, began = long_name("daemon"), time.monotonic()
        server = start(
            Service,
            "daemoniser",
            name=name,
            before_us=moment(),
            linger_us=moment(),
            main_ends=number % 2,
        )
        expected = [(name, str(server.path), "native")]
        is_at_once = named_at_once(exporter, server.port, expected, began)
        exchange_once(connect(server.port))
        exporter.wait_for_equal(
            lambda s, n=name: s.sum("workload_request_queue_seconds_count", workload=n), 1
        )
        exporter.wait_for_equal(lambda s, n=name: s.one("workload_processes", workload=n), 1)
        last = exporter.scrape()
        assert who_listens(server.port)(last) == expected
        assert names_like(last, name) == {name} or not is_at_once
        at_once += is_at_once
        server.stop()
    assert at_once


def test_a_daemon_that_becomes_another_program_is_that(exporter, start, connect):
    at_once = 0
    for _ in range(STARTS):
        became, began = own_copy("pool_server", long_name("became")), time.monotonic()
        server = start(
            Service,
            "daemoniser",
            name=long_name("wrapper"),
            before_us=moment(),
            linger_us=moment(),
            exec=became,
        )
        named = exporter.wait_for_equal(
            who_listens(server.port), [(became.name, str(became), "native")]
        )
        if named.ended - began < PATIENCE_SECONDS:
            at_once += 1
            assert names_like(named, became.name) == {became.name}
        exchange_once(connect(server.port))
        exporter.wait_for_equal(
            lambda s, n=became.name: s.sum("workload_request_queue_seconds_count", workload=n), 1
        )
        server.stop()
    assert at_once


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
        self.path = program_copy("nginx", unique_name("nginx"))
        command = [self.path, "-c", conf, "-p", directory, "-e", directory / "error.log"]
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
        directory, began = tmp_path / str(number), time.monotonic()
        directory.mkdir()
        server = start(NginxDaemon, directory)
        expected = [(server.path.name, str(server.path), "native")]
        named_at_once(exporter, server.port, expected, began)
        server.stop()
