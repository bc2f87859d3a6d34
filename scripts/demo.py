#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A thread-pool service under load, watched by the exporter, as a live table in the terminal.

Starts build/workload_exporter, then the bundled pool_server with pool_client as its load, in phases
that show different troubles, and scrapes the exporter every second. Needs nothing but the standard
library. Ends on Ctrl-C, on SIGTERM or after --seconds, and takes only its own processes with it.
"""
import argparse
import collections
import math
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

STATES = ("running", "runnable", "lock", "disk", "network", "wait", "sleep", "idle")
MARKS = dict(zip(STATES, "RrLDNWS."))
COLOURS = dict(zip(STATES, (32, 33, 31, 35, 36, 34, 37, 90)))
BAR = 40
WINDOW_S = 5
POOLS_SHOWN = 4
START_S = 60

Phase = collections.namedtuple("Phase", "name server client text look")

PHASES = (
    Phase("few clients", {"workers": 4, "service-us": 40000}, {"clients": 2},
          "2 clients, 4 workers, 40 ms of work per request",
          "utilization is near 50 %, the queue is empty, and requests take 40 ms in all."),
    Phase("too few threads", {"workers": 4, "service-us": 40000}, {"clients": 20},
          "20 clients, 4 workers, 40 ms of work per request",
          "16 requests are queued and utilization is 100 %, but service is as fast as before: "
          "requests wait for a thread."),
    Phase("more threads", {"workers": 20, "service-us": 40000}, {"clients": 20},
          "20 clients, 20 workers, 40 ms of work per request",
          "the same load with 20 threads: five times the rate, nothing queued."),
    Phase("hot lock", {"workers": 8, "service-us": 2000, "lock-us": 4000}, {"clients": 8},
          "8 clients, 8 workers, 4 ms per request under one mutex",
          "service has become slow and the threads are in `lock`: more threads would only make "
          "that queue longer."),
)

# How the exporter is run: it ends with this process, however that ends, because a companion waits
# for the end of the pipe that is its standard input. A signal to sudo would need privileges.
LEASH = 'exec 3<&0; (cat <&3; kill -TERM $$) >/dev/null 2>&1 & exec "$@" 3<&- </dev/null'

SAMPLE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)",?')


class Stop(BaseException):
    """Time to end: a signal, or --seconds."""


class Failure(Exception):
    """What the user should read; the demo ends with status 1."""


# --- the numbers ---------------------------------------------------------------------------------


class Scrape:
    """The samples of one scrape: name -> [(labels, value)]."""

    def __init__(self, text, at):
        self.at = at
        self.samples = collections.defaultdict(list)
        for line in text.splitlines():
            match = SAMPLE.match(line)
            if match:
                name, labels, value = match.groups()
                self.samples[name].append((dict(LABEL.findall(labels or "")), float(value)))

    def select(self, name, **want):
        return [(labels, value) for labels, value in self.samples.get(name, ())
                if all(labels.get(key) == text for key, text in want.items())]

    def total(self, name, **want):
        return sum(value for _, value in self.select(name, **want))

    def buckets(self, family, **want):
        found = collections.defaultdict(float)
        for labels, value in self.select(family + "_bucket", **want):
            found[float(labels["le"])] += value
        return found


class Window:
    """Two scrapes and what happened between them: as rate() and increase() over that time."""

    def __init__(self, old, new):
        self.old, self.new = old, new
        self.seconds = new.at - old.at

    def increase(self, name, **want):
        return max(0.0, self.new.total(name, **want) - self.old.total(name, **want))

    def rate(self, name, **want):
        return self.increase(name, **want) / self.seconds

    def quantile(self, q, family, **want):
        old, new = self.old.buckets(family, **want), self.new.buckets(family, **want)
        return histogram_quantile(q, {le: count - old.get(le, 0) for le, count in new.items()})


def histogram_quantile(q, buckets):
    """PromQL's interpolation over cumulative classic buckets {le: count}; NaN without samples."""
    bounds = sorted(buckets)
    if len(bounds) < 2 or bounds[-1] != math.inf or buckets[math.inf] <= 0:
        return math.nan
    rank = q * buckets[math.inf]
    low, below = 0.0, 0.0
    for bound in bounds[:-1]:
        if buckets[bound] >= rank:
            return low + (bound - low) * (rank - below) / max(buckets[bound] - below, 1e-9)
        low, below = bound, buckets[bound]
    return low


