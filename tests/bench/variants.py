# SPDX-License-Identifier: Apache-2.0
"""
What a service runs beside: nothing, the exporter in one of its modes, or another tool.

A variant is started, tells its process (`pid`), and is stopped. `Unavailable` says why one cannot
run on this machine.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

import paths  # noqa: F401 (the helpers of the live tests)
import profiles
from exporter import Exporter, run_to_end
from paths import HERE

READY_SECONDS = 20
PROFILE_SECONDS = 60  # longer than what is measured beside it
HZ = str(profiles.HZ)
# bpftrace and bcc's tools look for tracefs in its usual place. It is mounted for them alone.
WITH_TRACEFS = [
    "unshare",
    "--mount",
    "sh",
    "-c",
    'for fs in tracefs:tracing debugfs:debug; do mount -t ${fs%:*} ${fs%:*} /sys/kernel/${fs#*:};'
    ' done 2>/dev/null; exec "$@"',
    "sh",
]
LIBC = re.search(r"/\S*/libc\.so\S*", Path("/proc/self/maps").read_text())[0]


class Unavailable(Exception):
    """The variant cannot run here, and why."""


class Nothing:
    """The service alone."""

    pid = None

    def stop(self):
        pass


class Tool:
    """Another program that observes, stopped by an interrupt."""

    def __init__(self, *command):
        self.name = command[0]
        if not shutil.which(self.name, path="/usr/sbin:/usr/bin"):
            raise Unavailable(f"{self.name} is not installed")
        self._said = []
        self._changed = threading.Condition()
        self._process = subprocess.Popen(
            [*WITH_TRACEFS, "stdbuf", "-oL", *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            self._wait_until_attached()
        except BaseException:  # whatever it is, nothing is left attached
            self.stop()
            raise

    @property
    def pid(self):
        return self._process.pid

    def _read(self):
        for line in self._process.stdout:
            with self._changed:
                self._said.append(line.strip())
                self._changed.notify_all()
        with self._changed:
            self._said.append(None)
            self._changed.notify_all()

    def _search(self, pattern):
        matches = (re.search(pattern, line, re.I) for line in self._said if line is not None)
        return next((match for match in matches if match), None)

    def _wait_for_line(self, pattern):
        with self._changed:
            self._changed.wait_for(
                lambda: self._search(pattern) or None in self._said, READY_SECONDS
            )
            found = self._search(pattern)
            if found and None not in self._said:
                return found
            raise self._wrong("ends at once")

    def _wrong(self, otherwise):
        """In its own words, if it has said any."""
        said = self._search(".*(fail|error|denied|no such).*") or self._search(".+")
        return Unavailable(said[0] if said else otherwise)

    def _wait_until_attached(self):
        self._wait_for_line("tracing|ctrl")

    def _wait_until_it_holds(self, wanted, kind):
        """@wanted descriptors of @kind; it opens and closes others meanwhile."""
        deadline = time.monotonic() + READY_SECONDS
        while self._held(kind) < wanted:
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise self._wrong("does not attach all probes")
            time.sleep(0.02)

    def _held(self, kind):
        count = 0
        for link in Path(f"/proc/{self.pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                count += kind in os.readlink(link)
        return count

    def stop(self):
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(10)


class Bpftrace(Tool):
    """One of the programs beside this file; attached when it holds an event for every probe."""

    def __init__(self, script):
        super().__init__("bpftrace", str(HERE / script))

    def _wait_until_attached(self):
        wanted = int(self._wait_for_line(r"Attaching (\d+) probe")[1]) + os.cpu_count()
        self._wait_until_it_holds(wanted, "perf_event")


class Silent(Tool):
    """One that does not say when it is attached, but by the descriptors that it holds."""

    def __init__(self, wanted, kind, *command):
        self._wanted, self._kind = wanted, kind
        super().__init__(*command)

    def _wait_until_attached(self):
        self._wait_until_it_holds(self._wanted, self._kind)


class PerfRecord(Tool):
    """
    Of the whole machine, with stacks as @graph has them taken. It says when its events are enabled if
    that is to be after a while; copies of what it met it would leave in ~/.debug.
    """

    def __init__(self, graph):
        paths.SCRATCH.mkdir(parents=True, exist_ok=True)
        command = ["record", "--no-buildid-cache", "--delay=1", "-a", "-F", HZ, "-e", "cpu-clock"]
        output = paths.SCRATCH / "perf.data"
        super().__init__("perf", *command, "--call-graph", graph, "-o", str(output))

    def _wait_until_attached(self):
        self._wait_for_line("events enabled")


class WithFlags:
    """Starts the exporter with @flags, if the build knows them: this one, or @binary."""

    def __init__(self, *flags, binary=None):
        self.flags, self.binary = flags, binary

    def __call__(self):
        usage = run_to_end("--help", binary=self.binary).stdout
        for flag in self.flags:
            if flag.split("=")[0] not in usage:
                raise Unavailable(f"this build has no {flag.split('=')[0]}")
        return Exporter(*self.flags, binary=self.binary)


class WithProfile(WithFlags):
    """The same while a profile of all services is taken, which a page is asked for."""

    def __init__(self, path, program):
        super().__init__("--collector.profiles")
        self._options = {"path": path, "program": program}

    def __call__(self):
        exporter = super().__call__()
        try:
            profiles.begun(profiles.take_pprof, exporter, PROFILE_SECONDS, **self._options)
        except BaseException:  # whatever it is, nothing is left attached
            exporter.stop()
            raise
        return exporter


VARIANTS = {
    "none": Nothing,
    "exporter": WithFlags(),
    "profiles": WithFlags("--collector.profiles"),
    "profile-cpu": WithProfile(profiles.PATH, "profiles_sample"),
    "profile-offcpu": WithProfile(profiles.OFFCPU, "profiles_waits"),
    "syscall": WithFlags("--requests.backend=syscall"),
    "uprobe": WithFlags("--mutex.backend=uprobe", "--log.level=debug"),
    "bpftrace-requests": lambda: Bpftrace("requests.bt"),
    "bpftrace-switches": lambda: Bpftrace("switches.bt"),
    "bpftrace-locks": lambda: Bpftrace("locks.bt"),
    "bcc-syscount": lambda: Tool("syscount", "-L", "-i", "3600"),
    "bcc-tcprtt": lambda: Tool("tcprtt", "-i", "3600"),
    "bcc-runqlat": lambda: Tool("runqlat", "3600"),
    "bcc-cpudist": lambda: Tool("cpudist", "3600"),
    "bcc-funclatency": lambda: Tool("funclatency", "-u", f"{LIBC}:pthread_mutex_lock"),
    "bcc-klockstat": lambda: Tool("klockstat", "-i", "3600"),
    "bcc-profile": lambda: Silent(os.cpu_count(), "perf_event", "profile-bpfcc", "-F", HZ, "3600"),
    "bcc-offcputime": lambda: Silent(1, "bpf_link", "offcputime", "3600"),
    "bpftrace-profile": lambda: Bpftrace("profile.bt"),
    "perf-record-fp": lambda: PerfRecord("fp"),
    "perf-record-dwarf": lambda: PerfRecord("dwarf"),
}

BASE_OF = {"exporter": "base", "syscall": "base-syscall"}


def add_base(binary):
    """Another build of the exporter, which this one is measured beside: the variants of BASE_OF."""
    for name, base in BASE_OF.items():
        VARIANTS[base] = WithFlags(*VARIANTS[name].flags, binary=binary)
