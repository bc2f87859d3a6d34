# SPDX-License-Identifier: Apache-2.0
"""
`workload_exporter profile`: what it shows and writes of programs that are known, beside an exporter
that runs and without one; how it ends; and that nothing is left of it.
"""

import contextlib
import fcntl
import os
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import profiles
from exporter import BINARY, START_SECONDS
from profiles import SIGMAS, at_least, sigmas_off
from services import Service, status_of, unique_name, user, wait_until

SECONDS = 3
COLUMNS = 400
FUNCTION = re.compile(r"^ *([\d.]+) %  +([\d.]+) %  (\S+)(?:  \((.*)\))?$", re.MULTILINE)
BURNS = {"most_ns": "burn_most", "some_ns": "burn_some", "least_ns": "burn_least"}
SYS_OPENAT = {"x86_64": 257, "aarch64": 56}[os.uname().machine]
# Of workloads that have no name yet, as those of tests that run beside these.
LOST = r"(?:; \d+ of all workloads were lost)?"
# More than any profile of a test has.
BEFORE = b"what was there before\n" * 10_000


class Command(subprocess.Popen):
    """`workload_exporter profile`, which runs in a process group of its own."""

    def __init__(self, *arguments, prefix=(), binary=BINARY, **streams):
        pipe = subprocess.PIPE
        super().__init__(
            [*prefix, binary, "profile", *map(str, arguments)],
            **{"stdin": subprocess.DEVNULL, "stdout": pipe, "stderr": pipe, **streams},
            text=True,
            start_new_session=True,
        )

    def status(self):
        return status_of(self.pid)

    def wait_until_it_is_in_the_sandbox(self):
        """All is loaded and adopted by then, and the workload is looked for."""
        wait_until(lambda: self.status()["Seccomp"] == "2", START_SECONDS, "it has not started")

    def wait_until_it_has_begun(self):
        line = self.stderr.readline()
        assert re.match(r"profile: \S+, for \d+ s$", line), line

    def end(self):
        """What it has written and how it has ended; no process of it lives any more."""
        out, err = self.communicate(timeout=SECONDS + 2 * START_SECONDS)
        wait_until(lambda: not self.others(), START_SECONDS, "a process of it is left")
        return subprocess.CompletedProcess(self.args, self.returncode, out, err)

    def others(self):
        """Processes of its session."""
        done = subprocess.run(
            ["ps", "-o", "pid=", "-s", str(self.pid)], check=False, capture_output=True, text=True
        )
        return [int(pid) for pid in done.stdout.split() if int(pid) != self.pid]


@contextlib.contextmanager
def running(*arguments, **options):
    """A command that ends here at the latest."""
    command = Command(*arguments, **options)
    try:
        yield command
    finally:
        if command.poll() is None:
            os.killpg(command.pid, signal.SIGKILL)
            command.wait()


def take(*arguments, **options):
    with running(*arguments, **options) as command:
        return command.end()


@pytest.fixture
def burner(start):
    return start(Service, "burner", threads=1)


@pytest.fixture
def path():
    """Of a file that is there, in a directory that every user can write to."""
    directory = Path(tempfile.mkdtemp(prefix="workload_profile_"))
    directory.chmod(0o777)
    path = directory / "profile.pb.gz"
    path.write_bytes(BEFORE)
    path.chmod(0o666)
    yield path
    shutil.rmtree(directory)


# --- what it shows and writes -----------------------------------------------------------------------


def on_terminal(*arguments):
    """The same where standard output is a terminal of so many columns."""
    master, terminal = os.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    with running(*arguments, stdout=terminal) as command:
        os.close(terminal)
        with ThreadPoolExecutor(1) as thread:
            text = thread.submit(read_all, master)
            done = command.end()
        os.close(master)
        done.stdout = text.result().replace("\r\n", "\n")
        return done


def read_all(master):
    """Until the other side is closed, which is an error of a terminal."""
    chunks = []
    try:
        while chunk := os.read(master, 65536):
            chunks.append(chunk)
    except OSError:
        pass
    return b"".join(chunks).decode()


def columns_of(rows, name):
    """How wide the boxes of a function are together."""
    boxes = [box for row in rows for box in re.findall(r"\[([^]]*)\]", row)]
    return sum(len(box) + 2 for box in boxes if box.strip() == name)


