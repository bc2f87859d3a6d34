# SPDX-License-Identifier: Apache-2.0
"""The exporter as a process of its own: started, scraped and stopped from outside."""

import contextlib
import http.client
import os
import re
import signal
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

import pytest
from exposition import Endpoint, Scrape

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
BINARY = BUILD / "workload_exporter"
# On an emulated machine (tests/kernels) everything takes longer, and tests do less.
EMULATED = "WORKLOAD_TEST_EMULATED" in os.environ
SLOWER = 5 if EMULATED else 1
START_SECONDS = 60 * SLOWER
STOP_SECONDS = 10 * SLOWER
WAIT_SECONDS = 30 * SLOWER
POLL_SECONDS = 0.1
GROWTHS_MAX = 20
# Under `make test-times`, which looks at what else the machine does. Tests with bounds of times on
# what the exporter itself does (marked so) run there with close ones, elsewhere with wide ones.
IS_QUIET = "WORKLOAD_TEST_TIMES" in os.environ


def bound(quiet, busy):
    return quiet if IS_QUIET else busy


# Runs a command behind a seccomp filter that allows all: systemd and containers start theirs so.
BEHIND_A_FILTER = [
    sys.executable,
    "-c",
    """
import ctypes, os, struct, sys
PR_SET_SECCOMP, SECCOMP_MODE_FILTER, BPF_RET, SECCOMP_RET_ALLOW = 22, 2, 0x06, 0x7fff0000
allow = ctypes.create_string_buffer(struct.pack("HBBI", BPF_RET, 0, 0, SECCOMP_RET_ALLOW))
program = ctypes.create_string_buffer(struct.pack("HP", 1, ctypes.addressof(allow)))
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0):
    sys.exit(os.strerror(ctypes.get_errno()))
os.execvp(sys.argv[1], sys.argv[1:])
""",
]


