# SPDX-License-Identifier: Apache-2.0
"""Users who fill tables: others keep their rows, and nobody stays in `other` when it is over."""

import signal
import subprocess
import sys
import time

import pytest

from attackers import Scraper
from clients import exchange, exchange_once
from exposition import Endpoint, Pool
from services import Process, Service, own_copy, unique_name

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
AFTER_SECONDS = 10  # nothing stays in `other` for longer when a flood is over
PORTS = 64  # of one process, as many as have an endpoint of their own
NAMES = 300
SCRAPE_SECONDS = 0.25
TREES = 1024

# Processes that listen, each of which is a tree, as nobody is above them that listens as well.
LISTENERS = """
import os, signal, socket, sys
for _ in range(int(sys.argv[1])):
    if not os.fork():
        listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(int(sys.argv[2]))]
        signal.pause()
print("ready", flush=True)
signal.pause()
"""


class Listeners(Process):
    """@processes, each of which listens on @ports."""

    def __init__(self, processes, ports, prefix=()):
        super().__init__(
            [*prefix, sys.executable, "-c", LISTENERS, processes, ports], stdout=subprocess.PIPE
        )
        assert self.process.stdout.readline() == b"ready\n"


def served(server):
    """What @server's own row has counted."""
    return lambda scrape: Endpoint(scrape, server.port, workload=server.name).counts()


def lost(exporter, reason):
    return exporter.wait_until(lambda s: s.losses().get(reason))


@pytest.mark.parametrize(
    "processes, ports, reason",
    [(TREES, 1, "workload_table_full"), (TREES // PORTS + 1, PORTS, "endpoint_table_full")],
    ids=["processes", "ports"],
)
def test_a_user_has_a_share_of_every_table(
    exporters, start, connect, figures, processes, ports, reason
):
    exporter = exporters("--workloads.grace-period=1s")
    start(Listeners, processes, ports, NOBODY)
    lost(exporter, reason)
    with Scraper(exporter.port) as scraper:
        mine = start(Service, "pool_server", workers=2)
        others = start(Service, "pool_server", workers=2, prefix=NOBODY[:1] + ["--reuid=65533"])
        for server in (mine, others):
            exchange_once(connect(server.port))
            exporter.wait_for_equal(served(server), (1, 1, 1))
            assert Pool(exporter.scrape(), server.name, "worker-#").threads() == 2
    figures(**scraper.figures())


def test_what_found_no_room_has_a_row_of_its_own_once_there_is_some(exporters, start, connect):
    """Of root, who has all of the table: nobody is there to be kept out."""
    exporter = exporters("--workloads.grace-period=1s")
    flood = start(Listeners, TREES // PORTS + 1, PORTS)
    lost(exporter, "endpoint_table_full")
    late = start(Service, "pool_server", workers=2)
    client = connect(late.port)
    exchange(client)
    exporter.wait_until(lambda s: s.sum("workload_request_queue_seconds_count", workload="other"))
    assert served(late)(exporter.scrape()) == (0, 0, 0)
    flood.stop()
    began = time.monotonic()

    def is_served():
        exchange(client)
        return served(late)(exporter.scrape())[0] > 0

    while not is_served():
        assert time.monotonic() < began + AFTER_SECONDS
        time.sleep(0.2)


def test_processes_that_found_no_room_are_found_when_there_is_some(exporters, start):
    exporter = exporters("--workloads.grace-period=1s")
    flood = start(Listeners, TREES, 1)
    lost(exporter, "workload_table_full")
    late = start(Service, "pool_server", workers=2)
    flood.stop()
    exporter.wait_until(
        lambda s: s.sum("workload_processes", workload=late.name)
        and Pool(s, late.name, "worker-#").threads() == 2,
        AFTER_SECONDS,
    )


def test_names_that_come_and_go_hide_nobody(exporters, start, connect):
    """More names than there are workloads, which are kept for minutes when they have ended."""
    exporter = exporters()
    quiet = start(Service, "pool_server", workers=2)
    exchange_once(connect(quiet.port))
    exporter.wait_for_equal(served(quiet), (1, 1, 1))
    for _ in range(NAMES):
        program = own_copy("short_lived", unique_name("flood"))
        subprocess.run([*NOBODY, program, "--children=1"], check=True)
        program.unlink()
    names = len(exporter.scrape().rows("workload_processes"))
    assert names >= NAMES / 2, "they are seen"
    late = start(Service, "pool_server", workers=2)
    exchange_once(connect(late.port))
    exporter.wait_for_equal(served(late), (1, 1, 1))
    assert served(quiet)(exporter.scrape()) == (1, 1, 1)
    assert exporter.stop(signal.SIGTERM) == 0