def endpoint_rows(window, port):
    rows = []
    for labels, queued in window.new.select("workload_requests_queued", port=port):
        want = {"workload": labels["workload"], "port": port}
        rows.append({
            "workload": labels["workload"],
            "name": labels["workload"] + ":" + port,
            "rate": window.rate("workload_request_duration_seconds_count", **want),
            "queued": queued,
            "mean": window.rate("workload_request_queue_seconds_sum", **want),
            "times": [window.quantile(q, "workload_request_%s_seconds" % part, **want)
                      for part in ("queue", "service") for q in (0.5, 0.99)],
        })
    return rows


def pool_row(window, want):
    spent = {state: window.increase("workload_thread_seconds_total", state=state, **want)
             for state in STATES}
    total = sum(spent.values())
    return {
        "name": want["pool"],
        "threads": window.new.total("workload_threads", **want),
        "mean": total / window.seconds,
        "shares": {state: part / total if total else 0.0 for state, part in spent.items()},
        "mutex_p99": window.quantile(0.99, "workload_mutex_wait_seconds", **want),
        "waits": window.rate("workload_mutex_wait_seconds_count", **want),
    }


def pool_rows(window, workload):
    """The pools with threads, those that did most first."""
    pools = {labels["pool"] for labels, _ in
             window.new.select("workload_threads", workload=workload)}
    rows = [pool_row(window, {"workload": workload, "pool": pool}) for pool in sorted(pools)]
    rows = [row for row in rows if row["threads"] > 0]
    return sorted(rows, key=lambda row: -row["mean"] * (1 - row["shares"]["idle"]))


# --- the picture ---------------------------------------------------------------------------------


def show_time(seconds):
    if math.isnan(seconds):
        return "-"
    if seconds >= 0.9995:
        return "%.3gs" % seconds
    if seconds >= 0.0009995:
        return "%.3gms" % (seconds * 1e3)
    return "%.3gus" % (seconds * 1e6)


def show_bar(shares, colour):
    """One letter per 1/BAR of the pool's time; the largest remainders fill up what rounding left."""
    cells = {state: int(shares[state] * BAR) for state in STATES}
    spare = sorted(STATES, key=lambda state: cells[state] - shares[state] * BAR)
    for state in spare[:BAR - sum(cells.values())] if any(shares.values()) else ():
        cells[state] += 1
    parts = [(MARKS[state] * cells[state], COLOURS[state]) for state in STATES if cells[state]]
    if not colour:
        return "".join(text for text, _ in parts)
    return "".join("\033[%dm%s\033[0m" % (code, text) for text, code in parts)


def wrap(text, width):
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = word
        else:
            line = (line + " " + word).strip()
    return lines + [line]


def endpoint_lines(rows):
    yield "%-18s %8s %6s %6s  %9s %6s  %11s %6s" % (
        "ENDPOINT", "RATE", "QUEUED", "MEAN", "QUEUE p50", "p99", "SERVICE p50", "p99")
    for row in rows:
        yield "%-18.18s %6.1f/s %6.0f %6.1f  %9s %6s  %11s %6s" % (
            (row["name"], row["rate"], row["queued"], row["mean"])
            + tuple(map(show_time, row["times"])))


def pool_lines(rows, colour):
    yield "%-13s %7s %5s  " % ("POOL", "THREADS", "UTIL") + " ".join(STATES)
    for row in rows[:POOLS_SHOWN]:
        yield "%-13.13s %7.0f %4.0f%%  " % (
            row["name"], row["threads"], 100 * (1 - row["shares"]["idle"])) + " ".join(
                "%*.0f%%" % (len(state) - 1, 100 * row["shares"][state]) for state in STATES)
        line = "  " + show_bar(row["shares"], colour)
        if row["waits"]:
            line += "  mutex p99 %s, %.0f waits/s" % (show_time(row["mutex_p99"]), row["waits"])
        yield line
    if len(rows) > POOLS_SHOWN:
        yield "  and %d pools more" % (len(rows) - POOLS_SHOWN)