class Exporter:
    """
    Runs until stop(); `log` is what it wrote on standard error so far, line by line, and
    `last_page` what it was scraped last. @launcher is a command that executes the one that
    follows, @binary another build; @options are for Popen.
    """

    started = weakref.WeakSet()  # all of them

    def __init__(self, *arguments, address="127.0.0.1:0", launcher=(), binary=None, **options):
        binary = str(binary or BINARY)
        flags = os.environ.get("WORKLOAD_EXPORTER_FLAGS", "").split()
        command = [*launcher, binary, f"--web.listen-address={address}", *flags, *arguments]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **options
        )
        self.log = []
        self.last_page = ""
        self.started.add(self)
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read_log, daemon=True)
        self._reader.start()
        self.port = int(self.wait_for_log(r"listening on https?://\S+:(\d+)/")[1])

    def ports(self, count):
        """The ports of the first @count addresses on which it listens."""

        def said():
            pattern = r"listening on https?://\S+:(\d+)/"
            found = [re.search(pattern, line or "") for line in self.log]
            return [int(match[1]) for match in found if match]

        with self._changed:
            assert self._changed.wait_for(lambda: len(said()) >= count, START_SECONDS), self.log
        return said()

    def _read_log(self):
        for line in self.process.stderr:
            with self._changed:
                self.log.append(line.rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self.log.append(None)
            self._changed.notify_all()

    def _search_log(self, pattern):
        for line in self.log:
            match = line is not None and re.search(pattern, line)
            if match:
                return match
        return None

    def wait_for_log(self, pattern):
        with self._changed:
            found = self._changed.wait_for(
                lambda: self._search_log(pattern) or None in self.log, START_SECONDS
            )
            match = self._search_log(pattern)
        if not found or not match:
            self.stop(signal.SIGKILL)
            raise AssertionError(f"exporter never said {pattern!r}: {self.log}")
        return match

    @property
    def backend(self):
        """Where requests are observed: "socket" or "syscall"."""
        return self.wait_for_log(r"requests on \((\w+) backend\)")[1]

    @property
    def pid(self):
        return self.process.pid

    def bpf_ids(self, kind, pid=None):
        """
        Of what it holds, or process @pid of it; @kind: prog or map. Other exporters have some of
        the same names.
        """
        found = set()
        for path in Path(f"/proc/{pid or self.pid}/fdinfo").iterdir():
            with contextlib.suppress(FileNotFoundError):  # some come and go
                found.update(re.findall(rf"^{kind}_id:\s*(\d+)$", path.read_text(), re.MULTILINE))
        return {int(number) for number in found}

    def request(self, path="/metrics", method="GET", **headers):
        """(status, headers, body as text)"""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request(method, path, headers=headers)
            response = connection.getresponse()
            return response.status, response.headers, response.read().decode()
        finally:
            connection.close()

    def scrape(self):
        began = time.monotonic()
        status, _, text = self.request()
        ended = time.monotonic()
        assert status == 200
        self.last_page = text
        return Scrape(text, began, ended)

    def endpoint(self, port):
        return Endpoint(self.scrape(), port)

    def wait_until(self, holds, seconds=WAIT_SECONDS):
        """Scrapes until holds(scrape); returns that scrape, or fails with the last one's value."""
        deadline = time.monotonic() + seconds
        while True:
            scrape = self.scrape()
            seen = holds(scrape)
            if seen:
                return scrape
            assert time.monotonic() < deadline, f"never came true, last: {seen!r}"
            time.sleep(POLL_SECONDS)

    def settled(self, holds):
        """
        The scrape after the first of which holds(scrape). What led to that is in all of its
        metrics: of one that is read while it happens they may tell different instants.
        """
        self.wait_until(holds)
        return self.scrape()

    def wait_for_equal(self, see, expected, seconds=WAIT_SECONDS):
        """Scrapes until see(scrape) == expected; the failure shows what it was instead."""
        deadline = time.monotonic() + seconds
        while True:
            scrape = self.scrape()
            seen = see(scrape)
            if seen == expected or time.monotonic() > deadline:
                assert seen == expected, f"lost: {scrape.losses()}"
                return scrape
            time.sleep(POLL_SECONDS)

    def wait_for_endpoint(self, port, see, expected, seconds=WAIT_SECONDS, **labels):
        """The same for see(Endpoint); returns the endpoint."""
        scrape = self.wait_for_equal(lambda s: see(Endpoint(s, port, **labels)), expected, seconds)
        return Endpoint(scrape, port, **labels)

    def wait_for_end(
        self,
        port,
        requests,
        abandoned=(0, 0),
        unrequested=0,
        goodbyes=0,
        unanswered=0,
        one_way=0,
        **labels,
    ):
        """
        Waits until exactly this was counted and nothing is open; returns the endpoint, of a scrape
        that began after that.
        """
        expected = {
            "requests": (requests,) * 3,
            "abandoned": abandoned,
            "goodbyes": goodbyes,
            "unrequested": unrequested,
            "unanswered": unanswered,
            "one way": one_way,
            "open": (0, 0, 0, 0),
        }
        unseen = self.ends_unseen()
        try:
            self.wait_for_endpoint(port, Endpoint.outcome, expected, **labels)
        except AssertionError:
            self._skip_if_hidden(Endpoint(self.scrape(), port, **labels).outcome(), expected, unseen)
            raise
        end = Endpoint(self.scrape(), port, **labels)
        assert end.outcome() == expected
        return end

    def ends_unseen(self):
        return self.scrape().losses().get("end_unseen", 0)

    def _skip_if_hidden(self, outcome, expected, unseen):
        """
        Skips the test if all that is missing of @expected are ends of connections that the machine
        hid from every program (bpf/README.md), and the exporter counts as many that it did.
        """
        kinds = ("goodbyes", "unanswered", "one way")
        ended, wanted = (sum(o["abandoned"]) + sum(o[k] for k in kinds) for o in (outcome, expected))
        if ended < wanted and all(outcome[k] == expected[k] for k in ("requests", "open")):
            self.wait_until(lambda s: self.ends_unseen() - unseen >= wanted - ended)
            pytest.skip(f"inconclusive: this machine hid {wanted - ended} ends of connections")

    def workload_of(self, port):
        """
        The name under which the exporter shows who listens on @port: where the kernel has chosen it,
        one that has ended may have had it as well.
        """

        def listening(scrape):
            names = [row["workload"] for row, _ in scrape.rows("workload_connections", port=port)]
            if len(names) < 2:
                return names
            processes = scrape.rows("workload_processes")
            return [row["workload"] for row, alive in processes if alive and row["workload"] in names]

        (workload,) = listening(self.wait_until(listening))
        return workload

    def cpu_seconds(self):
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def cpu_run_ns(self):
        """Time on a CPU of all its threads, to the nanosecond."""
        return sum(
            int((task / "schedstat").read_text().split()[0])
            for task in Path(f"/proc/{self.pid}/task").iterdir()
        )

    def resident_kib(self):
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0])

    def expect_no_growth(self, work, most_kib):
        """
        Memory that @work() leaks grows by more than @most_kib each time. It grows with the services
        of other tests, too, but not for ever.
        """
        growths = []
        while not growths or growths[-1] >= most_kib:
            assert len(growths) < GROWTHS_MAX, f"it grows: {growths} KiB"
            before = self.resident_kib()
            work()
            growths.append(self.resident_kib() - before)

    def stop(self, with_signal=signal.SIGTERM):
        """The exit status; killed if it does not end by itself."""
        if self.process.poll() is None:
            self.process.send_signal(with_signal)
        try:
            return self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            self._reader.join(STOP_SECONDS)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def run_to_end(*arguments, seconds=START_SECONDS, binary=None):
    """Runs the exporter where it is expected to end by itself."""
    return subprocess.run(
        [str(binary or BINARY), *arguments],
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
