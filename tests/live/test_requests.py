# SPDX-License-Identifier: Apache-2.0
"""Requests of real servers: counted exactly, timed as the servers and clients time them."""

import subprocess
import time

import pytest

from clients import LATE_SECONDS, REQUEST, exchange, receive, reset
from exporter import EMULATED, SLOWER
from exposition import Endpoint, Pool, PoolChange
from services import Load, Nginx, Redis, Service
from utilization import Utilization

NGINX_REQUESTS = 20000 // SLOWER
REDIS_REQUESTS = 100000 // SLOWER
SWEEP_SECONDS = 1.1  # a little more than the shortest time between two sweeps


def run(*command):
    subprocess.run([str(word) for word in command], check=True, capture_output=True, timeout=300)


@pytest.mark.parametrize("keep_alive", [["-k"], []], ids=["keep-alive", "new-connections"])
def test_every_request_to_nginx_is_counted(exporter, start, tmp_path, keep_alive):
    nginx = start(Nginx, tmp_path)
    exporter.workload_of(nginx.port)
    page = f"http://127.0.0.1:{nginx.port}/"
    run("ab", "-q", "-n", NGINX_REQUESTS, "-c", 50, *keep_alive, page)
    end = exporter.wait_for_end(nginx.port, NGINX_REQUESTS)
    assert end.get("workload_request_oldest_queued_seconds") == 0


