# SPDX-License-Identifier: Apache-2.0
"""One service on three machines, and a second level above: every request is counted once."""

import copy

import pytest
import yaml

from machines import WORKLOAD, Machine
from prometheus import Prometheus
from services import free_port
from shortened import DASHBOARDS, short_rules

REQUESTS = (900, 1100, 1300)
STUCK = (3, 4, 5)
CLUSTER = "one"
SHOP = f'{{workload="{WORKLOAD}"}}'
RATE = f"workload_port:workload_request_duration_seconds_count:rate10s{SHOP}"
RAW_RATE = f"sum(rate(workload_request_duration_seconds_count{SHOP}[10s]))"
QUEUED = f"workload_port:workload_requests_queued:sum{SHOP}"


def above(server):
    """The scrapes of dashboards/prometheus-global.yml, of @server and once a second."""
    (scrape,) = yaml.safe_load((DASHBOARDS / "prometheus-global.yml").read_text())["scrape_configs"]
    made = copy.deepcopy(scrape)
    made["static_configs"] = [{"targets": [f"127.0.0.1:{server.port}"]}]
    return [made]


@pytest.fixture(scope="module")
def cleanup():
    started = []
    yield started
    for process in reversed(started):
        process.stop()


@pytest.fixture(scope="module")
def machines(cleanup):
    port = free_port()
    for stuck in STUCK:
        cleanup.append(Machine(port, workers=stuck))
    return list(cleanup)


@pytest.fixture(scope="module")
def first(cleanup, machines, tmp_path_factory):
    """Scrapes the machines."""
    directory = tmp_path_factory.mktemp("first")
    scrapes = [machine.scrape() for machine in machines]
    cleanup.append(Prometheus(directory, scrapes, short_rules(directory), {"cluster": CLUSTER}))
    return cleanup[-1]


@pytest.fixture(scope="module")
def second(cleanup, first, tmp_path_factory):
    """Federates from the first. It loads the rules too, which must not count anything again."""
    directory = tmp_path_factory.mktemp("second")
    cleanup.append(Prometheus(directory, above(first), short_rules(directory)))
    return cleanup[-1]


def one_value(rows):
    assert len(rows) <= 1, rows
    return rows and rows[0][1]


def test_the_machines_are_instances_of_one_service(first, machines):
    rows = first.wait_for(f"workload_processes{SHOP}", lambda rows: len(rows) == len(machines))
    assert {labels["instance"] for labels, _ in rows} == {machine.target for machine in machines}
    assert {labels["job"] for labels, _ in rows} == {"workload"}


def test_rates_add_up_over_the_machines(first, second, machines):
    loads = [
        machine.load(clients=2, rate=30, keep_alive=1, requests=count)
        for machine, count in zip(machines, REQUESTS)
    ]
    first.wait_for(RATE, lambda rows: one_value(rows) and rows[0][1] > 60)

    def is_sum_of_the_raw_rates(_):
        """At the very instant of the rule's evaluation."""
        at = first.value(f"timestamp({RATE})")
        recorded = one_value(first.query(RATE, time=at))
        return recorded == pytest.approx(one_value(first.query(RAW_RATE, time=at)), rel=1e-9)

    first.wait_for(RATE, is_sum_of_the_raw_rates)
    second.wait_for(RATE, lambda rows: one_value(rows) and rows[0][1] > 60)
    for load in loads:
        assert load.finish()["errors"] == 0


def test_requests_of_all_machines_are_counted_once(first):
    total = f"sum by (workload) (workload_request_duration_seconds_count{SHOP})"
    first.wait_for(total, lambda rows: one_value(rows) == sum(REQUESTS))


def test_queues_add_up_on_both_levels(first, second, machines):
    for machine, clients in zip(machines, STUCK):
        machine.service.ask("stuck")
        machine.load(clients=clients)
    for server in (first, second):
        server.wait_for(QUEUED, lambda rows: one_value(rows) == sum(STUCK))


def test_the_second_level_knows_aggregates_only(first, second):
    (row,) = second.query(QUEUED)
    assert row[0]["cluster"] == CLUSTER and row[0]["job"] == "workload"
    assert "instance" not in row[0]
    assert second.query(f"workload_requests_queued{SHOP}") == []


def test_every_recorded_series_is_there_once_on_the_second_level(first, second):
    everything = '{__name__=~"workload(_port|_pool)?:.+"}'
    by_name = f"count by (__name__) ({everything})"

    def are_those_of_the_first(rows):
        expected = {labels["__name__"]: count for labels, count in first.query(by_name)}
        found = {labels["__name__"]: count for labels, count in rows}
        return len(found) > 30 and found == expected

    second.wait_for(by_name, are_those_of_the_first)


def test_which_machine_it_is_can_still_be_told(first, machines):
    first.wait_for(
        'ALERTS{alertname="WorkloadStuck", alertstate="firing", workload="shop"}',
        lambda rows: {labels["instance"] for labels, _ in rows}
        == {machine.target for machine in machines},
    )
