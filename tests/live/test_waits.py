# SPDX-License-Identifier: Apache-2.0
"""What a thread waits for in the middle of a request, and of its answer."""

import time

import pytest

import servers
from clients import LATE_SECONDS, REQUEST, UPLOAD, exchange, receive
from exposition import Endpoint, Pool, PoolChange
from services import JavaPool, Load, Service, Tasks, free_port, python_link, unique_name
from utilization import Utilization

HEAD_BYTES = 50
WINDOW_SECONDS = 1
FLOOD_KB = 8192


def in_service(scrape, port):
    return Endpoint(scrape, port).gauges()[1]


def serves(exporter, port, requests):
    """The gauge follows within a second."""
    exporter.wait_for_equal(lambda s: in_service(s, port), requests)


def talkers(scrape, workload, state):
    return Pool(scrape, workload, "talker-#").threads(state)


def stays(exporter, workload, state):
    """
    For a second and more the only talker is in @state whenever it waits: what a client's window has
    room for may wake it for a moment.
    """
    before = exporter.wait_until(lambda s: talkers(s, workload, state) == 1 and s)
    time.sleep(WINDOW_SECONDS)
    change = PoolChange(before, exporter.scrape(), workload, "talker-#", 1)
    change.check_whole()
    change.check_all(state, "running", "runnable")
    assert change.seconds(state) > 0


HOWS = {"recv": "network", "read": "network", "poll": "network", "pipe": "wait"}
MANY = {"polls": "network", "select": "network", "epoll": "network", "pipes": "wait"}


@pytest.mark.parametrize("how, state", [*HOWS.items(), *MANY.items()])
def test_what_a_request_waits_for_is_told_by_the_descriptor(exporter, talk, how, state):
    """Or, of several, by that which is no client's: the other one is to be woken up by."""
    case = talk(f"read:100,take:{how},write:100,loop")
    workload = exporter.workload_of(case.port)
    case.client.sendall(REQUEST)
    stays(exporter, workload, state)
    serves(exporter, case.port, 1)
    case.server.ask("feed")
    receive(case.client)
    stays(exporter, workload, "idle")
    case.client.close()
    exporter.wait_for_end(case.port, 1)


@pytest.mark.parametrize("how", HOWS)
def test_a_worker_that_is_held_up_while_it_answers_is_in_service(exporter, talk, how):
    """Also after a second, when an answer would be complete."""
    case = talk(f"read:100,write:{HEAD_BYTES},take:{how},write:{HEAD_BYTES},loop")
    workload = exporter.workload_of(case.port)
    case.client.sendall(REQUEST)
    receive(case.client, HEAD_BYTES)
    stays(exporter, workload, HOWS[how])
    stays(exporter, workload, HOWS[how])
    serves(exporter, case.port, 1)
    assert exporter.endpoint(case.port).counts() == (0, 0, 0)
    case.server.ask("feed")
    receive(case.client, HEAD_BYTES)
    exporter.wait_until(lambda s: talkers(s, workload, "idle") == 1)
    serves(exporter, case.port, 0)
    case.client.close()
    end = exporter.wait_for_end(case.port, 1)
    assert end.seconds("service") > 2 * WINDOW_SECONDS


@pytest.mark.parametrize("how", ["flood", "pour"], ids=["write", "poll"])
def test_a_worker_whose_client_takes_its_answer_slowly_is_on_the_network(exporter, talk, how):
    case = talk(f"read:100,write:{HEAD_BYTES},{how}:{FLOOD_KB},loop")
    workload = exporter.workload_of(case.port)
    case.client.sendall(REQUEST)
    stays(exporter, workload, "network")
    serves(exporter, case.port, 1)
    receive(case.client, HEAD_BYTES + (FLOOD_KB << 10))
    exporter.wait_until(lambda s: talkers(s, workload, "idle") == 1)
    case.client.close()
    end = exporter.wait_for_end(case.port, 1)
    assert end.seconds("service") > WINDOW_SECONDS


@pytest.mark.parametrize("how", ["peek", "read", "pollin"])
def test_a_worker_that_waits_for_its_own_client_is_idle(exporter, talk, how):
    """For the rest of a request, and for the next one while it could still answer the last."""
    step = "read:100" if how == "read" else f"{how},read:100"
    case = talk(f"{step},{step},write:{HEAD_BYTES},loop")
    workload = exporter.workload_of(case.port)
    case.client.sendall(UPLOAD)
    serves(exporter, case.port, 1)
    stays(exporter, workload, "idle")
    case.client.sendall(REQUEST)
    receive(case.client, HEAD_BYTES)
    stays(exporter, workload, "idle")
    serves(exporter, case.port, 0)
    case.client.close()
    exporter.wait_for_end(case.port, 1)


