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
from exporter import Exporter, run_to_end
from paths import HERE

READY_SECONDS = 20
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
            wrong = self._search(".*(fail|error|denied|no such).*") or self._search(".+")
            raise Unavailable(wrong[0] if wrong else "ends at once")

    def _wait_until_attached(self):
        self._wait_for_line("tracing|ctrl")

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

    def _events(self):
        """How many it holds; it opens and closes other files meanwhile."""
        count = 0
        for link in Path(f"/proc/{self.pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                count += "perf_event" in os.readlink(link)
        return count

    def _wait_until_attached(self):
        wanted = int(self._wait_for_line(r"Attaching (\d+) probe")[1]) + os.cpu_count()
        deadline = time.monotonic() + READY_SECONDS
        while self._events() < wanted:
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise Unavailable("it does not attach all probes")
            time.sleep(0.02)


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


VARIANTS = {
    "none": Nothing,
    "exporter": WithFlags(),
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
}

BASE_OF = {"exporter": "base", "syscall": "base-syscall"}


def add_base(binary):
    """Another build of the exporter, which this one is measured beside: the variants of BASE_OF."""
    for name, base in BASE_OF.items():
        VARIANTS[base] = WithFlags(*VARIANTS[name].flags, binary=binary)
