# SPDX-License-Identifier: Apache-2.0
"""Who serves: a thread that has read or answered a request, and nobody else of its name."""

import subprocess
import time

import pytest

from clients import REQUEST, exchange, receive
from exposition import Pool
from services import Load, Process, Service, free_port, python_link, unique_name


def threads(workload, *pools):
    """What a scrape says of the numbers of threads: {(pool, role): threads}."""

    def see(scrape):
        found = {
            (pool, role): Pool(scrape, workload, pool, role=role).threads()
            for pool in pools
            for role in ("serving", "other")
        }
        return {key: number for key, number in found.items() if number}

    return see


def test_a_worker_serves_from_its_first_request_on(exporter, start, connect):
    server = start(Service, "pool_server", workers=3)
    workload = exporter.workload_of(server.port)
    see = threads(workload, "worker-#")
    exporter.wait_for_equal(see, {("worker-#", "other"): 3})
    exchange(connect(server.port))
    exporter.wait_for_equal(see, {("worker-#", "serving"): 1, ("worker-#", "other"): 2})
    time.sleep(0.5)
    assert see(exporter.scrape()) == {("worker-#", "serving"): 1, ("worker-#", "other"): 2}


def test_what_a_thread_did_before_its_first_request_stays_where_it_was(exporter, start, connect):
    """And the two roles together are all of its time."""
    server = start(Service, "pool_server", workers=1)
    workload = exporter.workload_of(server.port)
    exporter.wait_for_equal(threads(workload, "worker-#"), {("worker-#", "other"): 1})
    time.sleep(1)
    exchange(connect(server.port))
    first = exporter.wait_for_equal(threads(workload, "worker-#"), {("worker-#", "serving"): 1})
    time.sleep(1)
    last = exporter.scrape()
    other = Pool(last, workload, "worker-#", role="other")
    serving = Pool(last, workload, "worker-#", role="serving")
    assert other.seconds() == Pool(first, workload, "worker-#", role="other").seconds() > 1
    assert 1 < serving.seconds() < last.at - first.at + 1
    assert other.get("workload_threads_exited_total") == 1
    assert serving.get("workload_threads_started_total") == 1


def test_acceptors_and_masters_are_other(exporter, start):
    queue = start(Service, "pool_server", workers=4, mode="queue")
    prefork = start(Service, "forker", children=3)
    names = [exporter.workload_of(server.port) for server in (queue, prefork)]
    for server in (queue, prefork):
        load = start(Load, server.port, clients=8, requests=800, keep_alive=0)
        assert load.finish()["errors"] == 0
    exporter.wait_for_equal(
        threads(names[0], "worker-#", "acceptor-#"),
        {("worker-#", "serving"): 4, ("acceptor-#", "other"): 1},
    )
    exporter.wait_for_equal(
        threads(names[1], names[1]), {(names[1], "serving"): 3, (names[1], "other"): 1}
    )


HANDS_OVER = """
import queue, socket, sys, threading
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
read = queue.Queue()
def answer():
    while True:
        read.get().sendall(b"x" * 100)
threading.Thread(target=answer, daemon=True).start()
print("ready", flush=True)
client, _ = listener.accept()
while client.recv(100):
    read.put(client)
sys.stdin.read()
"""


def python(start, program):
    """The port of a service that is a Python program, with a name that no other one has."""
    port = free_port()
    command = [python_link(unique_name("python")), "-c", program, port]
    server = start(Process, command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.process.stdout.readline() == b"ready\n"
    return port


def roles(workload):
    """What a scrape says of the numbers of threads, whatever their names: {role: threads}."""

    def see(scrape):
        return {
            role: scrape.sum("workload_threads", workload=workload, role=role)
            for role in ("serving", "other")
        }

    return see


def test_who_answers_what_another_thread_has_read_serves_too(exporter, start, connect):
    port = python(start, HANDS_OVER)
    workload = exporter.workload_of(port)
    client = connect(port)
    exporter.wait_for_equal(roles(workload), {"serving": 0, "other": 2})
    client.sendall(REQUEST)
    receive(client)
    exporter.wait_for_equal(roles(workload), {"serving": 2, "other": 0})


FORKS = """
import os, socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("ready", flush=True)
client, _ = listener.accept()
client.recv(100)
if not os.fork():
    os.read(0, 1)
    os._exit(0)
client.sendall(b"x" * 100)
os.wait()
"""


def test_a_child_of_a_thread_that_serves_is_other(exporter, start, connect):
    port = python(start, FORKS)
    workload = exporter.workload_of(port)
    exchange(connect(port))
    exporter.wait_for_equal(roles(workload), {"serving": 1, "other": 1})


@pytest.mark.parametrize("backend", ["socket", "syscall"])
def test_the_role_is_told_by_both_backends(exporters, start, backend):
    with_backend = exporters(f"--requests.backend={backend}")
    server = start(Service, "pool_server", workers=2, mode="queue")
    workload = with_backend.workload_of(server.port)
    assert start(Load, server.port, clients=4, requests=200, keep_alive=0).finish()["errors"] == 0
    with_backend.wait_for_equal(
        threads(workload, "worker-#", "acceptor-#"),
        {("worker-#", "serving"): 2, ("acceptor-#", "other"): 1},
    )