def test_a_worker_that_polls_its_listener_has_ended_its_request(exporter, talk):
    """As servers of one thread do, while the client keeps its connection."""
    case = talk("read:100,write:100,pollnext,eof")
    exchange(case.client)
    stays(exporter, exporter.workload_of(case.port), "idle")
    exporter.wait_for_endpoint(case.port, Endpoint.counts, (1, 1, 1))
    serves(exporter, case.port, 0)


def test_a_worker_that_has_answered_and_parks_is_idle(exporter, talk):
    case = talk(f"read:100,write:{HEAD_BYTES},wait,write:{HEAD_BYTES},loop")
    workload = exporter.workload_of(case.port)
    case.client.sendall(REQUEST)
    receive(case.client, HEAD_BYTES)
    stays(exporter, workload, "idle")
    case.server.ask("go")
    receive(case.client, HEAD_BYTES)


def test_who_answers_what_another_thread_has_read_is_in_service_from_there_on(exporter, talk):
    """It is believed to be at the answer still when that has paused once."""
    case = talk("read:100,stream:50,loop")
    workload, pool = exporter.workload_of(case.port), "answerer-#"
    case.client.sendall(REQUEST)
    for _ in range(2):
        case.server.ask("feed")
        receive(case.client, HEAD_BYTES)
        before = exporter.wait_until(lambda s: Pool(s, workload, pool).threads("network") == 1 and s)
    time.sleep(WINDOW_SECONDS)
    after = exporter.scrape()
    change = PoolChange(before, after, workload, pool, 1)
    change.check_whole()
    change.check_all("network")
    serves(exporter, case.port, 1)
    assert talkers(after, workload, "idle") == 1, "it has handed the request over"
    case.server.ask("feed")
    receive(case.client, HEAD_BYTES)
    case.client.close()
    exporter.wait_for_end(case.port, 1)


def test_workers_of_php_that_call_a_service_by_curl_are_on_the_network(exporter, start, connect):
    """libcurl polls for its socket and for an eventfd."""
    upstream = start(Service, "talker", script="eof")
    port = free_port()
    php = servers.php(
        start, port,
        work=f"curl_exec(curl_init('http://127.0.0.1:{upstream.port}/'));",
        options=["-d", "extension=curl"],
    )  # fmt: skip
    exporter.wait_until(lambda s: s.rows("workload_connections", workload=php.name))
    exporter.workload_of(port)  # nginx, in front of it
    clients = [connect(port) for _ in range(4)]
    for client in clients:
        client.sendall(b"GET / HTTP/1.0\r\n\r\n")
    exporter.wait_for_equal(lambda s: Pool(s, php.name, php.name).threads("network"), 4)
    upstream.stop()
    for client in clients:
        assert client.recv(1), "it has answered"
    exporter.wait_for_equal(lambda s: Pool(s, php.name, php.name).threads("idle"), 5)


LOOP = """
import select, socket, sys, time
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
epoll = sys.argv[2] == "epoll"
poll, clients, wait = select.epoll() if epoll else select.poll(), {}, 0.001
poll.register(listener, select.POLLIN)
while True:
    ready, _, _ = select.select([listener, *clients], [], [], 0.1) if sys.argv[2] == "select" else (
        [{each.fileno(): each for each in [listener, *clients]}[fd] for fd, _ in poll.poll(0.1 if epoll else 100)], 0, 0)
    for each in ready:
        if each is listener:
            client, _ = listener.accept()
            client.setblocking(not epoll)
            poll.register(client, select.POLLIN)
            clients[client] = 0
        elif each.recv(100):
            clients[each] = time.monotonic() + wait
            wait = 6
        else:
            poll.unregister(each)
            del clients[each]
    for client, due in clients.items():
        if due and due < time.monotonic():
            client.sendall(b"a" * 100)
            clients[client] = 0
"""


@pytest.mark.parametrize("how", ["select", "poll", "epoll"])
def test_an_event_loop_with_a_request_in_hand_is_idle(exporter, start, connect, how):
    """
    Although its connections block (with epoll its set is small): it waits for new ones, and for those
    of other clients, too. The first request is answered at once: until then nobody knows that it answers any.
    """
    name, port = unique_name("loop"), free_port()
    start(servers.Server, name, [python_link(name), "-c", LOOP, port, how])
    exporter.wait_until(lambda s: s.rows("workload_connections", workload=name))
    clients = [connect(port) for _ in range(2)]
    exchange(clients[1])
    clients[0].sendall(REQUEST)
    serves(exporter, port, 1)
    before = exporter.scrape()
    time.sleep(WINDOW_SECONDS)
    after = exporter.scrape()
    assert in_service(after, port) == 1
    change = PoolChange(before, after, name, name, 1)
    assert change.seconds("network") == change.seconds("wait") == 0
    assert change.seconds("idle") > 0
    receive(clients[0])