def redis_commands(port):
    """The server's own count of the commands it has processed, itself excluded."""
    text = subprocess.run(
        ["redis-cli", "-p", str(port), "info", "commandstats"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return {
        line.split(":")[0].removeprefix("cmdstat_"): int(line.split("calls=")[1].split(",")[0])
        for line in text.splitlines()
        if "calls=" in line
    }


def test_every_request_to_redis_is_counted(exporter, start, tmp_path):
    redis = start(Redis, tmp_path)
    exporter.workload_of(redis.port)
    run("redis-benchmark", "-p", redis.port, "-q", "-n", REDIS_REQUESTS, "-t", "get", "-P", 1)
    # redis-benchmark begins with one exchange more: CONFIG GET of two settings, pipelined.
    exporter.wait_for_end(redis.port, REDIS_REQUESTS + 1)
    assert redis_commands(redis.port) == {"get": REDIS_REQUESTS, "config|get": 2}


SATURATING = 240 * (1 + SLOWER)


def queued_and_served(endpoint):
    return endpoint.gauges()[:2]


def is_saturated(queued, served):
    return served <= 4 < queued <= 20


@pytest.fixture(scope="module")
def saturated(exporter, start_for_module):
    """20 closed-loop clients on 4 blocking workers of 50 ms, and what all sides measured."""
    server = start_for_module(Service, "pool_server", workers=4, service_us=50000)
    exporter.workload_of(server.port)
    load = start_for_module(Load, server.port, clients=20, requests=SATURATING)
    exporter.wait_until(lambda s: Endpoint(s, server.port).counts()[0] >= 20)
    utilization = Utilization(exporter, server, 4, seconds=1.5)
    instants = [queued_and_served(exporter.endpoint(server.port)) for _ in range(9)]
    # The workers run in step: a sample may fall between an answer and the next read.
    exporter.wait_for_endpoint(server.port, queued_and_served, (16, 4))
    client = load.finish()
    end = exporter.wait_for_end(server.port, SATURATING)
    return {
        "end": end,
        "server": server.ask("stats"),
        "client": client,
        "utilization": utilization,
        "instants": instants,
    }


def test_every_request_to_saturated_workers_is_counted_with_its_times(exporter, start):
    """No less than the server sleeps, no more than clients wait: 2 % for their clocks (LATE_SECONDS)."""
    server = start(Service, "pool_server", workers=4, service_us=20000)
    exporter.workload_of(server.port)
    load = start(Load, server.port, clients=20, requests=SATURATING)
    exporter.wait_until(lambda s: is_saturated(*queued_and_served(Endpoint(s, server.port))))
    client = load.finish()
    assert client["errors"] == 0
    assert client["requests"] == server.ask("stats")["requests"] == SATURATING
    end = exporter.wait_for_end(server.port, SATURATING)
    queue, service = end.seconds("queue"), end.seconds("service")
    assert service >= SATURATING * 0.02
    assert queue > service, "of 20 clients 16 wait"
    assert end.seconds("duration") == pytest.approx(queue + service, rel=1e-9)
    assert (queue + service) * 1e9 <= 1.02 * client["response_ns"]


@pytest.mark.times
def test_service_time_is_what_the_server_measures(saturated):
    assert saturated["end"].seconds("service") * 1e9 == pytest.approx(
        saturated["server"]["service_ns"], rel=0.02
    )


@pytest.mark.times
def test_queue_and_service_are_what_clients_wait_for(saturated):
    end = saturated["end"]
    measured = end.seconds("queue") + end.seconds("service")
    assert measured * 1e9 == pytest.approx(saturated["client"]["response_ns"], rel=0.03)
    assert end.seconds("duration") == pytest.approx(measured, rel=1e-6)


@pytest.mark.times
def test_saturated_workers_leave_the_other_clients_waiting(saturated):
    """
    At most instants: whoever is not served waits, but for who is just being answered. Clients that
    have no CPU then are longer about that.
    """
    answered = 4 if EMULATED else 1
    instants = saturated["instants"]
    right = [
        queued >= 16 - answered and abs(queued + served - 20) <= answered
        for queued, served in instants
    ]
    assert sum(right) > len(instants) / 2, instants


@pytest.mark.times
def test_saturated_pool_is_fully_utilized(saturated):
    saturated["utilization"].check("sleep")
    assert saturated["utilization"].own == pytest.approx(1, abs=0.2)


@pytest.mark.times
def test_one_client_uses_a_quarter_of_four_workers(exporter, start):
    server = start(Service, "pool_server", workers=4, service_us=50000)
    exporter.workload_of(server.port)
    load = start(Load, server.port)
    exporter.wait_until(lambda s: Endpoint(s, server.port).counts()[0] >= 2)
    utilization = Utilization(exporter, server, 4, seconds=3)
    assert load.interrupt()["errors"] == 0
    utilization.check("sleep")
    assert utilization.own == pytest.approx(0.25, abs=0.1)


@pytest.mark.times
def test_workers_fed_through_a_queue_are_utilized_as_those_that_accept(exporter, start):
    server = start(Service, "pool_server", mode="queue", workers=4, service_us=50000)
    exporter.workload_of(server.port)
    load = start(Load, server.port, clients=2, keep_alive=1)
    exporter.wait_until(lambda s: Endpoint(s, server.port).get("workload_requests_in_service"))
    utilization = Utilization(exporter, server, 4, seconds=3)
    assert load.interrupt()["errors"] == 0
    utilization.check("sleep")
    assert utilization.own == pytest.approx(0.5, abs=0.15)


def queue_depths(endpoint):
    queued, _, accept_queue, _ = endpoint.gauges()
    return queued, accept_queue


def oldest(endpoint):
    return endpoint.get("workload_request_oldest_queued_seconds")


class Sent:
    """One request on each of @clients: `began` before, `ended` after it was sent."""

    def __init__(self, clients):
        self.began, self.ended = [], []
        for client in clients:
            self.began.append(time.monotonic())
            client.sendall(REQUEST)
            self.ended.append(time.monotonic())


def check_stuck_then_released(exporter, server, clients, accept_queue):
    """Ten requests at a stuck server are queued in full view, and their times are recorded."""
    before = exporter.endpoint(server.port)
    sent = Sent(clients)
    stuck = exporter.wait_for_endpoint(server.port, queue_depths, (10, accept_queue))
    assert stuck.get("workload_requests_in_service") == 0
    assert 0 < oldest(stuck) <= stuck.scrape.ended - sent.began[0]
    later = exporter.wait_until(
        lambda s: oldest(Endpoint(s, server.port)) > oldest(stuck) + 1 and s
    )
    assert oldest(Endpoint(later, server.port)) <= later.ended - sent.began[0]
    released = time.monotonic()
    server.ask("release")
    for client in clients:
        receive(client)
        client.close()
    answered = time.monotonic()
    end = exporter.wait_for_end(server.port, before.counts()[0] + 10)
    assert oldest(end) == 0
    waited = end.seconds("queue") - before.seconds("queue")
    least, most = sum(released - at for at in sent.ended), sum(answered - at for at in sent.began)
    assert least - LATE_SECONDS <= waited <= most


def in_service(endpoint):
    return endpoint.get("workload_requests_in_service")


def served_for(endpoint):
    return endpoint.get("workload_request_oldest_in_service_seconds")


def check_ages_in_service(exporter, server, sent, taken):
    """The oldest of what is in service was read between @sent and @taken, and grows older."""
    first = exporter.endpoint(server.port)
    assert 0 < served_for(first) <= first.scrape.ended - sent
    later = exporter.wait_until(
        lambda s: served_for(Endpoint(s, server.port)) > served_for(first) + 1 and s
    )
    # Ages are those of the last sweep, of a second ago at most.
    assert later.began - taken - SWEEP_SECONDS <= served_for(Endpoint(later, server.port))
    assert served_for(Endpoint(later, server.port)) <= later.ended - sent


def test_a_request_that_hangs_in_service_grows_old_in_full_view(exporter, start, connect):
    """Each by its own age, also where the connection has served requests before."""
    script = "read:100,write:100,read:100,sleep:9000,write:100,loop"
    server = start(Service, "talker", script=script)
    exporter.workload_of(server.port)
    clients = [connect(server.port) for _ in range(3)]
    for client in clients:
        exchange(client)
    exporter.wait_for_endpoint(server.port, Endpoint.counts, (3, 3, 3))
    assert served_for(exporter.endpoint(server.port)) == 0
    sent = Sent(clients[:1]).began[0]
    taken = exporter.wait_for_endpoint(server.port, in_service, 1).scrape.ended
    Sent(clients[1:])
    exporter.wait_for_endpoint(server.port, in_service, 3)
    check_ages_in_service(exporter, server, sent, taken)
    for client in clients:
        receive(client)
    idle = exporter.wait_for_endpoint(server.port, in_service, 0)
    assert served_for(idle) == 0


def test_between_two_sweeps_a_request_that_is_served_meanwhile_does_not_age(exporter, start, connect):
    server = start(Service, "pool_server", workers=1)
    server.ask("stuck")
    exporter.workload_of(server.port)
    client = connect(server.port)
    Sent([client])
    time.sleep(SWEEP_SECONDS)  # so that the next scrape sweeps
    swept = exporter.endpoint(server.port)
    server.ask("release")
    receive(client)
    time.sleep(SWEEP_SECONDS / 2)
    assert oldest(swept) > 0
    assert oldest(exporter.endpoint(server.port)) in (0, oldest(swept))


@pytest.mark.bounds
def test_stuck_workers_show_ten_queued_requests(exporter, start, connect):
    server = start(Service, "pool_server", workers=4)
    exporter.workload_of(server.port)
    server.wait_for_rest()
    server.ask("stuck")
    clients = [connect(server.port) for _ in range(10)]
    # The four workers were in accept() already: each takes a connection, but does not read.
    check_stuck_then_released(exporter, server, clients, accept_queue=6)


@pytest.mark.bounds
def test_stuck_event_loop_shows_ten_queued_requests(exporter, start, connect):
    server = start(Service, "epoll_server")
    exporter.workload_of(server.port)
    accepted = [connect(server.port) for _ in range(5)]
    for client in accepted:
        exchange(client)
    exporter.wait_for_endpoint(server.port, Endpoint.counts, (5, 5, 5))
    server.ask("stuck")
    clients = accepted + [connect(server.port) for _ in range(5)]
    check_stuck_then_released(exporter, server, clients, accept_queue=5)


@pytest.mark.parametrize("response_bytes", [100, 0], ids=["answered", "closed"])
@pytest.mark.parametrize("mode", ["queue", "accept"])
def test_workers_whose_clients_have_reset_are_idle_again(
    exporter, start, connect, mode, response_bytes
):
    """
    Whether they try to answer or only close. Work from a queue they await on a condition variable,
    which in a request would be `wait`.
    """
    server = start(
        Service,
        "pool_server",
        mode=mode,
        workers=4,
        service_us=3000000 * SLOWER,
        response_bytes=response_bytes,
    )
    workload = exporter.workload_of(server.port)
    clients = [connect(server.port) for _ in range(4)]
    for client in clients:
        client.sendall(REQUEST)
    exporter.wait_for_endpoint(server.port, lambda e: e.gauges()[1], 4)
    for client in clients:
        reset(client)
    exporter.wait_for_endpoint(server.port, Endpoint.abandoned, (0, 4))
    exporter.wait_for_equal(lambda s: Pool(s, workload, "worker-#").threads("idle"), 4)
    before = exporter.scrape()
    time.sleep(1)
    pool = PoolChange(before, exporter.scrape(), workload, "worker-#", 4)
    pool.check_whole()
    pool.check_all("idle")
    exporter.wait_for_end(server.port, 0, abandoned=(0, 4))


@pytest.mark.times
def test_mean_queue_depth_follows_from_the_queue_times(exporter, start):
    """Little's law: the sum of queue times grows by depth x time."""
    server = start(Service, "pool_server", workers=2, service_us=20000)
    exporter.workload_of(server.port)
    load = start(Load, server.port, clients=8)
    exporter.wait_until(lambda s: Endpoint(s, server.port).counts()[0] >= 8)
    before = exporter.endpoint(server.port)
    time.sleep(2)
    after = exporter.endpoint(server.port)
    load.interrupt()
    depth = (after.seconds("queue") - before.seconds("queue")) / (
        after.scrape.at - before.scrape.at
    )
    assert depth == pytest.approx(6, rel=0.05)


@pytest.mark.parametrize(
    "program, options, model",
    [
        ("pool_server", {}, "blocking"),
        ("epoll_server", {}, "epoll"),
        # As HAProxy: it serves a first request before it waits for the next one.
        ("epoll_server", {"tries": 1}, "epoll"),
    ],
)
def test_io_model_tells_how_a_server_drives_its_sockets(
    exporter, start, connect, program, options, model
):
    server = start(Service, program, **options)
    exporter.workload_of(server.port)
    for requests in (1, 2):
        for _ in range(10):
            client = connect(server.port)
            for _ in range(requests):
                exchange(client)
            server.wait_for_rest()
            client.close()
    exporter.wait_for_equal(
        lambda s: {
            labels["io_model"]: value
            for labels, value in s.rows("workload_connections_accepted_total", port=server.port)
            if value
        },
        {model: 20},
    )


def test_bytes_are_counted_in_both_directions(exporter, start):
    server = start(Service, "epoll_server", request_bytes=1000, response_bytes=5000)
    exporter.workload_of(server.port)
    load = start(
        Load, server.port, requests=500, keep_alive=1, request_bytes=1000, response_bytes=5000
    )
    assert load.finish()["requests"] == 500
    end = exporter.wait_for_end(server.port, 500)
    assert end.get("workload_received_bytes_total") == 500 * 1000
    assert end.get("workload_sent_bytes_total") == 500 * 5000


def test_a_full_accept_queue_shows_its_limit_and_overflows(exporter, start, connect):
    server = start(Service, "pool_server", workers=1, backlog=2)
    exporter.workload_of(server.port)
    server.wait_for_rest()
    server.ask("stuck")
    # One is accepted before the worker stops; the kernel queues one more than the limit.
    connect(server.port)
    exporter.wait_for_endpoint(server.port, lambda e: e.gauges()[2:], (0, 1))
    for _ in range(3):
        connect(server.port)
    full = exporter.wait_for_endpoint(server.port, lambda e: e.gauges()[2], 3)
    assert full.get("workload_accept_queue_limit_connections") == 2
    assert full.get("workload_accept_queue_overflows_total") == 0
    late = start(Load, server.port, requests=1)
    exporter.wait_until(
        lambda s: s.sum("workload_accept_queue_overflows_total", port=server.port) >= 1
    )
    late.stop()
    server.ask("release")
