# SPDX-License-Identifier: Apache-2.0
"""
CPU profiles of programs that are known: whose functions they are, how much each has, and that
stacks are followed to their ends. (test_profiles_page.py has the page.)
"""

import os
import re
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import profiles
from databases import POSTGRESQL, PostgreSQL
from exporter import bound
from prometheus import Prometheus
from profiles import HZ, SIGMAS, at_least, begun, expect_shares, take, take_pprof, wait_until_read
from servers import HttpLoad
from services import (
    WORKLOADS,
    Nginx,
    Process,
    Redis,
    Service,
    own_copy,
    own_go,
    program_copy,
    unique_name,
    wait_until,
)

BURNS = {"most_ns": "burn_most", "some_ns": "burn_some", "least_ns": "burn_least"}
DEMANGLING_SECONDS = 10  # that it may take for a file
THROWS = {"throwing_ns": "burn_throwing", "alloca_ns": "burn_alloca", "plain_ns": "burn_plain"}


def burned(pid, seconds=0.2):
    """Waits until a process has had so much more CPU time."""
    until = profiles.cpu_seconds(pid) + seconds
    wait_until(lambda: profiles.cpu_seconds(pid) > until, 60, "it has no CPU time")


def in_source(path, name):
    """The one function of a C++ program that is called so, as it is in the source."""
    (found,) = (
        text
        for text in profiles.functions(path)
        if re.search(rf"(^|::){name}$", text) and not re.search(r"[<{]", text)
    )
    return found


# --- how often, and where ---------------------------------------------------------------------------


@pytest.mark.parametrize("program", ["burner", "burner_static", "burner_musl"])
def test_functions_have_the_shares_of_time_that_they_have_measured(profiling, start, program):
    burner = start(Service, program, threads=1)
    wait_until_read(profiling, profiling.workload_of(burner.port))
    before = burner.ask("stats")
    profile = take(profiling, 3, workload=burner.name)
    expect_shares(profile, before, burner.ask("stats"), BURNS)
    profile.expect_complete()
    for function in BURNS.values():
        alone = profile.where(lambda stack: function in stack.frames)
        by_main = profile.calling("main", "worker", "slice_burn", function)
        by_thread = profile.calling("thread_run", "worker", "slice_burn", function)
        assert by_main + by_thread == alone
        if function == BURNS["most_ns"]:  # of few samples one of the threads may have none
            assert by_main > 0 and by_thread > 0
        spins = profile.where(lambda stack: stack.frames[-2:] == (function, "spin"))
        assert alone - spins <= max(1, 0.05 * alone)


class CpuTime:
    """What a process has had of it, told at times of the clock of the day."""

    def __init__(self, pid):
        self.pid, self.told, self.is_over = pid, [], False

    def watch(self):
        while not self.is_over:
            self.told.append((time.time(), profiles.cpu_seconds(self.pid)))
            time.sleep(0.01)

    def at(self, when):
        return min(self.told, key=lambda told: abs(told[0] - when))[1]

    def between(self, begin, seconds):
        return self.at(begin + seconds) - self.at(begin)


def test_there_are_as_many_samples_as_there_was_cpu_time(profiling, start):
    burner = start(Service, "burner", threads=1)
    profiling.workload_of(burner.port)
    with ThreadPoolExecutor(1) as thread:
        spent = CpuTime(burner.pid)
        thread.submit(spent.watch)
        try:
            profile = take_pprof(profiling, 3, workload=burner.name)
        finally:
            spent.is_over = True
    expected = HZ * spent.between(profile.began.timestamp(), profile.duration)
    off = (profile.samples - expected) / expected**0.5
    print(f"samples {profile.samples}, expected {expected}, off by {off} sigmas")
    assert abs(off) < SIGMAS


