# SPDX-License-Identifier: Apache-2.0
"""Services and exporters come and go: nothing is lost, doubled, counted down or left behind."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from clients import REQUEST, exchange, hold_back, receive
from exposition import Endpoint, Pool
from exporter import Exporter
from services import JavaPool, Load, Service
from services import free_port, own_copy, wait_until

IDLE = (0, 0, 0, 0)
COUNTER_ENDINGS = ("_total", "_count", "_sum", "_bucket")


def test_a_prefork_server_is_one_workload(exporter, start):
    server = start(Service, "forker", children=4, service_us=1000)
    workload = exporter.workload_of(server.port)
    load = start(Load, server.port, clients=8, requests=2000)
    assert load.finish()["errors"] == 0
    end = exporter.wait_for_end(server.port, 2000)
    assert end.scrape.one("workload_processes", workload=workload) == 5


def test_a_prefork_child_that_is_replaced_leaves_its_counts(exporter, start):
    server = start(Service, "forker", children=2)
    workload = exporter.workload_of(server.port)
    assert start(Load, server.port, requests=100).finish()["errors"] == 0
    exporter.wait_for_endpoint(server.port, Endpoint.counts, (100, 100, 100))
    os.kill(server.ask("stats")["child0"], signal.SIGKILL)
    exporter.wait_for_equal(lambda s: s.one("workload_processes", workload=workload), 2)
    assert start(Load, server.port, requests=100).finish()["errors"] == 0
    exporter.wait_for_endpoint(server.port, Endpoint.counts, (200, 200, 200))


def test_children_older_than_the_exporter_belong_to_their_parent(start, exporters):
    """Also those that hold no listener: each helper has closed it, and has two threads."""
    server = start(Service, "forker", children=2, helpers=3)
    exporter = exporters()
    workload = exporter.workload_of(server.port)
    exporter.wait_for_equal(
        lambda s: {
            "processes": s.one("workload_processes", workload=workload),
            "threads": s.sum("workload_threads", workload=workload),
            "helpers": Pool(s, workload, "helper-#").threads("idle"),
        },
        {"processes": 6, "threads": 9, "helpers": 6},
    )


def test_what_a_service_does_at_its_end_counts_also_without_threads(start, connect, exporters):
    """Its memory goes before its sockets are closed, and takes its time."""
    exporter = exporters("--no-collector.threads")
    server = start(Service, "pool_server", workers=3, ballast_mib=256)
    exporter.wait_until(lambda s: s.rows("workload_connections", port=server.port))
    for _ in range(3):
        exchange(connect(server.port))
    server.stop()
    exporter.wait_for_endpoint(server.port, Endpoint.counts, (3, 3, 3))
    assert exporter.scrape().lost_by(server.name) == {}


def counters(scrape, workload):
    """The series of a workload that may never decrease."""
    return {
        key: value
        for key, value in scrape.belonging_to(workload).items()
        if key[0].endswith(COUNTER_ENDINGS)
    }


def check_never_decrease(before, after):
    fell = {k: (v, after.get(k)) for k, v in before.items() if not after.get(k, -1) >= v}
    assert not fell


def lasting_series(scrape, workload):
    """All but buckets and reasons of losses, which are shown only once there is something in them."""
    passing = ("_bucket", "_measurements_dropped_total")
    return {key for key in scrape.belonging_to(workload) if not key[0].endswith(passing)}


def test_ten_restarts_under_load_keep_the_counters(exporter, start):
    port = free_port()
    server = start(Service, "pool_server", port=port, workers=4)
    workload = exporter.workload_of(port)
    load = start(Load, port, clients=4)
    exporter.wait_until(lambda s: Endpoint(s, port).counts()[0] >= 100)
    first = last = exporter.scrape()
    for _ in range(10):
        server.stop()
        server = start(Service, "pool_server", name=server.name, port=port, workers=4)
        reached = Endpoint(last, port).counts()[0]
        now = exporter.wait_until(lambda s, n=reached: Endpoint(s, port).counts()[0] > n and s)
        check_never_decrease(counters(last, workload), counters(now, workload))
        last = now
    answered = load.interrupt()["requests"]
    # Gauges may be of a moment between two servers: what ends last is waited for by its count.
    exporter.wait_until(lambda s: Endpoint(s, port).counts()[0] >= answered)
    end = exporter.wait_for_endpoint(port, Endpoint.gauges, IDLE)
    check_never_decrease(counters(last, workload), counters(end.scrape, workload))
    assert lasting_series(end.scrape, workload) == lasting_series(first, workload)
    assert end.scrape.one("workload_processes", workload=workload) == 1
    assert Pool(end.scrape, workload, "worker-#").threads() == 4
    # Each kill may cut off up to four requests that the server answered and nobody read.
    assert answered <= end.counts()[0] <= answered + 40


def test_a_service_that_ended_keeps_its_counters_and_has_no_threads(exporter, start):
    server = start(Service, "pool_server", workers=4)
    workload = exporter.workload_of(server.port)
    assert start(Load, server.port, requests=50).finish()["errors"] == 0
    before = exporter.wait_for_endpoint(server.port, Endpoint.counts, (50, 50, 50))
    server.stop()
    ended = exporter.wait_for_equal(lambda s: s.sum("workload_processes", workload=workload), 0)
    check_never_decrease(counters(before.scrape, workload), counters(ended, workload))
    assert ended.sum("workload_threads", workload=workload) == 0
    workers = Pool(ended, workload, "worker-#", role="other")  # where they begin
    assert workers.get("workload_threads_started_total") == 4
    assert workers.get("workload_threads_exited_total") == 4
    workers = Pool(ended, workload, "worker-#", role="serving")
    served = workers.get("workload_threads_started_total")
    assert workers.get("workload_threads_exited_total") == served > 0


def test_a_workload_without_processes_vanishes_after_the_grace_period(start, exporters):
    exporter = exporters("--workloads.grace-period=1s")
    server = start(Service, "pool_server")
    workload = exporter.workload_of(server.port)
    server.stop()
    exporter.wait_for_equal(lambda s: s.belonging_to(workload), {})


OTHERS = 500  # what the rest of the machine may start meanwhile


def test_five_thousand_connections_leave_nothing_behind(exporter, start):
    server = start(Service, "epoll_server")
    exporter.workload_of(server.port)
    # The first request makes a pool, of the thread that serves from then on.
    assert start(Load, server.port, clients=1, requests=1).finish()["errors"] == 0
    before = map_entries(exporter.wait_for_end(server.port, 1).scrape)
    load = start(Load, server.port, clients=10, requests=5000)
    assert load.finish()["errors"] == 0
    end = exporter.wait_for_end(server.port, 5001)
    assert end.get("workload_connections_accepted_total") == 5001
    # The tables are the machine's: what runs beside this has some of them.
    exporter.wait_until(
        lambda s: all(count <= before[name] + OTHERS for name, count in map_entries(s).items()),
        seconds=30,
    )


def map_entries(scrape):
    rows = scrape.rows("workload_exporter_map_entries")
    return {labels["map"]: value for labels, value in rows}


def limit_of(name):
    """A number of bpf/abi/limits.h."""
    text = (Path(__file__).parents[2] / "bpf" / "abi" / "limits.h").read_text()
    return int(re.search(rf"#define {name} (\d+)U", text)[1])


def check_losses_are_of_the_total(scrape):
    for labels, total in scrape.rows("workload_exporter_dropped_total"):
        of_workloads = scrape.sum("workload_measurements_dropped_total", reason=labels["reason"])
        assert of_workloads <= total


@pytest.mark.parametrize("clients", [0, 3])
def test_losses_are_told_of_the_workload_whose_they_are(start, connect, exporters, clients):
    """Also when it has ended, and once."""
    server = start(Service, "pool_server", workers=0)
    for _ in range(clients):
        connect(server.port)
    exporter = exporters()
    workload = exporter.workload_of(server.port)
    expected = {"connection_untracked": clients} if clients else {}
    first = exporter.wait_for_equal(lambda s: s.losses_of(workload), expected)
    server.stop()
    ended = exporter.wait_for_equal(lambda s: s.sum("workload_processes", workload=workload), 0)
    again = start(Service, "pool_server", name=server.name)
    exporter.wait_for_equal(lambda s: s.sum("workload_processes", workload=again.name), 1)
    for scrape in (first, ended, exporter.scrape()):
        assert scrape.losses_of(workload) == expected
        check_losses_are_of_the_total(scrape)


def rows_by_port(scrape, name, workload):
    return {labels["port"]: value for labels, value in scrape.rows(name, workload=workload)}


def test_ports_beyond_a_workloads_share_are_its_other(start, exporters):
    exporter = exporters()
    own = limit_of("ENDPOINTS_PER_TREE")
    many = start(Service, "epoll_server", ports=own + 36)
    ports = many.ask("ports").values()
    exporter.workload_of(many.port)
    later = start(Service, "pool_server")
    exporter.workload_of(later.port)
    for port in (*ports, later.port):
        assert start(Load, port, requests=3).finish()["errors"] == 0
    name = "workload_request_duration_seconds_count"
    end = exporter.wait_for_equal(
        lambda s: (s.sum(name, workload=many.name), s.sum(name, workload=later.name)),
        (3 * len(ports), 3),
    )
    assert end.losses_of(many.name)["endpoint_table_full"] >= 36
    assert not end.losses_of(later.name)
    check_losses_are_of_the_total(end)
    shown = rows_by_port(end, name, many.name)
    assert shown.pop("other") == 3 * 36
    assert len(shown) == own
    assert set(shown) <= {str(port) for port in ports}
    assert set(shown.values()) == {3}
    assert rows_by_port(end, name, later.name) == {str(later.port): 3}


def test_a_slot_just_freed_shows_no_gauges_of_its_last_owner(start, connect, exporters):
    exporter = exporters()
    for _ in range(5):
        dead = start(Service, "epoll_server", backlog=50)
        exporter.workload_of(dead.port)
        accepted = [connect(dead.port) for _ in range(5)]
        for client in accepted:
            exchange(client)
        dead.wait_for_rest()
        dead.ask("stuck")
        for client in accepted + [connect(dead.port) for _ in range(5)]:
            client.sendall(REQUEST)
        exporter.wait_for_endpoint(dead.port, Endpoint.gauges, (10, 0, 5, 10))
        dead.stop()
        fresh = start(Service, "epoll_server", backlog=7)
        first = Endpoint(
            exporter.wait_until(
                lambda s, f=fresh: s.rows("workload_connections", port=f.port) and s
            ),
            fresh.port,
        )
        assert first.gauges() == IDLE
        assert first.get("workload_request_oldest_queued_seconds") == 0
        assert first.get("workload_accept_queue_limit_connections") in (0, 7)


@pytest.mark.parametrize("delay_ms", [0, 1000], ids=["at-once", "later"])
def test_a_wrapper_is_named_after_the_program_that_it_became(exporter, start, delay_ms):
    wrapper = own_copy("wrapper")
    server = start(Service, "pool_server", workers=3, prefix=[wrapper, delay_ms])
    # A page of the instant in which it was no longer the wrapper may have a row of the port for that.
    exporter.wait_for_equal(
        lambda s: {
            "became": s.sum("workload_processes", workload=server.name),
            "was": s.sum("workload_processes", workload=wrapper.name),
            "workers": Pool(s, server.name, "worker-#").threads(),
            "ports": len(s.rows("workload_connections", workload=server.name, port=server.port)),
        },
        {"became": 1, "was": 0, "workers": 3, "ports": 1},
    )
    assert start(Load, server.port, requests=50).finish()["errors"] == 0
    end = exporter.wait_for_end(server.port, 50, workload=server.name)
    assert end.get("workload_connections_accepted_total") == 50


def test_a_reused_descriptor_is_a_new_connection(exporter, start, connect):
    """Every connection has the descriptor of the one before, which each second client left at once."""
    server = start(Service, "talker", script="read:100,read:100,write:100,eof")
    exporter.workload_of(server.port)
    for _ in range(20):
        client = connect(server.port)
        client.sendall(REQUEST + REQUEST)
        receive(client)
        client.close()
        cut_off = connect(server.port)
        hold_back(cut_off)
        cut_off.sendall(REQUEST)
        cut_off.close()
    exporter.wait_for_end(server.port, 20, goodbyes=20)


def test_a_service_that_listened_before_the_exporter_is_measured(start, exporters):
    server = start(Service, "pool_server", workers=4, service_us=10000)
    exporter = exporters()
    workload = exporter.workload_of(server.port)
    load = start(Load, server.port, clients=4, requests=100)
    client = load.finish()
    assert client["errors"] == 0
    end = exporter.wait_for_end(server.port, 100)
    assert 100 * 10e6 <= end.seconds("service") * 1e9 <= 1.02 * client["response_ns"]
    exporter.wait_for_equal(lambda s: Pool(s, workload, "worker-#").threads("idle"), 4)


def test_threads_that_slept_before_the_exporter_came_are_classified(start, exporters):
    server = start(Service, "locker", mode="condvar", threads=3)
    server.ask("start")
    java = start(JavaPool, 4)
    exporter = exporters()
    pools = {
        (exporter.workload_of(server.port), "locker-#"): 3,
        (exporter.workload_of(java.port), "pool-#-thread-#"): 4,
    }
    exporter.wait_for_equal(
        lambda s: {pool: Pool(s, *pool).threads("idle") for pool in pools}, pools
    )


def test_connections_older_than_the_exporter_are_adopted(start, connect, exporters):
    server = start(Service, "epoll_server")
    clients = [connect(server.port) for _ in range(3)]
    for client in clients:
        exchange(client)
    exporter = exporters()
    exporter.workload_of(server.port)
    exporter.wait_for_endpoint(server.port, Endpoint.gauges, (0, 0, 0, 3))
    for _ in range(5):
        for client in clients:
            exchange(client)
    # The first request of an adopted connection may be unpaired: its past is not known.
    end = exporter.wait_until(lambda s: Endpoint(s, server.port).counts()[0] >= 12 and s)
    assert 12 <= Endpoint(end, server.port).counts()[0] <= 15
    for client in clients:
        client.close()
    exporter.wait_for_endpoint(server.port, Endpoint.gauges, IDLE)


def loaded_programs():
    text = subprocess.run(
        ["bpftool", "--json", "prog", "list"], check=True, capture_output=True, text=True
    ).stdout
    return {program["id"] for program in json.loads(text)}


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_the_exporter_ends_cleanly_and_leaves_no_program(exporters, ending):
    exporter = exporters()
    programs = exporter.bpf_ids("prog")
    assert programs and programs <= loaded_programs()
    assert exporter.stop(ending) == 0
    wait_until(lambda: not programs & loaded_programs(), 20, "programs of the exporter are left")


def test_the_exporter_ends_while_it_is_scraped(start):
    exporter = Exporter()
    server = start(Service, "pool_server", workers=4)
    start(Load, server.port, clients=4)
    for _ in range(5):
        exporter.scrape()
    assert exporter.stop() == 0


def test_two_exporters_see_the_same(exporter, exporters, start):
    server = start(Service, "pool_server", workers=4)
    other = exporters()
    for watching in (exporter, other):
        watching.workload_of(server.port)
    assert start(Load, server.port, requests=100).finish()["errors"] == 0
    for watching in (exporter, other):
        watching.wait_for_endpoint(server.port, Endpoint.counts, (100, 100, 100))


def test_two_exporters_both_find_all_threads_of_a_late_listener(exporter, exporters, start):
    """Their walks over its threads run at the same time and disturb each other."""
    both = (exporter, exporters())
    for _ in range(8):
        server = start(Service, "locker", mode="condvar", threads=300, early=1)
        for watching in both:
            workload = watching.workload_of(server.port)
            watching.wait_for_equal(
                lambda s, w=workload: Pool(s, w, "locker-#").threads("idle"), 300
            )
        server.stop()


def test_at_start_it_says_in_a_few_lines_what_it_attached_and_found(exporters, start):
    start(Service, "pool_server", workers=4)
    exporter = exporters()
    exporter.wait_for_log(r"attached \d+ of \d+ probes")
    exporter.wait_for_log(r"watching \d+ services on \d+ ports")
    assert len(exporter.log) <= 10
