# SPDX-License-Identifier: Apache-2.0
"""`workload_exporter profile --diff`: two profiles beside each other, of this exporter and of others."""

import fcntl
import gzip
import os
import re
import shutil
import subprocess
import tempfile
import urllib.request
from collections import Counter
from pathlib import Path

import pytest

import profiles
from exporter import BINARY, START_SECONDS
from prometheus import Prometheus
from services import NOBODY, Service, status_of, user, wait_until

SECONDS = 3
ROW = re.compile(r" *(\S+) +(\S+) +([-+]\S+) [ ~] (.+)")
HEAD = re.compile(r"(before|after )  (.+): ([\d.]+) s, ([\d.]+) (.+)")
LATE_SECONDS = 60


def diff(before, after, *more, prefix=(), binary=BINARY, **streams):
    return subprocess.run(
        [*prefix, binary, "profile", "--diff", before, *more, after],
        check=False, capture_output=not streams, text=True, timeout=LATE_SECONDS, **streams,
    )  # fmt: skip


class Difference:
    """What it has shown: of each function that has changed (before, after, change)."""

    def __init__(self, before, after, **options):
        done = diff(before, after, **options)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        heads, itself, with_calls = done.stdout.split("\n\n")
        self.heads = [HEAD.fullmatch(line).groups() for line in heads.splitlines()]
        self.itself, self.with_calls = (
            {
                name: tuple(map(float, rates))
                for *rates, name in (ROW.fullmatch(line).groups() for line in table.splitlines()[1:])
            }
            for table in (itself, with_calls)
        )


def write(service, path, kind="cpu"):
    command = [BINARY, "profile", service.name, "-o", path, "--type", kind, f"--seconds={SECONDS}"]
    subprocess.run(command, check=True, capture_output=True)
    return path


def rates_of(path):
    """CPUs by function, in itself and with what it calls, as `go tool pprof` reads them."""
    profile = profiles.pprof_read(path)
    itself, with_calls = Counter(), Counter()
    for stack in profile.stacks:
        itself[stack.frames[-1]] += stack.ns / 1e9 / profile.duration
        for name in set(stack.frames):
            with_calls[name] += stack.ns / 1e9 / profile.duration
    return itself, with_calls


@pytest.fixture(scope="module")
def pair(start_for_module):
    """Two profiles of one program, which burns on two threads more in the second. All may read them."""
    paths = []
    folder = Path(tempfile.mkdtemp(prefix="workload_profile_"))
    folder.chmod(0o755)
    first = start_for_module(Service, "burner")
    for threads in 0, 2:
        service = start_for_module(Service, first.path, threads=threads) if threads else first
        paths.append(write(service, folder / f"{threads}.pb.gz"))
        paths[-1].chmod(0o644)
        service.stop()
    yield paths
    shutil.rmtree(folder)


def test_it_tells_what_each_function_takes_more_or_less(pair):
    found = Difference(*pair)
    assert [(head[0].strip(), head[1], head[4]) for head in found.heads] == [
        ("before", str(pair[0]), "CPUs"),
        ("after", str(pair[1]), "CPUs"),
    ]
    program = profiles.pprof_read(pair[0]).mappings[0].path

    def near(rate):
        """Three digits are shown; `go tool pprof` cuts the 3 s off behind the second."""
        return pytest.approx(rate, abs=0.0006 + 0.01 / SECONDS * rate, rel=0)

    before, after = (rates_of(path) for path in pair)
    for column, table in enumerate((found.itself, found.with_calls)):
        named = {name.removesuffix(f"  ({Path(program).name})"): row for name, row in table.items()}
        expected = "spin" if column == 0 else "burn_most"
        assert expected in named
        for name, row in named.items():
            if name in before[column] or name in after[column]:
                assert row[:2] == (near(before[column][name]), near(after[column][name])), name
            assert row[2] == pytest.approx(row[1] - row[0], abs=0.0011), name
    for column in 0, 1:
        of_all = sum(row[column] for row in found.itself.values())
        assert of_all == pytest.approx(float(found.heads[column][3]), abs=0.02)


def test_others_than_root_may_compare_and_nothing_is_kept_of_what_root_may(pair):
    """It is looked at while its answer is not read: its privileges are gone before a file is parsed."""
    Difference(*pair, prefix=user(), binary=shutil.copy(BINARY, pair[0].parent))
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(writer, False)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(writer, b"x" * 4096)
    os.set_blocking(writer, True)
    command = subprocess.Popen([BINARY, "profile", "--diff", *pair], stdout=writer)
    os.close(writer)

    with command, os.fdopen(reader, "rb") as answer:
        wait_until(
            lambda: status_of(command.pid)["Seccomp"] == "2", START_SECONDS, "it has not begun"
        )
        status = status_of(command.pid)
        kept = {int(status[name], 16) for name in ("CapPrm", "CapEff", "CapAmb", "CapInh")}
        assert kept == {0}
        assert status["NoNewPrivs"] == "1"
        assert set(map(int, status["Uid"].split())) == {NOBODY}
        assert b"spin" in answer.read()
        assert command.wait(LATE_SECONDS) == 0


def test_one_may_come_through_a_pipe(pair):
    pipe = subprocess.PIPE
    with subprocess.Popen(["cat", pair[0]], stdout=pipe) as cat:
        done = diff("/dev/stdin", pair[1], stdin=cat.stdout, stdout=pipe, stderr=pipe)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("before  /dev/stdin: ")


def test_profiles_of_a_program_of_go_are_compared_as_well(start, tmp_path):
    """By its own runtime, in which places in code have several functions."""
    prometheus = start(Prometheus, tmp_path, [])
    paths = [tmp_path / "first", tmp_path / "second"]
    for path in paths:
        url = f"http://127.0.0.1:{prometheus.port}/debug/pprof/profile?seconds={SECONDS}"
        with urllib.request.urlopen(url) as answer:
            path.write_bytes(answer.read())
    found = Difference(*paths)
    assert {head[4] for head in found.heads} == {"CPUs"}


def no_profile(path):
    path.write_bytes(b"no profile\n" * 100)
    return "it is no profile in the format of pprof"


def missing(path):
    path.unlink()
    return "No such file or directory"


def folder(path):
    path.unlink()
    path.mkdir()
    return "Is a directory"


def bomb(path):
    """Messages of two bytes, which take a hundred of memory each."""
    path.write_bytes(gzip.compress(b"\x12\x00" * 16_000_000, 1))
    return "it is too large"


@pytest.mark.parametrize("made", [no_profile, missing, folder, bomb])
def test_what_is_none_is_said(pair, made, tmp_path):
    other = shutil.copy(pair[1], tmp_path / "other")
    why = made(other)
    done = diff(pair[0], other)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"profile: cannot read {other}: {why}\n"


def test_only_profiles_of_one_kind_are_compared_and_no_file_is_written(pair, start, tmp_path):
    waits = write(start(Service, "waiter"), tmp_path / "waits", "offcpu")
    done = diff(pair[0], waits)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"profile: {waits} is of something else than the one before it\n"
    done = diff(*pair, "-o", tmp_path / "out")
    assert done.returncode == os.EX_USAGE
    assert not (tmp_path / "out").exists()