def frame(view, colour):
    """The lines of one picture: (text, heading?)."""
    phase, endpoints, pools = view["phase"], view["endpoints"], view["pools"]
    head = "workload_exporter demo   %s" % view["url"]
    yield "%-70s %8s" % (head, "%3.0f s" % view["elapsed"]), True
    yield "Phase %d of %d, %s: %s" % (view["number"], len(PHASES), phase.name, phase.text), False
    look = wrap("Look: " + phase.look, 79)
    for line in (look + ["", ""])[:2]:
        yield line, False
    yield "", False
    for number, line in enumerate(endpoint_lines(endpoints)):
        yield line, number == 0
    if not endpoints:
        yield "  (the service has just been started)", False
    yield "", False
    for number, line in enumerate(pool_lines(pools, colour)):
        yield line, number == 0
    yield "", False
    yield "QUEUED: arrived, not yet read by a thread, now. MEAN: the same over the last %d s" \
        % WINDOW_S, False
    yield "(Little's law). UTIL: thread time that was not idle. Bar: R running, r runnable,", False
    yield "L lock, D disk, N network, W wait, S sleep, . idle.   Ctrl-C ends it.", False


class Screen:
    """A terminal, redrawn in place."""

    def __init__(self, out):
        self.out = out
        self.height = 0
        self.colour = "NO_COLOR" not in os.environ
        self.out.write("\033[?25l")

    def show(self, view):
        width, rows = shutil.get_terminal_size()
        lines = []
        for text, heading in list(frame(view, self.colour))[:max(1, rows - 1)]:
            text = text if "\033" in text else text[:width]
            lines.append(("\033[1m%s\033[0m" if heading else "%s") % text + "\033[K\n")
        up = "\033[%dA" % self.height if self.height else ""
        self.out.write(up + "\r" + "".join(lines) + "\033[J")
        self.out.flush()
        self.height = len(lines)

    def close(self):
        self.out.write("\033[0m\033[?25h")
        self.out.flush()


class Lines:
    """No terminal: one plain line per scrape."""

    def __init__(self, out):
        self.out = out
        self.number = 0

    def show(self, view):
        if view["number"] != self.number:
            self.number = view["number"]
            self.out.write("phase %d, %s: %s\n" % (
                self.number, view["phase"].name, view["phase"].text))
        parts = ["%3.0f s" % view["elapsed"]]
        for row in view["endpoints"]:
            parts.append("%s %.1f/s queued %.0f mean %.1f queue p50 %s p99 %s service p50 %s p99 %s"
                         % ((row["name"], row["rate"], row["queued"], row["mean"])
                            + tuple(map(show_time, row["times"]))))
        for row in view["pools"][:POOLS_SHOWN]:
            busy = " ".join("%s %.0f%%" % (state, 100 * row["shares"][state])
                            for state in STATES if row["shares"][state] >= 0.005)
            parts.append("%s %.0f threads %s mutex p99 %s" % (
                row["name"], row["threads"], busy, show_time(row["mutex_p99"])))
        self.out.write(" | ".join(parts) + "\n")
        self.out.flush()

    def close(self):
        pass


# --- the processes -------------------------------------------------------------------------------


