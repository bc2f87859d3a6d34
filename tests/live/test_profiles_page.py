# SPDX-License-Identifier: Apache-2.0
"""
The page of profiles: its arguments, its formats, how many at once, and what is left of them; and
what may ask and what serves.
"""

import contextlib
import re
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import profiles
from exporter import BUILD, bound
from profiles import HZ, PERIOD_NS, ask, path_of, take, take_pprof, wait_until_read
from services import Service, status_of, wait_until
from web import basic, bcrypt

SECONDS = 10
AT_ONCE = 32


@pytest.fixture
def burner(profiling, start):
    service = start(Service, "burner", rest_us=500)
    assert profiling.workload_of(service.port) == service.name
    return service


def at_once(*functions):
    """What they return that are called at the same time."""
    with ThreadPoolExecutor(len(functions)) as threads:
        return [result.result() for result in [threads.submit(each) for each in functions]]


def wait_for_samples(exporter):
    """Until some are taken; the kernel keeps statistics()."""
    before = profiles.runs(exporter)
    wait_until(lambda: profiles.runs(exporter) > before, SECONDS, "no sample is taken")


def expect_no_samples(exporter, burner):
    """None is taken while there is what to sample: 30 that were due."""
    before = profiles.runs(exporter)
    until = profiles.cpu_seconds(burner.pid) + 30 / HZ
    wait_until(lambda: profiles.cpu_seconds(burner.pid) > until, SECONDS, "it has no CPU time")
    assert profiles.runs(exporter) == before


# --- what is asked for ------------------------------------------------------------------------------


@pytest.mark.bounds
def test_a_workload_is_told_apart_from_others_and_all_of_them_by_their_names(
    profiling, start, burner
):
    other = start(Service, "burner")
    profiling.workload_of(other.port)
    one, two, both = at_once(
        lambda: take(profiling, workload=burner.name),
        lambda: take(profiling, workload=other.name),
        lambda: take(profiling),
    )
    assert one.workloads == {burner.name}
    assert two.workloads == {other.name}
    assert both.workloads >= {burner.name, other.name}
    for alone in one, two:
        (workload,) = alone.workloads
        expect_alike(alone.samples, both.of(workload).samples)


def expect_alike(one, two):
    """Two that were taken at almost the same time."""
    assert one > 10
    assert abs(one - two) <= bound(5 + 0.1 * one, 10 + 0.3 * one), (one, two)


def test_a_workload_that_is_none_has_no_profile(profiling, burner):
    status, _, body = ask(profiling.port, seconds=1, workload=burner.name + "x")
    assert (status, body) == (404, b"no workload has this name: / lists them\n")


@pytest.mark.bounds
def test_both_formats_tell_the_same(profiling, burner):
    wait_until_read(profiling, burner.name)
    folded, pprof = at_once(
        lambda: take(profiling, workload=burner.name),
        lambda: take_pprof(profiling, workload=burner.name),
    )
    expect_alike(folded.samples, pprof.samples)
    assert folded.totals().keys() == pprof.totals().keys()
    for profile in folded, pprof:
        assert {stack.state for stack in profile.stacks} == {"running"}
        assert {stack.pool for stack in profile.stacks} == {burner.name}
        assert profile.calling("main", "worker", "slice_burn", "burn_most", "spin") > 0
        profile.expect_complete()


def test_pprof_reads_what_was_sampled_when_how_long_and_of_which_builds(profiling, burner):
    before = time.time()
    profile = take_pprof(profiling, workload=burner.name)
    assert profile.types == ["samples/count", "cpu/nanoseconds"]
    assert profile.period == ("cpu nanoseconds", PERIOD_NS)
    assert before <= profile.began.timestamp() <= time.time() - profile.duration
    assert 2 <= profile.duration < bound(2.1, 3)
    assert all(stack.ns == stack.count * PERIOD_NS for stack in profile.stacks)
    files = {mapping.path: mapping.build_id for mapping in profile.mappings}
    paths = {path for path in files if path.startswith("/")}
    assert str(burner.path) in paths
    assert any(re.search(r"/libc\.so\.6$", path) for path in paths)
    assert {path: files[path] for path in paths} == {p: profiles.build_id(p) for p in paths}