def test_functions_and_boxes_have_the_shares_of_time_that_the_program_has_measured(burner):
    before = burner.ask("stats")
    done = on_terminal(burner.name, "--seconds", SECONDS)
    true = profiles.shares(before, burner.ask("stats"))
    assert (done.returncode, done.stderr) == (0, f"profile: {burner.name}, for {SECONDS} s\n")
    print(done.stdout)
    head, functions, flame = done.stdout.split("\n\n")
    samples, complete = re.fullmatch(
        rf"{burner.name}, {SECONDS}\.\d s: (\d+) samples, [\d.]+ CPUs, ([\d.]+) % of stacks are "
        rf"complete{LOST}",
        head,
    ).groups()
    assert (1 - float(complete) / 100) * int(samples) <= max(1.1, 0.01 * int(samples))
    (spin, *others) = FUNCTION.findall(functions)
    assert spin[2:] == ("spin", burner.name)
    assert at_least(float(spin[0]) / 100 * int(samples), int(samples), 0.9)
    assert sum(float(own) for own, *_ in [spin, *others]) == pytest.approx(100, abs=1)
    _, pools, *rows = flame.splitlines()
    assert columns_of([pools], burner.name[:15]) == COLUMNS
    for key, name in BURNS.items():
        share = columns_of(rows, name) / COLUMNS
        off = sigmas_off(share * int(samples), int(samples), true[key])
        print(f"{name}: {share:.3f} of the columns, true {true[key]:.3f}, off by {off:.1f} sigmas")
        # A box is up to a column off.
        assert abs(off) < SIGMAS or abs(share - true[key]) < 3 / COLUMNS


def test_a_file_has_the_profile_and_nothing_of_what_was_there_before(burner, path):
    before = burner.ask("stats")
    done = take(burner.name, "-o", path, "--type=cpu", f"--seconds={SECONDS}")
    true = profiles.shares(before, burner.ask("stats"))
    assert (done.returncode, done.stdout) == (0, "")
    profile = profiles.pprof_read(path)
    profile.expect_complete()
    assert profile.workloads == {burner.name}
    assert SECONDS <= profile.duration < SECONDS + 1
    assert profile.mappings[0].path == str(burner.path)
    for key, name in BURNS.items():
        assert abs(sigmas_off(profile.calling(name), profile.samples, true[key])) < SIGMAS


def test_it_and_an_exporter_do_not_disturb_each_other(profiling, burner, path):
    profiling.workload_of(burner.port)
    before = burner.ask("stats")
    with running(burner.name, "-o", path, "--seconds", SECONDS) as command:
        command.wait_until_it_has_begun()
        of_exporter = profiles.take(profiling, SECONDS, workload=burner.name)
        assert command.end().returncode == 0
        true = profiles.shares(before, burner.ask("stats"))
        for profile in of_exporter, profiles.pprof_read(path):
            profile.expect_complete()
            for key, name in BURNS.items():
                off = sigmas_off(profile.calling(name), profile.samples, true[key])
                assert abs(off) < SIGMAS, (name, off)


def test_a_service_is_waited_for_that_begins_in_the_first_moments(start):
    name = unique_name("late")
    with running(name, "--seconds=1") as command:
        command.wait_until_it_is_in_the_sandbox()
        start(Service, "burner", name=name)
        done = command.end()
        assert done.returncode == 0, done.stderr
        assert "spin" in done.stdout


# --- what it may do ---------------------------------------------------------------------------------


@pytest.fixture
def binary(path):
    """A copy that every user can run."""
    return shutil.copy(BINARY, path.parent)


def test_three_capabilities_are_enough(burner, path, binary):
    prefix = user("bpf", "perfmon", "sys_ptrace")
    done = take(burner.name, "-o", path, f"--seconds={SECONDS}", prefix=prefix, binary=binary)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    profiles.pprof_read(path).expect_complete(at_least=1)


def test_without_privileges_it_says_what_is_missing(burner, path, binary):
    done = take(burner.name, "-o", path, prefix=user(), binary=binary)
    assert (done.returncode, done.stdout) == (1, "")
    assert "nothing can be measured" in done.stderr
    assert "CAP_BPF" in done.stderr
    assert path.read_bytes() == BEFORE


