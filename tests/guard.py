#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
guard.py [--processes] COMMAND...: runs a suite of tests and fails if it leaves something behind: a
process, a mount, a network namespace, a cgroup, another value of a sysctl. Processes that are left
are ended. With --processes only those are looked at: for a suite that makes none of the rest, and
runs beside one that does.

It adopts what the suite orphans (PR_SET_CHILD_SUBREAPER of prctl(2)), so that what is left is
known, and what else the machine does meanwhile is not taken for it.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
END_SECONDS = 5
# The kernel's own figures, which are no settings.
FIGURES = ("-nr", "-state", "/random/", "/ns_last_pid", "/pty/nr", "/cpu_info", "/nf_conntrack_count")
IS_SETTABLE = 0o200


def _mounts():
    """Where something is mounted; /run is where others mount."""
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return {f"mount on {point}" for point in points if not point.startswith("/run/")}


def _namespaces():
    names = Path("/run/netns")
    return {f"network namespace {path.name}" for path in (names.iterdir() if names.is_dir() else ())}


def _cgroups():
    """Those without a process: others come and go with services that are not of the tests."""
    found = set()
    for folder, _, files in os.walk("/sys/fs/cgroup"):
        try:
            if "cgroup.procs" in files and not (Path(folder) / "cgroup.procs").read_text():
                found.add(f"cgroup {folder}")
        except OSError:
            continue  # gone, or of the threaded kind
    return found


def _sysctls():
    found = set()
    for folder, _, files in os.walk("/proc/sys"):
        for path in (Path(folder) / name for name in files):
            if any(figure in str(path) for figure in FIGURES):
                continue
            try:
                if path.stat().st_mode & IS_SETTABLE:
                    found.add(f"{path}: {path.read_text().strip()}")
            except OSError:
                continue  # may be written only, or not at all here
    return found


def things():
    return _mounts() | _namespaces() | _cgroups() | _sysctls()


def _children():
    """Of this process: its own, and those that it has adopted."""
    text = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    return [int(word) for word in text.split()]


def _describe(pid):
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        words = [b"(ended)"]
    return f"process {pid}: {b' '.join(words).decode(errors='replace').strip()[:200]}"


def _reap():
    """Waits for what has ended; {pid: status}."""
    ended = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if not pid:
            return ended
        ended[pid] = os.waitstatus_to_exitcode(status)


def _run(command):
    """The command's exit status; meanwhile orphans are waited for as init would."""
    child = subprocess.Popen(command, env={**os.environ, "WORKLOAD_TEST_GUARD": str(os.getpid())})

    def interrupt(*_):
        os.kill(child.pid, signal.SIGINT)  # on which pytest tidies up

    signal.signal(signal.SIGTERM, interrupt)
    signal.signal(signal.SIGHUP, interrupt)
    signal.signal(signal.SIGINT, lambda *_: None)  # a terminal sends it to the command as well
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        ended = _reap()
        if child.pid in ended:
            return ended[child.pid]
        signal.sigtimedwait([signal.SIGCHLD], 1)


def _end_all():
    """Kills what is left, with what that leaves in turn; what there was, as text."""
    said = []
    deadline = time.monotonic() + END_SECONDS
    while (left := _children()) and time.monotonic() < deadline:
        said += [text for pid in left if (text := _describe(pid)) not in said]
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
        _reap()
    return said


def main(command):
    look = things
    if command[0] == "--processes":
        look, command = set, command[1:]
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    before = look()
    status = _run(command)
    deadline = time.monotonic() + END_SECONDS
    # What was told to end may need a moment.
    while (_children() or look() - before) and time.monotonic() < deadline:
        time.sleep(0.1)
        _reap()
    left = [*_end_all(), *sorted(look() - before)]
    for what in left:
        print(f"left behind: {what}", flush=True)
    return status if status > 0 else bool(status or left)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