def test_two_at_once_are_as_long_as_each_was_asked_to_be(profiling, burner):
    short, long = at_once(
        lambda: take_pprof(profiling, 1, workload=burner.name),
        lambda: take_pprof(profiling, 3, workload=burner.name),
    )
    assert 1 <= short.duration < bound(1.1, 2)
    assert 3 <= long.duration < bound(3.1, 4)
    # Each has all samples of its time: a process that computes has at most one each period.
    for profile in short, long:
        assert profile.samples <= HZ * profile.duration + 2
    assert long.samples > short.samples


WRONG = [
    *("seconds=0", "seconds=61", "seconds=-1", "seconds=1.5", "seconds=", "seconds=x"),
    *("seconds=18446744073709551617", "seconds=+1", "seconds=1&seconds=0"),
    *("format=", "format=text", "format=folded%20", "seconds=1&format=PPROF"),
]


@pytest.mark.parametrize("arguments", WRONG)
def test_arguments_that_are_wrong_are_refused(profiling, arguments):
    status, _, body = profiling.request(f"{profiles.PATH}?{arguments}")
    assert status == 400
    assert body


def test_only_get_takes_a_profile(profiling):
    assert profiling.request(profiles.PATH, method="POST")[0] == 405


# --- how many, and how they end ---------------------------------------------------------------------


def test_one_more_than_there_is_room_for_is_refused(profiling, burner):
    def status():
        return ask(profiling.port, seconds=2, workload=burner.name)[0]

    statuses = at_once(*[status] * (AT_ONCE + 1))
    assert sorted(statuses) == [200] * AT_ONCE + [503]
    assert ask(profiling.port, seconds=1)[0] == 200


@contextlib.contextmanager
def asking(exporter, number=1):
    """Connections on which profiles of a minute are asked for."""
    with contextlib.ExitStack() as stack:
        request = f"GET {path_of(seconds=60)} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
        for _ in range(number):
            client = socket.create_connection(("127.0.0.1", exporter.port), 10)
            stack.enter_context(client).sendall(request)
        yield


def test_the_clock_runs_only_while_a_profile_is_taken(profiling, burner):
    with profiles.statistics():
        expect_no_samples(profiling, burner)
        with asking(profiling):
            wait_for_samples(profiling)
            assert profiling.request()[0] == 200
        at_rest = [profiles.runs(profiling)]
        wait_until(
            lambda: at_rest.append(profiles.runs(profiling)) or at_rest[-1] == at_rest[-2],
            SECONDS,
            "the clock runs although the client has gone",
        )
        expect_no_samples(profiling, burner)
        wait_until_read(profiling, burner.name)
        expect_no_samples(profiling, burner)


def test_clients_that_go_make_room_for_others(profiling, burner):
    with profiles.statistics(), asking(profiling, AT_ONCE):
        wait_for_samples(profiling)
    profiling.wait_until(lambda _: ask(profiling.port, seconds=1, format="folded")[0] == 200)


def test_it_ends_with_success_although_a_profile_is_taken(exporters, burner):
    exporter = exporters("--collector.profiles")
    with profiles.statistics(), asking(exporter):
        wait_for_samples(exporter)
        assert exporter.stop() == 0


# As in test_sanitized.py: leaks cannot be looked for within the sandbox.
@pytest.mark.parametrize("sandbox, leaks", [("off", 1), ("on", 0)], ids=["leaks", "sandbox"])
def test_sanitizers_report_nothing(exporters, burner, monkeypatch, sandbox, leaks):
    monkeypatch.setenv("ASAN_OPTIONS", f"detect_leaks={leaks}:exitcode=99")
    exporter = exporters(
        "--collector.profiles",
        f"--security.sandbox={sandbox}",
        binary=BUILD / "asan" / "workload_exporter",
    )
    at_once(lambda: take(exporter, 1), lambda: take_pprof(exporter, 1))
    wait_until_read(exporter, burner.name)
    take(exporter, 3, workload=burner.name).expect_complete()
    with profiles.statistics(), asking(exporter):
        wait_for_samples(exporter)
    with profiles.statistics(), asking(exporter):
        wait_for_samples(exporter)
        assert exporter.stop() == 0
    # "CHECK failed" is another thing: the parser's sandbox forbids what the sanitizer does at an end.
    assert not [line for line in exporter.log if line and re.search("ERROR: |runtime error", line)]


