# SPDX-License-Identifier: Apache-2.0
"""Addresses and network namespaces."""

import pytest

from services import IN_OWN_NETWORK, Load, Service


def check_hundred_requests(exporter, port, load, **labels):
    assert load.finish()["errors"] == 0
    exporter.wait_for_end(port, 100, **labels)


@pytest.mark.parametrize(
    "listen, connect",
    [
        ("127.0.0.1", "127.0.0.1"),
        ("0.0.0.0", "127.0.0.1"),
        ("::1", "::1"),
        ("::", "::1"),
        ("::", "127.0.0.1"),
    ],
)
def test_requests_are_counted_on_every_kind_of_address(exporter, start, listen, connect):
    server = start(Service, "pool_server", address=listen)
    exporter.workload_of(server.port)
    load = start(Load, server.port, address=connect, clients=4, requests=100)
    check_hundred_requests(exporter, server.port, load)


def test_a_server_that_listens_without_bind_has_the_port_it_was_given(exporter, start):
    server = start(Service, "pool_server", unbound=1)
    scrape = exporter.wait_until(
        lambda s: s.rows("workload_connections", workload=server.name) and s
    )
    rows = scrape.rows("workload_connections", workload=server.name)
    assert [labels["port"] for labels, _ in rows] == [str(server.port)]
    load = start(Load, server.port, clients=4, requests=100)
    # The kernel may have given the port to another test before.
    check_hundred_requests(exporter, server.port, load, workload=server.name)


def in_network_of(server):
    return ["nsenter", f"--target={server.pid}", "--net"]


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_another_network_namespace_is_measured_as_well(exporter, start, address):
    server = start(Service, "pool_server", prefix=IN_OWN_NETWORK, address=address)
    exporter.workload_of(server.port)
    load = start(
        Load,
        server.port,
        prefix=in_network_of(server),
        address=address,
        clients=4,
        requests=100,
    )
    check_hundred_requests(exporter, server.port, load)


def test_a_namespace_older_than_the_exporter_is_measured_as_well(start, exporters):
    server = start(Service, "pool_server", prefix=IN_OWN_NETWORK)
    exporter = exporters()
    exporter.workload_of(server.port)
    load = start(Load, server.port, prefix=in_network_of(server), clients=4, requests=100)
    check_hundred_requests(exporter, server.port, load)


def test_the_same_port_in_two_namespaces_stays_apart(exporter, start):
    here = start(Service, "pool_server")
    there = start(Service, "pool_server", prefix=IN_OWN_NETWORK, port=here.port)
    exporter.wait_until(
        lambda s: {r[0]["workload"] for r in s.rows("workload_connections", port=here.port)}
        >= {here.name, there.name}
    )
    assert start(Load, here.port, requests=10).finish()["errors"] == 0
    load = start(Load, there.port, prefix=in_network_of(there), requests=20)
    assert load.finish()["errors"] == 0
    name = "workload_request_queue_seconds_count"
    exporter.wait_for_equal(
        lambda s: [s.one(name, workload=w.name, port=here.port) for w in (here, there)], [10, 20]
    )
