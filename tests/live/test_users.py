# SPDX-License-Identifier: Apache-2.0
"""Whose a name is: what people start under the name of another's service is not counted as that."""

import contextlib

import pytest

from cgroups import HIERARCHIES, cgroup, inside, mounted
from clients import exchange_once
from services import Process, Service, own_copy, unique_name

# Slices of one name: who is in another test's is no user of its own.
pytestmark = pytest.mark.xdist_group("user slices")

PEOPLE = (4242, 4243)
FOR_SERVICES = 142
SLICE = "user.slice/user-4242.slice"


def as_user(uid):
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]


def requests(scrape, workload):
    return scrape.sum("workload_request_queue_seconds_count", workload=workload)


def user_and_unit(scrape, workload):
    (row,) = scrape.rows("workload_info", workload=workload)
    return row[0]["user"], row[0]["unit"]


@pytest.fixture(params=HIERARCHIES)
def hierarchy(request):
    """The root of a hierarchy; what was started in it ends before it is left."""
    with contextlib.ExitStack() as stack:
        mount = stack.enter_context(mounted(request.param))
        yield lambda path: inside(stack.enter_context(cgroup(mount, path)))


@pytest.fixture
def start_inside(hierarchy, start):  # in this order: processes end before their cgroups
    """start_inside(path, Kind, ...) starts one in the cgroup @path."""
    return lambda path, *arguments, prefix=(), **options: start(
        *arguments, prefix=[*hierarchy(path), *prefix], **options
    )


def test_programs_of_one_name_are_apart_by_the_people_who_run_them(
    exporter, exporters, start, connect
):
    """Whoever comes first. An account for services has the plain name, as root has."""
    name = unique_name("server")
    started = {}
    for count, uid in enumerate((PEOPLE[0], 0, PEOPLE[1], FOR_SERVICES), 1):
        server = started[uid] = start(Service, "pool_server", name=name, prefix=as_user(uid))
        exporter.workload_of(server.port)
        for _ in range(count):
            exchange_once(connect(server.port))
    expected = {f"user@{PEOPLE[0]}/{name}": 1, name: 2 + 4, f"user@{PEOPLE[1]}/{name}": 3}
    scrape = exporter.wait_for_equal(lambda s: {w: requests(s, w) for w in expected}, expected)
    shown = {labels["workload"] for labels, _ in scrape.rows("workload_info")}
    assert {workload for workload in shown if name in workload} == set(expected)
    for uid in PEOPLE:
        assert user_and_unit(scrape, f"user@{uid}/{name}") == (str(uid), "")
    assert user_and_unit(scrape, name) == ("0", "")
    later = exporters()
    for uid, server in started.items():
        assert later.workload_of(server.port) == (f"user@{uid}/{name}" if uid in PEOPLE else name)


def test_who_has_ended_before_it_was_looked_at_is_its_user_s_too(exporter, start):
    name = unique_name("short")
    program = own_copy("short_lived", name)
    start(Process, [*as_user(PEOPLE[0]), program, "--children=20"]).process.wait(20)
    scrape = exporter.wait_until(
        lambda s: s.rows("workload_info", workload=f"user@{PEOPLE[0]}/{name}")
    )
    assert not scrape.rows("workload_info", workload=name)


def test_a_unit_is_the_system_s_only_where_the_system_has_put_it(
    start_inside, exporters, connect
):
    unit = unique_name("unit")
    exporter = exporters()
    places = {
        f"system.slice/{unit}.service": ((0, FOR_SERVICES, PEOPLE[0]), unit),
        f"{SLICE}/user@4242.service/app.slice/{unit}.service": (PEOPLE[:1], f"user@4242/{unit}"),
        f"{SLICE}/user@4242.service/user-0.slice/{unit}.service": (
            PEOPLE[:1],
            f"user@4242/{unit}",
        ),
    }
    expected = {}
    for path, (uids, workload) in places.items():
        for uid in uids:
            server = start_inside(path, Service, "pool_server", prefix=as_user(uid))
            exchange_once(connect(server.port))
            assert exporter.workload_of(server.port) == workload
            expected[workload] = expected.get(workload, 0) + 1
    scrape = exporter.wait_for_equal(lambda s: {w: requests(s, w) for w in expected}, expected)
    assert user_and_unit(scrape, unit) == ("0", f"{unit}.service")
    assert user_and_unit(scrape, f"user@4242/{unit}") == ("4242", f"user@4242/{unit}.service")


def test_what_looks_like_a_container_below_a_user_is_that_user_s(start_inside, exporters):
    container = "0123456789ab" + "c" * 52
    exporter = exporters()
    for path, workload in {
        f"system.slice/docker-{container}.scope": "0123456789ab",
        f"{SLICE}/user@4242.service/docker-{container}.scope": "user@4242/0123456789ab",
    }.items():
        server = start_inside(path, Service, "pool_server", prefix=as_user(PEOPLE[0]))
        assert exporter.workload_of(server.port) == workload
        (row,) = exporter.scrape().rows("workload_info", workload=workload)
        assert row[0]["container"] == workload


def test_root_in_somebody_s_session_is_root(start_inside, exporters):
    exporter = exporters()
    path = f"{SLICE}/session-3.scope"
    server = start_inside(path, Service, "pool_server")
    assert exporter.workload_of(server.port) == server.name
    other = start_inside(path, Service, "pool_server", prefix=as_user(PEOPLE[0]))
    assert exporter.workload_of(other.port) == f"user@4242/{other.name}"