@pytest.mark.long
def test_memory_is_given_back(profiling, burner):
    """What leaks is of each profile: as many as may be are taken until they leave nothing."""

    def all_at_once():
        at_once(*[lambda: take(profiling, 1, workload=burner.name)] * AT_ONCE)

    profiling.expect_no_growth(all_at_once, 96)


# --- what may ask, and what serves ------------------------------------------------------------------

FAR = "10.99.88.77"
IN_A_NETWORK = ["unshare", "--net", "sh", "-c"] + [
    f'ip link set lo up && ip addr add {FAR}/32 dev lo && exec "$@"', "sh"
]  # fmt: skip


PAGES = [path_of(seconds=1), "/debug/targets", "/flame", "/flame.css", "/flame.js"]


def status_from(exporter, host, *options, page=PAGES[0]):
    """Of a request within the network of @exporter."""
    url = f"http://{host}:{exporter.port}{page}"
    done = subprocess.run(
        ["nsenter", f"--target={exporter.pid}", "--net", "curl", "--silent", "--max-time", "60"]
        + ["--output", "/dev/null", "--write-out", "%{http_code}", *options, url],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return int(done.stdout)


def test_others_than_the_machine_itself_need_a_password(exporters, tmp_path):
    options = {"launcher": IN_A_NETWORK, "address": ":0"}
    exporter = exporters("--collector.profiles", **options)
    for page in PAGES:
        assert status_from(exporter, "127.0.0.1", page=page) == 200
        assert status_from(exporter, FAR, page=page) == 403
    exporter.stop()
    config = tmp_path / "web.yml"
    config.write_text(f"basic_auth_users:\n  prometheus: {bcrypt('right')}\n")
    exporter = exporters("--collector.profiles", f"--web.config.file={config}", **options)
    assert status_from(exporter, FAR) == 401
    assert status_from(exporter, "127.0.0.1") == 401
    (header,) = (f"{name}: {value}" for name, value in basic("prometheus", "right").items())
    assert status_from(exporter, FAR, "--header", header) == 200


CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE = 1 << 2, 1 << 19


def expect_confined(exporter, opener):
    """What each of its processes may do; @opener: what the one that opens files may."""
    processes = profiles.family(exporter.pid)
    assert {"opener", "parser"} <= processes.keys()
    for name, pids in processes.items():
        for pid in pids:
            status = status_of(pid)
            may = {"namer": CAP_SYS_PTRACE, "opener": opener}.get(name.split("-")[0], 0)
            assert status["Seccomp"] == "2", name
            assert status["NoNewPrivs"] == "1", name
            assert int(status["CapPrm"], 16) == may, name
            assert int(status["CapEff"], 16) == may & CAP_SYS_PTRACE, name


def test_what_takes_profiles_is_in_the_sandbox(profiling, burner):
    """The one that opens files may look at others, the one that reads them may do nothing."""
    wait_until_read(profiling, burner.name)
    expect_confined(profiling, CAP_SYS_PTRACE)


def test_what_opens_private_maps_may_come_to_read_all_and_nothing_else_may(exporters, burner):
    exporter = exporters("--collector.profiles", "--profiles.private-perf-maps")
    wait_until_read(exporter, burner.name)
    expect_confined(exporter, CAP_SYS_PTRACE | CAP_DAC_READ_SEARCH)


def test_private_maps_without_profiles_or_the_right_are_said_to_be_none(exporters):
    alone = exporters("--profiles.private-perf-maps")
    alone.wait_for_log(r"--profiles\.private-perf-maps: .*--collector\.profiles")
    prefix = ["setpriv", "--bounding-set=-dac_read_search", "--inh-caps=-dac_read_search"]
    weak = exporters("--collector.profiles", "--profiles.private-perf-maps", launcher=prefix)
    weak.wait_for_log(r"--profiles\.private-perf-maps: .*CAP_DAC_READ_SEARCH")


def test_without_the_flag_there_is_no_page_no_process_and_no_program(exporter, profiling):
    for page in PAGES:
        assert exporter.request(page)[0] == 404
    assert not {"opener", "parser"} & profiles.family(exporter.pid).keys()
    assert profiles.sampler(exporter) is None
    assert profiles.sampler(profiling)
