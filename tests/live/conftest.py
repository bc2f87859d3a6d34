# SPDX-License-Identifier: Apache-2.0
"""
Fixtures of the live tests: one exporter for all of them, and services that end with their test.

The machine runs other processes too: a test looks only at ports and workloads that it started.
"""

import shutil
import socket
from types import SimpleNamespace

import pytest

pytest.register_assert_rewrite(
    "exporter", "services", "clients", "exposition", "profiles", "prometheus", "utilization", "web"
)

import services
from exporter import SLOWER, Exporter


@pytest.fixture(scope="session")
def exporter():
    # Short enough that a scrape does not carry the services of all tests before.
    with Exporter(f"--workloads.grace-period={10 * SLOWER}s") as running:
        yield running
        assert running.stop() == 0


@pytest.fixture(scope="session")
def profiling():
    """A further one for all tests of profiles, which takes them."""
    with Exporter("--collector.profiles", f"--workloads.grace-period={10 * SLOWER}s") as running:
        yield running
        assert running.stop() == 0


@pytest.fixture(scope="session", autouse=True)
def scratch():
    yield
    shutil.rmtree(services.SCRATCH, ignore_errors=True)


@pytest.fixture
def start():
    """start(Kind, ...) starts a service or a load that ends with the test at the latest."""
    with services.starter() as function:
        yield function


@pytest.fixture(scope="module")
def start_for_module():
    """The same for the tests of one file together."""
    with services.starter() as function:
        yield function


@pytest.fixture
def connect():
    """connect(port) is a connection that is closed with the test at the latest."""
    opened = []

    def function(port, address="127.0.0.1"):
        opened.append(socket.create_connection((address, port), 10))
        opened[-1].setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return opened[-1]

    yield function
    for connection in opened:
        connection.close()


def _exporters():
    running = []

    def function(*arguments, **options):
        running.append(Exporter(*arguments, **options))
        return running[-1]

    def stop_all():
        for exporter in running:
            exporter.stop()

    return function, stop_all


@pytest.fixture
def exporters():
    """exporters(...) starts a further exporter that ends with the test at the latest."""
    function, stop_all = _exporters()
    yield function
    stop_all()


@pytest.fixture(scope="module")
def exporters_for_module():
    """The same for the tests of one file together."""
    function, stop_all = _exporters()
    yield function
    stop_all()


@pytest.fixture
def talk(exporter, start, connect):
    """talk(script) is a talker whose endpoint starts at zero, and a connection to it."""

    def function(script, **options):
        server = start(services.Service, "talker", script=script, **options)
        exporter.workload_of(server.port)
        return SimpleNamespace(server=server, port=server.port, client=connect(server.port))

    return function