def process_end(process, seconds=3):
    """Waits for a process that was told to end; then insists."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Exporter:
    """The exporter, through sudo if need be. Its log is kept; its end is noticed."""

    def __init__(self, path):
        command = ["sh", "-c", LEASH, "sh", path, "--web.listen-address=127.0.0.1:0"]
        if os.geteuid() != 0 and shutil.which("sudo"):
            command = ["sudo", "--"] + command
        self.log = collections.deque(maxlen=30)
        self.urls = queue.Queue()
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stderr:
            text = line.decode("utf-8", "replace").rstrip()
            self.log.append(text)
            match = re.search(r"listening on (http://[^/\s\"]+)", text)
            if match:
                self.urls.put(match.group(1))
        self.urls.put(None)

    def failure(self, what):
        self.reader.join(1)
        return Failure("\n".join(list(self.log) + ["demo: " + what]))

    def url(self):
        """Waits generously: sudo may be asking for a password."""
        try:
            url = self.urls.get(timeout=START_S)
        except queue.Empty:
            raise self.failure("the exporter does not say where it listens") from None
        if not url:
            raise self.failure("the exporter did not start")
        return url

    def scrape(self, url):
        try:
            with urllib.request.urlopen(url + "/metrics", timeout=5) as answer:
                return Scrape(answer.read().decode("utf-8"), time.monotonic())
        except (OSError, ValueError) as error:
            self.process.poll()
            raise self.failure("no answer from the exporter: %s" % error) from None

    def close(self):
        self.process.stdin.close()
        process_end(self.process, 10)


class Service:
    """The server and its load, started anew for each phase on the same port."""

    def __init__(self, folder):
        self.folder = folder
        self.port = "0"
        self.server = self.client = None

    def start(self, name, options, **pipes):
        command = [os.path.join(self.folder, name)]
        command += ["--%s=%s" % option for option in options.items()]
        try:
            return subprocess.Popen(command, stderr=subprocess.DEVNULL, **pipes)
        except OSError as error:
            raise Failure("demo: cannot start %s: %s" % (command[0], error.strerror)) from None

    def run(self, phase, seconds):
        self.close()
        self.server = self.start("pool_server", dict(phase.server, port=self.port),
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        ready = self.server.stdout.readline().decode("utf-8", "replace").split()
        if len(ready) != 2 or ready[0] != "ready":
            raise Failure("demo: pool_server did not start")
        self.port = ready[1]
        # The limit is for the case that this process is killed and cannot end it.
        self.client = self.start("pool_client",
                                 dict(phase.client, port=self.port, seconds=int(seconds) + 30),
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def close(self):
        if self.client:
            self.client.terminate()
            process_end(self.client)
        if self.server:
            self.server.stdin.close()
            process_end(self.server)
            self.server.stdout.close()
        self.server = self.client = None


# --- all together --------------------------------------------------------------------------------


def watch(exporter, service, display, options):
    url = exporter.url()
    begin = time.monotonic()
    for count in range(10 ** 9):
        phase = PHASES[count % len(PHASES)]
        service.run(phase, options.phase_seconds)
        history = collections.deque([exporter.scrape(url)], maxlen=WINDOW_S + 1)
        until = history[0].at + options.phase_seconds
        while time.monotonic() < until:
            time.sleep(max(0.0, history[-1].at + 1 - time.monotonic()))
            if options.seconds and time.monotonic() - begin >= options.seconds:
                return
            history.append(exporter.scrape(url))
            window = Window(history[0], history[-1])
            endpoints = endpoint_rows(window, service.port)
            pools = [row for name in sorted({row["workload"] for row in endpoints})
                     for row in pool_rows(window, name)]
            display.show({"phase": phase, "number": count % len(PHASES) + 1, "url": url,
                          "elapsed": history[-1].at - begin, "endpoints": endpoints,
                          "pools": pools})


def run(options):
    display = Screen(sys.stdout) if sys.stdout.isatty() else Lines(sys.stdout)
    opened = [display]
    try:
        exporter = Exporter(os.path.join(options.build, "workload_exporter"))
        opened.append(exporter)
        service = Service(os.path.join(options.build, "workloads"))
        opened.append(service)
        watch(exporter, service, display, options)
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        for part in reversed(opened):
            part.close()


def stop(_number, _frame):
    raise Stop


def main():
    parser = argparse.ArgumentParser(description="A service under load, watched live.")
    parser.add_argument("--build", default="build", help="where the binaries are")
    parser.add_argument("--seconds", type=float, help="end by itself after so long")
    parser.add_argument("--phase-seconds", type=float, default=12, help="length of a phase")
    options = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    try:
        run(options)
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except Stop:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