def endless_name():
    """Of a function in C++, f<A, B<A, A>, B<B<A, A>, B<A, A>>, ...>: of 2^40 bytes in the source."""
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"

    def part(i):
        return "S" + (digits[(i - 1) // 36] if i > 36 else "") + digits[(i - 1) % 36] + "_"

    pairs = (part(2) + "I" + part(i) * 2 + "E" for i in range(3, 40))
    return "_Z1fI1A1BIS0_S0_E" + "".join(pairs) + "Evv"


def test_a_name_that_stands_for_a_text_without_end_is_shown_as_linked(profiling, start, tmp_path):
    """And so are all names of that file: what reads it is ended once, after a while."""
    renamed = [f"--redefine-sym=burn_most={endless_name()}", "--redefine-sym=burn_some=_Z4somev"]
    path = tmp_path / unique_name("endless")
    subprocess.run(["objcopy", *renamed, WORKLOADS / "burner", path], check=True)
    burner = start(Service, path)
    workload = profiling.workload_of(burner.port)
    began = time.monotonic()
    wait_until_read(profiling, workload)
    assert time.monotonic() - began >= DEMANGLING_SECONDS
    # One that is ended needs a CPU for that, and gives way to all else.
    reads = set(profiles.family(profiling.pid)["parser-reader"])
    profile = take(profiling, 2, workload=workload)
    assert set(profiles.family(profiling.pid)["parser-reader"]) <= reads, "it is ended once more"
    assert profile.calling("main", "worker", "slice_burn", endless_name(), "spin") > 0
    assert profile.calling("main", "worker", "slice_burn", "_Z4somev", "spin") > 0
    profile.expect_complete()


def test_functions_of_cpp_have_the_shares_of_time_that_they_have_measured(profiling, start):
    """They throw through frames, have stacks of changing size, and are called by std::function."""
    thrower = start(Service, "thrower", threads=1)
    wait_until_read(profiling, profiling.workload_of(thrower.port))
    names = {name: in_source(thrower.path, name) for name in [*THROWS.values(), "work", "spin"]}
    before = thrower.ask("stats")
    profile = take(profiling, 3, workload=thrower.name)
    functions = {key: names[name] for key, name in THROWS.items()}
    expect_shares(profile, before, thrower.ask("stats"), functions)
    profile.expect_complete()
    (run,) = (name for name in profiles.functions(thrower.path) if name.endswith("::_M_run"))
    for function in functions.values():
        assert profile.calling("main", names["work"], function) > 0
        assert profile.calling(run, names["work"], function) > 0
    assert profile.calling(names["burn_alloca"], names["spin"]) > 0
    thrown = profile.where(
        lambda stack: stack.calls(names["burn_throwing"]) and "__cxa_throw" in stack.frames
    )
    assert thrown > 0


# For a Unicode boundary beside letters beyond ASCII the engine gives up its automata, and takes long.
PATTERN = r"\b(\w+\s+){4}\d\b"
LINE = "the quick brown fox jümps over the lazy dog\n"
FILES = 2000


class Grep(Process):
    """ripgrep, a program in Rust, by the child of a process that listens; by two threads."""

    def __init__(self, directory):
        text = directory / "text"
        text.write_text(LINE * 20000)
        for i in range(FILES):
            os.link(text, directory / f"text{i}")
        self.shell = unique_name("shell")
        self.path = program_copy("rg", unique_name("rg"))
        command = f"{self.path} --count -j 2 '{PATTERN}' {directory}; exit 1"
        super().__init__(
            [WORKLOADS / "wrapper", 0, program_copy("dash", self.shell), "-c", command],
            stdout=subprocess.DEVNULL,
        )


def functions_begin(path):
    """Where those of a program begin, by its frame information."""
    text = subprocess.run(
        ["readelf", "--debug-dump=frames", path], check=True, capture_output=True, text=True
    ).stdout
    return {int(begin, 16) for begin in re.findall(r"pc=([0-9a-f]+)\.\.", text)}


def test_a_stripped_program_in_rust_has_complete_stacks_and_the_begins_of_its_functions(
    profiling, start, tmp_path
):
    grep = start(Grep, tmp_path)
    profiling.wait_until(lambda s: s.sum("workload_threads", workload=grep.shell) >= 4)
    wait_until_read(profiling, grep.shell)
    profile = take(profiling, 3, workload=grep.shell)
    profile.expect_complete()
    own = f"{Path(grep.path).name}+"
    frames = {frame for stack in profile.stacks for frame in stack.frames if own in frame}
    assert frames
    assert {int(frame.removeprefix(own), 16) for frame in frames} <= functions_begin(grep.path)


# --- servers ----------------------------------------------------------------------------------------


def nginx(start, directory):
    server = start(Nginx, directory)
    start(HttpLoad, server.port, 4)
    return server


def redis(start, directory):
    server = start(Redis, directory)
    command = ["redis-benchmark", "-p", server.port, "-c", 4, "-n", 10**9, "-r", 1000, "-q"]
    start(Process, [*command, "-t", "set,get"], stdout=subprocess.DEVNULL)
    return server


def postgresql(start, directory):
    server = start(PostgreSQL)
    script = directory / "script"
    script.write_text("select sum(i) from generate_series(1, 2000) i;\n")
    options = ["-n", "-f", script, "-c", 2, "-T", 600, "-h", "127.0.0.1", "-p", server.port]
    start(
        Process,
        [POSTGRESQL / "pgbench", *options, "-U", "postgres", "postgres"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return server


# How each starts, which functions nearly all of its stacks are in, and one that some are in.
WORKER = ("main", "ngx_master_process_cycle", "ngx_process_events_and_timers")
BACKEND = ("main", "PostmasterMain", "PostgresMain")
SERVERS = {
    "nginx": (nginx, WORKER, "ngx_http_core_run_phases"),
    "redis": (redis, ("_start", "main"), "processCommand"),
    "postgresql": (postgresql, BACKEND, "standard_ExecutorRun"),
}


@pytest.mark.parametrize(
    "kind",
    ["nginx", "redis", pytest.param("postgresql", marks=pytest.mark.xdist_group("postgresql"))],
)
def test_stacks_of_servers_are_complete_and_begin_where_they_do(profiling, start, tmp_path, kind):
    begin, functions, inside = SERVERS[kind]
    server = begin(start, tmp_path)
    workload = profiling.workload_of(server.port)
    profiling.wait_until(
        lambda s: s.sum("workload_request_duration_seconds_count", port=server.port) > 100
    )
    wait_until_read(profiling, workload)
    profile = take(profiling, 3, workload=workload)
    profile.expect_complete()
    assert at_least(profile.calling(*functions), profile.samples, 0.9)
    # One sample in six or seven is, of Redis: of few of them none may be.
    assert profile.calling(*functions, inside) > 0 or profile.samples < 100


# --- Go ----------------------------------------------------------------------------------------------

GO_BURNS = {"most_ns": "main.burnMost", "some_ns": "main.burnSome", "least_ns": "main.burnLeast"}
GO_COMPLETE = 0.98
# How it is built, and what the end of a name is that its assembler has made.
GO_BUILDS = {
    "static": ({"CGO_ENABLED": "0"}, ".abi0"),
    "cgo": ({"CGO_ENABLED": "1"}, ".abi0"),
    "stripped": ({"GOFLAGS": "-ldflags=-s"}, ""),
}


@pytest.mark.parametrize("build", GO_BUILDS)
def test_functions_of_go_have_the_shares_of_time_that_they_have_measured(profiling, start, build):
    """Go describes its functions in a table of its own."""
    environment, suffix = GO_BUILDS[build]
    gophers = start(Service, own_go("gophers", **environment))
    wait_until_read(profiling, profiling.workload_of(gophers.port))
    before = gophers.ask("stats")
    profile = take(profiling, 3, workload=gophers.name)
    # The rest is its scheduler, whose idle threads look for work.
    expect_shares(profile, before, gophers.ask("stats"), GO_BURNS, least=0.8)
    profile.expect_complete(GO_COMPLETE)
    for function in GO_BURNS.values():
        alone = profile.calling(function)
        by_burn = profile.calling(f"runtime.goexit{suffix}", "main.burn", function, "main.spin")
        assert at_least(by_burn, alone, 0.95)


@pytest.mark.parametrize("build", ["cgo", "stripped"])
def test_stacks_of_go_go_on_where_its_runtime_changes_them(profiling, start, build):
    """What a goroutine has the runtime do on the stack of its thread is seen to be for it."""
    environment, suffix = GO_BUILDS[build]
    gophers = start(Service, own_go("gophers", **environment), garbage="true")
    wait_until_read(profiling, profiling.workload_of(gophers.port))
    profile = take(profiling, 3, workload=gophers.name)
    profile.expect_complete(GO_COMPLETE)
    begin = f"runtime.goexit{suffix}"
    assert profile.calling(begin, "main.litter", "main.makeGarbage") > 0
    on_threads = profile.calling(begin, f"runtime.systemstack{suffix}")
    assert on_threads > 0
    print(f"of {profile.samples} samples {on_threads} on the stack of a thread")


def test_stacks_of_prometheus_as_its_distribution_has_stripped_it(profiling, start, tmp_path):
    program = program_copy("prometheus", unique_name("prom"))
    server = start(Prometheus, tmp_path, [], program=program)
    start(HttpLoad, server.port)
    workload = profiling.workload_of(server.port)
    wait_until_read(profiling, workload)
    profile = take(profiling, 3, workload=workload)
    profile.expect_complete(GO_COMPLETE)
    # Beside what its runtime does, as the collection of garbage.
    served = profile.calling("runtime.goexit", "net/http.(*conn).serve")
    assert at_least(served, profile.samples, 0.2)


# --- what a process becomes -------------------------------------------------------------------------


def test_a_process_that_ends_is_in_the_profile_with_its_names(profiling, start):
    burner = start(Service, "burner")
    wait_until_read(profiling, profiling.workload_of(burner.port))
    profile = begun(take, profiling, 3)
    burned(burner.pid, 1)
    burner.stop()
    seen = profile.result().of(burner.name)
    seen.expect_complete()
    assert at_least(seen.calling("main", "worker", "spin"), seen.samples, 0.9)


# Within which the code of a program that begins in a profile has been read, also on a busy machine.
READ_SECONDS = bound(6, 15)


def test_a_process_that_starts_meanwhile_is_in_the_profile(profiling, start):
    """Until its code has been read, which is looked for every second, its stacks are of none."""
    breeder = start(Service, "breeder", ms=1000 * READ_SECONDS)
    profiling.workload_of(breeder.port)
    profile = begun(take, profiling, READ_SECONDS, workload=breeder.name)
    breeder.ask(f"run 1 {own_copy('burner')}")
    seen = profile.result()
    assert set(seen.ends()) <= {"[process_unknown]"}
    assert seen.calling("main", "worker", "spin") > 0


def test_a_child_that_is_forked_meanwhile_is_in_the_profile(profiling, start):
    burner = start(Service, "burner")
    wait_until_read(profiling, profiling.workload_of(burner.port))
    profile = begun(take, profiling, 4, workload=burner.name)
    assert burner.ask("fork")["child"] > 0
    seen = profile.result()
    seen.expect_complete()
    by_child = seen.calling("commands_obey", "worker", "spin")
    by_parent = seen.calling("main", "worker", "spin")
    assert at_least(by_child + by_parent, seen.samples, 0.95)
    assert by_child > 0


def test_children_that_live_for_a_moment_have_the_code_of_their_parent(profiling, start):
    """As those of a server that forks for each connection: none lives until it has been read."""
    breeder = start(Service, "breeder", ms=100)
    workload = profiling.workload_of(breeder.port)
    wait_until_read(profiling, workload, lambda: breeder.ask("burn 5"))
    before = breeder.ask("stats")
    profile = begun(take, profiling, 5, workload=breeder.name)
    after = breeder.ask("burn 20")
    seen = profile.result()
    # Where a function is looked up by its first call there is no rule: each child looks up its own.
    seen.expect_complete(0.9)
    of_children = seen.calling("main", "children_run", "child_run", "child_burn")
    assert at_least(of_children, seen.samples, 0.75), seen.stacks  # the rest makes them
    expected = HZ * (after["cpu_us"] - before["cpu_us"]) / 1e6
    off = (seen.samples - expected) / expected**0.5
    print(f"samples {seen.samples}, expected {expected}, off by {off} sigmas")
    assert abs(off) < SIGMAS


def test_children_that_execute_another_program_do_not_have_the_code_of_their_parent(
    profiling, start
):
    """Both are linked to the same addresses."""
    breeder = start(Service, "breeder_static", ms=200)
    profiling.workload_of(breeder.port)
    program = own_copy("burner_static")
    profile = begun(take, profiling, 5, workload=breeder.name)
    counts = breeder.ask(f"run 15 {program}")
    seen = profile.result()
    expected = HZ * counts["cpu_us"] / 1e6
    print(f"samples {seen.samples}, expected {expected}, not complete {seen.ends()}")
    assert abs(seen.samples - expected) / expected**0.5 < SIGMAS
    # Seen once, of one sample of 122; which moment of a child's start it is is not known.
    assert set(seen.ends()) <= {"[process_unknown]", "[unreadable]"}
    assert seen.ends().get("[unreadable]", 0) <= 2
    assert not seen.calling("child_run")
    executed = profiles.Profile([stack for stack in seen.stacks if stack.pool == program.name])
    before_main = executed.where(lambda stack: stack.is_complete and not stack.calls("main"))
    assert before_main <= max(3, 0.05 * executed.samples), executed.stacks


def test_a_process_that_executes_another_program_has_the_names_of_that(profiling, start):
    """What was read of the first one is not taken for the code of the second."""
    burner = start(Service, "burner")
    wait_until_read(profiling, profiling.workload_of(burner.port))
    thrower = own_copy("thrower")
    work = in_source(thrower, "work")
    profile = begun(take, profiling, 3)
    burned(burner.pid)
    burner.process.stdin.write(f"become {thrower}\n")
    burner.process.stdin.flush()
    ready, port = burner.process.stdout.readline().split()
    assert ready == "ready"
    seen = profile.result()
    before, after = (
        profiles.Profile([stack for stack in seen.stacks if stack.pool == path.name])
        for path in (burner.path, thrower)
    )
    before.expect_complete()
    assert at_least(before.calling("main", "worker", "spin"), before.samples, 0.9)
    assert not after.calling("worker")
    workload = profiling.workload_of(int(port))
    wait_until_read(profiling, workload)
    after = take(profiling, 2, workload=workload)
    after.expect_complete()
    assert at_least(after.calling(work), after.samples, 0.9)


def test_a_program_whose_file_is_another_now_has_its_own_names(profiling, start):
    burner = start(Service, "burner")
    workload = profiling.workload_of(burner.port)
    burner.path.unlink()
    os.link(WORKLOADS / "thrower", burner.path)
    wait_until_read(profiling, workload)
    profile = take(profiling, 2, workload=burner.name)
    profile.expect_complete()
    assert at_least(profile.calling("main", "worker", "spin"), profile.samples, 0.9)
