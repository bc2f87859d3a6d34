# SPDX-License-Identifier: Apache-2.0
"""
Profiles of CPython 3.13 and 3.14 with -X perf, which generates code between functions of Python, so
that they have names. They are those of Debian's later suites, each in a root of its own.
"""

import os
import platform
import shutil
import subprocess

import pytest

import profiles
from exporter import BUILD, ROOT
from profiles import Profile, at_least, expect_shares, take, wait_until_read
from services import Burner, unique_name

SUITES = {"trixie": "python3.13", "forky": "python3.14"}
BURNS = {"most_ns": "py::burn_most:", "some_ns": "py::burn_some:", "least_ns": "py::burn_least:"}
JIT = "[jit]"
USER = 12345  # another than that of the exporter's processes


def root_of(suite):
    """The suite's Python and what it needs, fetched once; tests of this suite wait for each other."""
    directory = BUILD / "userlands" / f"python-{suite}"
    directory.mkdir(parents=True, exist_ok=True)
    directory.chmod(0o700)  # no other user comes to its root from outside
    fetch = [ROOT / "tests" / "userlands" / "fetch.sh", directory, suite]
    packages = [f"{SUITES[suite]}-minimal", f"lib{SUITES[suite]}-stdlib"]
    command = ["flock", directory / "lock", *fetch, *packages]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "Unable to locate package" in done.stderr:
        pytest.skip(f"{packages[0]} is not in Debian's {suite} any more")
    assert not done.returncode, done.stderr
    return directory / "root"


@pytest.fixture
def python(start):
    """Starts workloads/burner.py with these options: python(suite, options, arguments)."""
    left = []

    def begin(suite, options=("-X", "perf"), arguments=("public",)):
        root, name = root_of(suite), unique_name("python")
        program, script = root / "usr" / "bin" / name, root / "tmp" / f"{name}.py"
        left.extend([program, script])
        os.link(root / "usr" / "bin" / SUITES[suite], program)
        shutil.copy(ROOT / "tests" / "workloads" / "burner.py", script)
        (root / "tmp").chmod(0o1777)
        inside = ["chroot", f"--userspec={USER}:{USER}", root]
        command = [*inside, f"/usr/bin/{name}", *options, f"/tmp/{name}.py", *arguments]
        burner = start(Burner, command, name=name)
        left.append(root / "tmp" / f"perf-{burner.pid}.map")
        return burner

    yield begin
    for path in left:
        path.unlink(missing_ok=True)


@pytest.mark.parametrize("suite", SUITES)
def test_functions_have_their_names_and_shares_of_time(profiling, python, suite):
    """Out of a library that they call as well."""
    burner = python(suite)
    workload = profiling.workload_of(burner.port)
    wait_until_read(profiling, workload)
    before = burner.ask("stats")
    profile = take(profiling, 3, workload=workload)
    after = burner.ask("stats")
    profile.expect_complete()
    true = profiles.shares(before, after)
    least = 0.95 * (1 - true["native_ns"])
    expect_shares(profile, before, after, BURNS, least, Profile.naming)
    for burn in BURNS.values():
        ways = ("py::<module>:", "py::main:", "py::slice_of:", burn, "py::spin:")
        along = profile.where(lambda stack, ways=ways: follows(stack, ways))
        assert at_least(along, profile.naming(burn), 0.95)
    native = profile.where(lambda stack: follows(stack, ["py::burn_native:", "crc32"]))
    assert at_least(native, profile.samples, 0.9 * true["native_ns"])
    assert not profile.calling(JIT)


def follows(stack, parts):
    """Whether functions whose names have these @parts call each other in this order."""
    rest = iter(stack.frames)
    return all(any(part in frame for frame in rest) for part in parts)


def test_a_python_that_does_not_write_them_has_functions_of_c(profiling, python):
    burner = python("trixie", options=(), arguments=())
    workload = profiling.workload_of(burner.port)
    wait_until_read(profiling, workload)
    profile = take(profiling, 2, workload=workload)
    profile.expect_complete()
    assert not profile.naming("py::")
    assert not profile.calling(JIT)


def test_names_that_may_not_be_read_are_told_to_be_such(profiling, python):
    """Python writes them for the user that runs it alone."""
    burner = python("trixie", arguments=())
    workload = profiling.workload_of(burner.port)
    wait_until_read(profiling, workload)
    profile = take(profiling, 2, workload=workload)
    profile.expect_complete()
    assert not profile.naming("py::")
    assert at_least(profile.calling("[jit_map_unreadable]"), profile.samples, 0.95)


def test_names_that_may_not_be_read_are_read_where_that_is_asked_for(exporters, python):
    exporter = exporters("--collector.profiles", "--profiles.private-perf-maps")
    burner = python("trixie", arguments=())
    workload = exporter.workload_of(burner.port)
    wait_until_read(exporter, workload)
    profile = take(exporter, 2, workload=workload)
    profile.expect_complete()
    assert at_least(profile.naming("py::main:"), profile.samples, 0.95)
    assert not profile.calling("[jit_map_unreadable]")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="it generates code of x86-64")
@pytest.mark.parametrize("suite", SUITES)
def test_what_another_compiler_generates_has_no_invented_callers(profiling, python, suite):
    """It has other frames than what Python generates, in the same process. Stacks end there."""
    burner = python(suite, arguments=["public", "foreign"])
    workload = profiling.workload_of(burner.port)

    def ends():
        profile = take(profiling, 1, workload=workload)
        return profile.ends().keys() == {"[no_rule]"}

    profiles.wait_until(ends, 60, "its code is not read")
    profile = take(profiling, 3, workload=workload)
    foreign = profile.where(lambda stack: stack.frames[:2] == ("[no_rule]", JIT))
    assert at_least(foreign, profile.naming("py::burn_called:"), 0.95)
    assert foreign > 0.1 * profile.samples
    assert not profile.where(lambda stack: stack.is_complete and stack.calls(JIT))
    others = profile.where(lambda stack: stack.is_complete == stack.calls("[no_rule]", JIT))
    assert others <= max(1, 0.01 * profile.samples), profile.stacks
