# SPDX-License-Identifier: Apache-2.0
"""
Profiles of programs that generate code while they run: Node.js, and Java where it keeps frame
pointers. Their functions have names where they have written a perf map.
"""

import contextlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import profiles
from exporter import SLOWER
from profiles import SIGMAS, Profile, at_least, expect_shares, sigmas_off, take, wait_until_read
from services import SCRATCH, Burner, own_java, unique_name

SOURCES = Path(__file__).parent.parent / "workloads"
COMPLETE = 0.98
WARM_NS = 3e9
JIT, UNFOLLOWED = "[jit]", "[jit_without_frame_pointers]"
KEEPS, KEEPS_NOT = "-XX:+PreserveFramePointer", "-XX:-PreserveFramePointer"


# As in a container: process 1 of its own, with a folder for its /tmp.
CONTAINED = ["unshare", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc"]


def node_burner(start, *options, contained=False):
    folder = SCRATCH.resolve() / unique_name("node")
    folder.mkdir(parents=True)
    (folder / folder.name).symlink_to(shutil.which("node"))
    shutil.copy(SOURCES / "burner.js", folder)
    seen, prefix = folder, []
    if contained:  # the folder is to be seen there, wherever the project is
        seen = Path("/tmp")
        prefix = [*CONTAINED, "sh", "-c", 'mount --bind "$0" /tmp && exec "$@"', folder]
    burner = start(Burner, [*prefix, seen / folder.name, *options, seen / "burner.js"])
    # V8 compiles at first, to new places in memory, which are read a second later.
    profiles.wait_until(
        lambda: sum(burner.ask("stats").values()) > WARM_NS, 60 * SLOWER, "it does not burn"
    )
    return burner


def java_burner(start, *options, **environment):
    classes = SCRATCH.resolve() / "classes"
    if not (classes / "Burner.class").exists():
        subprocess.run(["javac", "-d", classes, SOURCES / "Burner.java"], check=True)
    command = [own_java(unique_name("java")), *options, "-cp", classes, "Burner"]
    return start(Burner, command, **environment)


def test_stacks_go_on_through_what_node_generates(profiling, start):
    """Out of a library that it calls as well, whose share of time it has measured."""
    burner = node_burner(start)
    workload = profiling.workload_of(burner.port)
    wait_until_read(profiling, workload)
    before = burner.ask("stats")
    profile = take(profiling, 3, workload=workload)
    true = profiles.shares(before, burner.ask("stats"))
    profile.expect_complete(COMPLETE)
    generated = profile.calling(JIT)
    assert at_least(generated, profile.samples, 0.95), profile.stacks
    native = profile.calling(JIT, "PKCS5_PBKDF2_HMAC")
    off = sigmas_off(native, generated, true["native_ns"])
    print(f"samples {profile.samples}, native {native}, true {true}, off by {off}")
    assert native > 0
    assert abs(off) < SIGMAS


# What the JVM is started with: arguments, and variables of its environment.
TOLD = {
    "argument": ([KEEPS], {}),
    "last argument": ([KEEPS_NOT, KEEPS], {}),
    "tool options": ([], {"JAVA_TOOL_OPTIONS": f"-Dx=y {KEEPS}"}),
    "launcher": ([], {"JDK_JAVA_OPTIONS": KEEPS}),
    "options that come last": ([KEEPS_NOT], {"_JAVA_OPTIONS": KEEPS}),
    "interpreter": (["-Xint", KEEPS], {}),
}
NOT_TOLD = {
    "nothing": ([], {}),
    "argument after the environment": ([KEEPS_NOT], {"JAVA_TOOL_OPTIONS": KEEPS}),
    "argument of another program": ([f"-Dchild={KEEPS}"], {"OTHER_OPTIONS": KEEPS}),
}


@pytest.mark.parametrize("told", TOLD)
def test_stacks_go_on_through_what_java_generates_with_frame_pointers(profiling, start, told):
    options, environment = TOLD[told]
    burner = java_burner(start, *options, **environment)
    workload = profiling.workload_of(burner.port)
    wait_until_read(profiling, workload)
    profile = take(profiling, 2, workload=workload)
    profile.expect_complete(COMPLETE)
    assert at_least(profile.calling(JIT), profile.samples, 0.9), profile.stacks


@pytest.mark.parametrize("told", NOT_TOLD)
def test_stacks_of_java_without_frame_pointers_end_where_it_is_said_why(profiling, start, told):
    options, environment = NOT_TOLD[told]
    burner = java_burner(start, *options, **environment)
    workload = profiling.workload_of(burner.port)

    def ends():
        profile = take(profiling, 1, workload=workload)
        assert not profile.calling(JIT)
        ended = profile.where(lambda stack: stack.frames[:2] == ("[no_rule]", UNFOLLOWED))
        return ended >= 0.8 * profile.samples > 5

    profiles.wait_until(ends, 60, "its stacks do not end in what it generates")


# --- names ------------------------------------------------------------------------------------------

BURNS = {"most_ns": "burnMost", "some_ns": "burnSome", "least_ns": "burnLeast"}


@contextlib.contextmanager
def perf_map(burner):
    """It is removed at the end; its path."""
    path = Path(f"/tmp/perf-{burner.pid}.map")
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


# V8 compiles what runs often, and calls go into their callers.
NAMED = ["--perf-basic-prof", "--interpreted-frames-native-stack", "--no-turbo-inlining"]


@pytest.mark.parametrize("contained", [False, True], ids=["machine", "container"])
def test_functions_of_node_have_their_names_and_shares_of_time(profiling, start, contained):
    burner = node_burner(start, *NAMED, contained=contained)
    with perf_map(burner):
        workload = profiling.workload_of(burner.port)
        wait_until_read(profiling, workload)
        before = burner.ask("stats")
        profile = take(profiling, 3, workload=workload)
        after = burner.ask("stats")
        profile.expect_complete(COMPLETE)
        spent = sum(after.values()) - sum(before.values())
        native = (after["native_ns"] - before["native_ns"]) / spent
        expect_shares(profile, before, after, BURNS, 0.9 * (1 - native), Profile.naming)
        spins = profile.where(lambda stack: "spin" in stack.frames[-1])
        burns = sum(profile.naming(name) for name in BURNS.values())
        assert at_least(spins, burns, 0.8)


def test_functions_of_java_have_their_names_and_shares_of_time(profiling, start):
    burner = java_burner(start, KEEPS, "-XX:CompileCommand=quiet,dontinline,Burner::burn*")
    with perf_map(burner):
        workload = profiling.workload_of(burner.port)
        wait_until_read(profiling, workload)

        def is_named():
            """Its map has what was compiled up to now."""
            command = ["jcmd", str(burner.pid), "Compiler.perfmap"]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            profile = take(profiling, 1, workload=workload)
            return sum(map(profile.naming, BURNS.values())) >= 0.97 * profile.samples

        profiles.wait_until(is_named, 60, "its functions have no names")
        before = burner.ask("stats")
        profile = take(profiling, 3, workload=workload)
        expect_shares(profile, before, burner.ask("stats"), BURNS, count=Profile.naming)
        profile.expect_complete(COMPLETE)


def test_a_perf_map_of_another_user_names_nothing(profiling, start):
    burner = node_burner(start)
    workload = profiling.workload_of(burner.port)
    wait_until_read(profiling, workload)
    with perf_map(burner) as path:
        path.write_text("0 7fffffffffff a_lie\n")

        def share_named():
            """Of its samples of what V8 generated; None: there are too few."""
            profile = take(profiling, 2, workload=workload)
            entered, lies = profile.calling("Builtins_JSEntry"), profile.naming("a_lie")
            print(f"samples {profile.samples}, generated {entered}, named {lies}, {profile.stacks[:3]}")
            shares.append(None if entered <= 5 else lies / entered)
            return shares[-1]

        shares = []
        os.chown(path, 12345, 12345)
        profiles.wait_until(lambda: share_named() is not None, 60 * SLOWER, "it has no samples")
        assert shares[-1] == 0
        os.chown(path, 0, 0)
        profiles.wait_until(
            lambda: (share_named() or 0) >= 0.9, 60 * SLOWER, "the map of its own user names nothing"
        )
