# SPDX-License-Identifier: Apache-2.0
"""Listeners that pass from process to process, or share a port: measured where they are served."""

import sys

import pytest

import cgroups
from clients import REQUEST, exchange, receive
from exposition import Endpoint, Pool
from services import Load, Service, free_port, unique_name


def hand_over(start):
    """A service that listens and accepts nothing, and an unrelated one that serves its port."""
    name = unique_name("listener")
    giver = start(Service, "pool_server", workers=0, give=name)
    return giver, lambda: start(Service, "pool_server", workers=4, take=name)


def served(scrape, server):
    """What a workload's endpoint has counted: requests, connections, bytes in and out."""
    labels = {"workload": server.name, "port": server.port}
    return tuple(
        scrape.sum(f"workload_{name}", **labels)
        for name in (
            "request_queue_seconds_count",
            "request_service_seconds_count",
            "connections_accepted_total",
            "received_bytes_total",
            "sent_bytes_total",
        )
    )


def requests_and_connections(requests, connections):
    return (requests, requests, connections, requests * 100, requests * 100)


@pytest.mark.parametrize("keep_alive, connections", [(0, 500), (1, 8)], ids=["short", "keep-alive"])
def test_a_listener_handed_over_is_measured_where_it_is_served(
    exporter, start, keep_alive, connections
):
    giver, take = hand_over(start)
    exporter.workload_of(giver.port)
    taker = take()
    assert taker.port == giver.port
    load = start(Load, taker.port, clients=8, requests=500, keep_alive=keep_alive)
    assert load.finish()["errors"] == 0
    end = exporter.wait_for_end(taker.port, 500)
    assert served(end.scrape, taker) == requests_and_connections(500, connections)
    assert served(end.scrape, giver) == requests_and_connections(0, 0)
    assert end.scrape.lost_by(giver.name, taker.name) == {}
    assert end.scrape.one("workload_processes", workload=taker.name) == 1
    exporter.wait_for_equal(lambda s: Pool(s, taker.name, "worker-#").threads("idle"), 4)


def test_a_listener_outlives_the_process_that_handed_it_over(exporters, start):
    """Until even the series of the giver are gone."""
    exporter = exporters("--workloads.grace-period=1s")
    giver, take = hand_over(start)
    exporter.workload_of(giver.port)
    taker = take()
    load = start(Load, taker.port, clients=8)
    exporter.wait_until(lambda s: served(s, taker)[0] >= 100)
    giver.stop()
    exporter.wait_for_equal(lambda s: s.belonging_to(giver.name), {})
    done = served(exporter.scrape(), taker)[0]
    exporter.wait_until(lambda s: served(s, taker)[0] >= done + 100)
    requests = load.interrupt()["requests"]
    end = exporter.wait_for_end(taker.port, requests)
    assert served(end.scrape, taker) == requests_and_connections(requests, requests)
    assert end.scrape.lost_by(giver.name, taker.name) == {}


@pytest.mark.parametrize("gone", [False, True], ids=["there", "gone"])
def test_requests_at_a_listener_that_was_handed_over_wait_in_full_view(
    exporters, start, connect, gone
):
    """Its giver may be there or gone: the port's gauges are the same."""
    exporter = exporters("--workloads.grace-period=1s")
    giver, take = hand_over(start)
    exporter.workload_of(giver.port)
    taker = take()
    exchange(connect(taker.port))
    exporter.wait_until(lambda s: served(s, taker)[0] == 1)
    if gone:
        giver.stop()
        exporter.wait_for_equal(lambda s: s.belonging_to(giver.name), {})
        # Until a walk has found who holds the listener now, its new connections are nobody's.
        limit = "workload_accept_queue_limit_connections"
        exporter.wait_until(lambda s: s.sum(limit, workload=taker.name, port=taker.port))
    taker.ask("stuck")
    clients = [connect(taker.port) for _ in range(10)]
    for client in clients:
        client.sendall(REQUEST)
    # The first client still has its worker; three take one each, but do not read.
    exporter.wait_for_endpoint(taker.port, Endpoint.gauges, (10, 0, 7, 11))
    taker.ask("release")
    for client in clients:
        receive(client)
        client.close()
    exporter.wait_for_endpoint(taker.port, Endpoint.counts, (11, 11, 11))
    assert exporter.scrape().lost_by(giver.name, taker.name) == {}


@pytest.fixture(params=cgroups.HIERARCHIES)
def cgroup(request):
    """The directory of a new cgroup; the other hierarchy has none."""
    with cgroups.mounted(request.param) as mount, cgroups.cgroup(mount, mount.name) as path:
        yield path


# What an init system does: it listens, and its child, in a cgroup of its own, becomes the service.
ACTIVATOR = """
import os, socket, sys
listener = socket.create_server(("127.0.0.1", 0), backlog=16)
listener.set_inheritable(True)
if not os.fork():
    with open(sys.argv[1] + "/cgroup.procs", "w") as file:
        file.write(str(os.getpid()))
    os.execv(sys.argv[2], [*sys.argv[2:], f"--inherited={listener.fileno()}"])
os.wait()
"""


@pytest.mark.parametrize("older", [False, True], ids=["younger", "older"])
def test_a_service_that_its_init_system_listened_for_is_measured_as_itself(
    cgroup, exporters, start, connect, older
):
    """Also one that is older than the exporter, which looks for hierarchies when it starts."""
    exporter = None if older else exporters()
    activator = [sys.executable, "-c", ACTIVATOR, cgroup]
    server = start(Service, "pool_server", prefix=activator, workers=2)
    exporter = exporter or exporters()
    exchange(connect(server.port))
    exporter.wait_until(lambda s: served(s, server)[0] == 1)
    server.ask("stuck")
    for _ in range(5):
        connect(server.port).sendall(REQUEST)
    gauges = ("requests_queued", "accept_queue_limit_connections")
    exporter.wait_for_equal(
        lambda s: [
            s.sum(f"workload_{name}", workload=server.name, port=server.port) for name in gauges
        ],
        [5, 16],
    )


def test_listeners_of_one_port_keep_their_connections_apart(start, connect, exporters):
    """Found open, on two addresses."""
    port = free_port()
    open_now = {"127.0.0.2": 1, "127.0.0.3": 3}
    names = [start(Service, "pool_server", port=port, address=each).name for each in open_now]
    for address, count in open_now.items():
        for _ in range(count):
            exchange(connect(port, address))
    exporters().wait_for_equal(
        lambda s: [s.sum("workload_connections", workload=name) for name in names], [1, 3]
    )