@pytest.mark.times
@pytest.mark.parametrize("options", [{}, {"upstream_poll": 1}, {"upstream_read": 1}], ids=str)
def test_a_database_behind_a_pool_is_network_however_it_is_read(exporter, start, options):
    upstream = start(Service, "pool_server", workers=4, service_us=50000)
    server = start(
        Service, "pool_server", workers=4, upstream_port=upstream.port, **options
    )
    exporter.workload_of(server.port)
    load = start(Load, server.port, clients=4)
    exporter.wait_until(lambda s: Endpoint(s, server.port).counts()[0] >= 8)
    utilization = Utilization(exporter, server, 4, seconds=3)
    assert load.interrupt()["errors"] == 0
    utilization.check("network")


@pytest.mark.times
def test_streams_are_in_service_as_long_as_the_histogram_says(exporter, start):
    """Little's law: clients in a closed loop, whose answers come in four pieces from an upstream."""
    piece = "take:recv,write:25"
    script = f"read:100,write:25,{piece},{piece},{piece},loop"
    server = start(Service, "talker", script=script, feed_ms=20)
    exporter.workload_of(server.port)
    load = start(Load, server.port, clients=16, keep_alive=1, rate=100)
    exporter.wait_until(lambda s: Endpoint(s, server.port).counts()[0] >= 16)
    begin, gauges = exporter.scrape(), []
    for _ in range(12):
        time.sleep(1.05)
        end = exporter.scrape()
        gauges.append(in_service(end, server.port))
    assert load.interrupt()["errors"] == 0
    sums = [Endpoint(s, server.port).seconds("service") for s in (begin, end)]
    law = (sums[1] - sums[0]) / (end.at - begin.at)
    # Five of 16 clients on average, give or take two: of 12 looks the mean is within 12 % as a rule.
    assert sum(gauges) / len(gauges) == pytest.approx(law, rel=0.3), gauges


def test_a_blocking_read_of_java_is_network(exporter, start, connect):
    """Four requests to a pool of four, whose database answers none of them for seconds."""
    upstream = start(Service, "pool_server", workers=4, service_us=4000000)
    java = start(JavaPool, 4, upstream.port)
    workload = exporter.workload_of(java.port)
    clients = [connect(java.port) for _ in range(4)]
    for client in clients:
        client.sendall(REQUEST)
    pool = "pool-#-thread-#"
    exporter.wait_for_equal(lambda s: Pool(s, workload, pool).threads("network"), 4)
    for client in clients:
        receive(client)
    exporter.wait_for_equal(lambda s: Pool(s, workload, pool).threads("idle"), 4)


@pytest.mark.bounds
def test_who_is_parked_in_a_request_is_idle_from_its_end_on(exporter, talk):
    """Another thread answers, and nobody wakes the one that has read it; nor looks at the time."""
    case = talk("read:100,stream:50,wait")
    workload = exporter.workload_of(case.port)
    begin = time.monotonic()
    case.client.sendall(REQUEST)
    parked = exporter.wait_until(lambda s: talkers(s, workload, "wait") == 1 and s).ended
    time.sleep(WINDOW_SECONDS)
    least = time.monotonic() - parked
    for _ in range(3):
        case.server.ask("feed")
        receive(case.client, HEAD_BYTES)
    end = time.monotonic()
    time.sleep(2 * WINDOW_SECONDS)
    after = exporter.scrape()
    assert talkers(after, workload, "idle") == 1
    assert least <= Pool(after, workload, "talker-#").seconds("wait") <= end - begin + LATE_SECONDS
    assert Pool(after, workload, "talker-#").seconds("idle") > WINDOW_SECONDS
    case.server.ask("go")


def test_threads_that_run_tasks_do_not_wait_with_a_request(exporter, start):
    """Eight clients at a mutex of goroutines, and then none."""
    server = start(Tasks)
    workload = exporter.workload_of(server.port)
    # That they run tasks is known by the executable, which is asked for again where it was read too late.
    exporter.wait_until(lambda s: [row[0]["runtime"] for row in s.rows("workload_info", workload=workload)] == ["go"])
    load = start(Load, server.port, clients=8, keep_alive=1)
    before = exporter.wait_until(lambda s: Endpoint(s, server.port).counts()[0] >= 100 and s)
    time.sleep(2 * WINDOW_SECONDS)
    after = exporter.scrape()
    change = PoolChange(before, after, workload, workload, 1)
    assert change.seconds() > 4 * WINDOW_SECONDS, "it has threads"
    assert change.seconds("wait") == 0
    assert load.interrupt()["errors"] == 0
    exporter.wait_until(lambda s: not Endpoint(s, server.port).gauges()[3])
    rest = exporter.scrape()
    time.sleep(WINDOW_SECONDS)
    change = PoolChange(rest, exporter.scrape(), workload, workload, 1)
    assert change.seconds("wait") == change.seconds("network") == 0
    assert change.seconds("idle") > 0