def test_privileges_are_given_up_before_anything_is_sampled(burner):
    with running(burner.name, "--seconds=60") as command:
        command.wait_until_it_has_begun()
        status = command.status()
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
        kept = {int(status[name], 16) for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb", "CapInh")}
        assert kept == {0}
        command.send_signal(signal.SIGTERM)
        assert command.end().returncode == 1


def test_the_sandbox_can_be_left_out_as_of_the_exporter(burner):
    with running(burner.name, "--seconds=60", "--security.sandbox=off") as command:
        command.wait_until_it_has_begun()
        assert command.status()["Seccomp"] == "0"
        command.send_signal(signal.SIGTERM)
        assert command.end().returncode == 1
    done = take(burner.name, "--security.sandbox=no")
    assert done.returncode == os.EX_USAGE
    assert "on, log or off" in done.stderr


# --- how it ends ------------------------------------------------------------------------------------


def test_a_workload_that_is_not_there_is_answered_with_those_that_are(burner, path):
    done = take("nosuch\x1b[2J", "-o", path)
    assert (done.returncode, done.stdout) == (1, "")
    line = done.stderr
    assert line.startswith('profile: no workload is called "nosuch\N{REPLACEMENT CHARACTER}[2J"')
    assert ": there are " in line and line.endswith("\n") and line.count("\n") == 1
    assert burner.name in line or line.endswith(", ...\n")
    assert path.read_bytes() == BEFORE


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_and_leaves_the_file_as_it_was(burner, path, number):
    with running(burner.name, "-o", path, "--seconds=60") as command:
        command.wait_until_it_has_begun()
        os.killpg(command.pid, number)
        done = command.end()
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == "profile: stopped before its end\n"
        assert path.read_bytes() == BEFORE


def test_what_standard_output_has_already_is_kept(burner, path):
    with path.open("a", encoding="ascii") as output:
        assert take(burner.name, "--seconds=1", stdout=output).returncode == 0
    text = path.read_bytes()
    assert text.startswith(BEFORE)
    assert text.count(b"samples") == 1


def test_a_file_is_made_where_there_is_none(burner, path):
    path.unlink()
    assert take(burner.name, "--seconds=1", "-o", path).returncode == 0
    assert profiles.pprof_read(path).workloads == {burner.name}


def test_a_reader_that_does_not_come_can_be_given_up(burner, path):
    """Opening a FIFO waits for it."""
    path.unlink()
    os.mkfifo(path)
    with running(burner.name, "--seconds=1", "-o", path) as command:
        syscall = Path(f"/proc/{command.pid}/syscall")

        def waits():
            """In one call of it: a thread that is preempted there sleeps elsewhere a moment later."""
            before = syscall.read_text()
            sleeps = command.status()["State"].startswith("S")
            return before.startswith(f"{SYS_OPENAT} ") and sleeps and syscall.read_text() == before

        wait_until(waits, START_SECONDS, "it does not wait")
        command.send_signal(signal.SIGINT)
        assert command.end().returncode == -signal.SIGINT
    with running(burner.name, "--seconds=1", "-o", path) as command:
        assert len(path.read_bytes()) > 100
        assert command.end().returncode == 0


def test_what_cannot_be_written_is_said(burner, path):
    with open("/dev/full", "w", encoding="ascii") as full:
        done = take(burner.name, "--seconds=1", stdout=full)
    assert done.returncode == os.EX_IOERR
    assert done.stderr.endswith("profile: cannot write: No space left on device\n")
    done = take(burner.name, "--seconds=1", "-o", path.parent)
    assert done.returncode == 1
    assert done.stderr == f"profile: cannot write {path.parent}: Is a directory\n"
    reader, writer = os.pipe()
    os.close(reader)
    done = take(burner.name, "--seconds=1", stdout=writer)
    os.close(writer)
    assert done.returncode == os.EX_IOERR


def test_waits_are_shown_by_time_below_what_is_waited_for(start):
    waiter = start(Service, "waiter", shorts=0)
    with running(waiter.name, "--type=lock", "--seconds", SECONDS) as command:
        command.wait_until_it_has_begun()
        while command.poll() is None:
            waiter.ask("run 5")
        done = command.end()
    assert done.returncode == 0, done.stderr
    head, functions, flame = done.stdout.split("\n\n")
    waits, threads = re.fullmatch(
        rf"{waiter.name}, [\d.]+ s: (\d+) waits, ([\d.]+) threads at a time, "
        rf"[\d.]+ % of them, by time, are complete{LOST}",
        head,
    ).groups()
    # Of four threads one has the lock, or all nap.
    assert int(waits) > 10
    assert 0 < float(threads) <= 3
    assert max(FUNCTION.findall(functions), key=lambda row: float(row[0]))[2] == "sys_futex"
    _, pools, states, *rows = flame.splitlines()
    assert re.match(r"\[lock +\]$", states)
    assert columns_of(rows, "long_wait") > 0.5 * len(pools)


@pytest.mark.parametrize("kind", ["offcpu", "block"])
def test_each_type_is_a_profile_of_its_own(start, path, kind):
    waiter = start(Service, "waiter")
    with running(waiter.name, "--type", kind, "-o", path, "--seconds=2") as command:
        command.wait_until_it_has_begun()
        while command.poll() is None:
            waiter.ask("run 5")
        assert command.end().returncode == 0
    states = {stack.state for stack in profiles.pprof_read(path).stacks}
    assert {"lock", "sleep"} <= states
    assert ("runnable" in states) == (kind == "offcpu")


def test_page_faults_are_shown_by_number(start):
    toucher = start(Service, "toucher", rest=100)
    done = take(toucher.name, "--type=fault", f"--seconds={SECONDS}")
    assert done.returncode == 0, done.stderr
    head, functions, flame = done.stdout.split("\n\n")
    faults, rate = re.fullmatch(
        rf"{toucher.name}, [\d.]+ s: (\d+) page faults, (\d+) a second, [\d.]+ % of their stacks are "
        rf"complete{LOST}",
        head,
    ).groups()
    assert int(faults) == pytest.approx(int(rate) * SECONDS, rel=0.1)
    assert FUNCTION.findall(functions)[0][2:] == ("touch", toucher.name)
    _, pools, states, *rows = flame.splitlines()
    assert states.startswith("[minor")
    assert columns_of(rows, "touch_most") > 0.5 * len(pools)


def test_a_service_that_uses_no_cpu_has_no_samples(start):
    idle = start(Service, "burner", idle=1)
    done = take(idle.name, "--seconds=1")
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(
        rf"{idle.name}, 1\.\d s: 0 samples(, as it used no CPU|{LOST[3:-2]})\n", done.stdout
    )
