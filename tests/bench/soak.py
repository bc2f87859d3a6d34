#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
Lets the exporter live with services in trouble for a long time: `make soak SECONDS=600`.

Every few seconds it must still tell the truth and have no more memory than after warming up. In the
middle it must have no more in its maps than a fresh exporter, is killed, must leave nothing
attached, and starts anew. Fails with what was wrong.
"""

import argparse
import contextlib
import os
import signal
import sys
import time
from pathlib import Path

import paths  # noqa: F401 (the helpers of the live tests)
import bpf
import invariants
import loads
import processes
import unrest
from exporter import Exporter
from exposition import Endpoint

CHECK_SECONDS = 3
# Half of a life, and this at least, is warming up: until all actors have met in their worst way the
# heap has steps. A shorter life has no growth that could be told from that.
WARM_UP_SECONDS = 60
GONE_SECONDS = 10
SETTLE_SECONDS = 10
RSS_GROWTH_BYTES = 1 << 20
RSS_MAX_BYTES = 24 << 20
# Entries that only the living have. Pools and ports go with their process: those that a living one
# has given up stay, bounded, and a fresh exporter does not know them.
LIVING = ("trees", "threads", "sockets")
ENTRIES_MORE = 8  # than a fresh exporter has: the machine goes on meanwhile
DESCRIPTORS_GROWTH = 4
SCRAPE_SECONDS = 2
GRACE_SECONDS = 15  # several checks: what starts anew must have stood still at all of them
FLAGS = (f"--workloads.grace-period={GRACE_SECONDS}s",)
FINDINGS_MAX = 30


def descriptors(pid):
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def entries(scrape):
    """{map: entries}"""
    rows = scrape.rows("workload_exporter_map_entries")
    return {labels["map"]: value for labels, value in rows}


class Life:
    """One exporter from its start to its end, watched."""

    def __init__(self, steady):
        self._steady = steady
        with steady.quiet:
            self._before = steady.requests
            self.exporter = Exporter(*FLAGS)
        self.samples = []  # [(time, {what: value})]
        self.findings = []
        self._last = None
        self._counters = invariants.Counters(GRACE_SECONDS)

    def address(self):
        return ("127.0.0.1", self.exporter.port)

    def _sample(self, scrape):
        numbers = {
            "rss": processes.tree_rss_bytes(self.exporter.pid),
            "descriptors": descriptors(self.exporter.pid),
        }
        self.samples.append((scrape.at, {**numbers, **entries(scrape)}))

    def check(self):
        scrape = self.exporter.scrape()
        self.findings += invariants.of_one(scrape)
        if scrape.ended - scrape.began > SCRAPE_SECONDS:
            self.findings.append(f"a scrape took {scrape.ended - scrape.began:.1f} s")
        self.findings += self._counters.backward(scrape)
        if self._last:
            name = self._steady.server.name
            self.findings += invariants.wrong_states(self._last, scrape, name)
        self._last = scrape
        self._sample(scrape)

    def _steady_count(self):
        """The service that nothing happens to has every request counted."""
        with self._steady.quiet:
            wanted = self._steady.requests - self._before
            deadline = time.monotonic() + SETTLE_SECONDS
            while True:
                seen = Endpoint(self.exporter.scrape(), self._steady.server.port).counts()
                if seen == (wanted,) * 3 or time.monotonic() > deadline:
                    break
                time.sleep(0.2)
        if seen != (wanted,) * 3:
            self.findings.append(f"counted {seen} requests, the client {wanted}")

    def _growth(self, what):
        began, ended = self.samples[0][0], self.samples[-1][0]
        warm = began + max(WARM_UP_SECONDS, (ended - began) / 2)
        return invariants.growth([(at, numbers[what]) for at, numbers in self.samples if at > warm])

    def _grown(self):
        for what, bound in (("rss", RSS_GROWTH_BYTES), ("descriptors", DESCRIPTORS_GROWTH)):
            if self._growth(what) > bound:
                self.findings.append(f"{what} has grown by {self._growth(what):.0f}")
        rss = max(numbers["rss"] for _, numbers in self.samples)
        if rss > RSS_MAX_BYTES:
            self.findings.append(f"{rss} bytes resident")

    def _left_behind(self, actors):
        """While nobody does anything, its maps hold what those of a fresh exporter hold."""
        with contextlib.ExitStack() as stack:
            for actor in actors:
                stack.enter_context(actor.quiet)
            fresh = stack.enter_context(Exporter(*FLAGS))
            deadline = time.monotonic() + SETTLE_SECONDS
            while True:
                old, new = entries(self.exporter.scrape()), entries(fresh.scrape())
                more = {what: old[what] - new[what] for what in LIVING}
                if max(more.values()) <= ENTRIES_MORE or time.monotonic() > deadline:
                    break
                time.sleep(0.5)
        self.findings += [
            f"{count} {what} more in its maps than a fresh exporter has"
            for what, count in more.items()
            if count > ENTRIES_MORE
        ]

    def end(self, with_signal, actors):
        """Ends it and waits until the kernel has forgotten its programs."""
        self._steady_count()
        self._grown()
        self._left_behind(actors)
        ids = {program["id"] for program in bpf.programs(self.exporter.pid)}
        if not ids:
            self.findings.append("no programs found: nothing can be said of what is left")
        status = self.exporter.stop(with_signal)
        if with_signal == signal.SIGTERM and status:
            self.findings.append(f"ended with {status}: {self.exporter.log[-3:]}")
        deadline = time.monotonic() + GONE_SECONDS
        while ids & bpf.all_program_ids() and time.monotonic() < deadline:
            time.sleep(0.1)
        left = ids & bpf.all_program_ids()
        if left:
            self.findings.append(f"programs {sorted(left)} are still loaded")

    def watch(self, seconds, actors, say):
        end = time.monotonic() + seconds
        while time.monotonic() < end and len(self.findings) < FINDINGS_MAX:
            time.sleep(min(CHECK_SECONDS, seconds / 5))
            self.check()
            self.findings += [actor.failure for actor in actors if actor.failure]
            say(self)


def soak(seconds, say=lambda _: None):
    """
    Two lives of an exporter, the first ended by SIGKILL; what was found wrong, in words. @say is
    called with the life after every check.
    """
    with contextlib.ExitStack() as stack:
        steady = unrest.Steady()
        stack.callback(steady.stop)
        lives = []
        actors = [
            steady,
            unrest.Restarts(),
            unrest.Resets(),
            unrest.Namespaces(),
            unrest.Locking(),
            unrest.Crowding(),
            unrest.Frozen(),
            unrest.SlowScrapers(lambda: lives[-1].address()),
        ]
        for actor in actors[1:]:
            stack.callback(actor.stop)
        for with_signal in (signal.SIGKILL, signal.SIGTERM):
            lives.append(Life(steady))
            stack.callback(lives[-1].exporter.stop)
            for actor in actors:
                if not actor.is_alive() and not actor.failure:
                    actor.start()
            lives[-1].watch(seconds / 2, actors, say)
            lives[-1].end(with_signal, actors)
    idle = [f"{actor.name} never had a turn" for actor in actors if not actor.turns]
    return list(dict.fromkeys([*idle, *(text for life in lives for text in life.findings)]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--seconds", type=float, default=600)
    wanted = parser.parse_args()
    if os.geteuid():
        sys.exit("soak: needs root: it loads BPF programs and makes network namespaces")
    began = time.monotonic()

    def say(life):
        numbers = dict(life.samples[-1][1])
        rss_mib = numbers.pop("rss") / 1048576
        text = "  ".join(f"{what} {number}" for what, number in numbers.items())
        print(f"{time.monotonic() - began:5.0f} s  RSS {rss_mib:.1f} MiB  {text}", flush=True)

    findings = soak(wanted.seconds, say)
    loads.clean()
    if findings:
        sys.exit("soak: WRONG:\n" + "\n".join(findings))
    print("soak: memory and maps flat, counters monotone, sums consistent, nothing left attached")


if __name__ == "__main__":
    main()
