# SPDX-License-Identifier: Apache-2.0
"""
Where locks are waited for, as metrics: beside what threads have measured by their own clocks, and
beside the exact metrics of the same time.
"""

import re
from collections import Counter

import pytest

from exporter import SLOWER, Exporter
from profiles import wait_until_read
from services import Service

METRIC = "workload_lock_site_wait_seconds_total"
EXACT = "workload_mutex_wait_seconds_sum"
# Names are asked for file by file, of all services of the machine.
KNOW_SECONDS = 180 * SLOWER
SITE = re.compile(r"(.+)\+0x[0-9a-f]+ \[[^/\]]+\]")


@pytest.fixture(scope="module")
def looking():
    flags = ("--collector.profiles", "--profiles.lock-sites")
    with Exporter(*flags, f"--workloads.grace-period={10 * SLOWER}s") as running:
        yield running
        assert running.stop() == 0


def seconds_by_function(scrape, workload):
    """And of `other`."""
    found = Counter()
    for labels, seconds in scrape.rows(METRIC, workload=workload):
        function = SITE.fullmatch(labels["site"])
        found[function[1] if function else labels["site"]] += seconds
    return found


def expect_whole(scrape, workload):
    """All sites have what the exact metric has, but for the last digits of floating point."""
    exact = scrape.sum(EXACT, workload=workload)
    assert scrape.sum(METRIC, workload=workload) == pytest.approx(exact, rel=1e-12)


class Waits:
    """Runs of a service, with their times by its own clocks and by site."""

    def __init__(self, exporter, start, program, **options):
        self.exporter = exporter
        self.service = start(Service, program, **options)
        self.workload = exporter.workload_of(self.service.port)
        self.own = Counter()

    def run(self, rounds):
        for name, value in self.service.ask(f"run {rounds}").items():
            self.own[name] += value
        return self.sites(self.exporter.scrape())

    def know(self, *names):
        """Until they are shown, and have been waited for since."""
        wait_until_read(self.exporter, self.workload)

        def known(_):
            found = self.run(2)
            return all(any(name in site and found[site] for site in found) for name in names)

        self.exporter.wait_until(known, KNOW_SECONDS)

    def sites(self, scrape):
        expect_whole(scrape, self.workload)
        found = seconds_by_function(scrape, self.workload)
        print(f"sites {dict(found)}\nown {dict(self.own)}")
        return found

    def block(self, seconds):
        """A thread waits for so long."""
        self.service.ask("block")
        self.exporter.wait_until(
            lambda s: s.sum("workload_threads", workload=self.workload, state="lock") == 1
        )
        ended = self.exporter.scrape().at + seconds
        before = self.sites(self.exporter.wait_until(lambda s: s.at > ended)).total()
        self.service.ask("nothing")
        told = self.exporter.wait_until(lambda s: self.sites(s).total() >= before + seconds)
        return self.sites(told)


@pytest.mark.parametrize("program", ["waiter", "waiter_musl"])
def test_each_site_is_shown_and_all_of_them_have_what_the_exact_metric_has(looking, start, program):
    waits = Waits(looking, start, program, shorts=50)
    waits.know("long_wait", "short_wait")
    before = waits.run(1)
    after = waits.run(10)
    for name in ("long_wait", "short_wait"):
        assert after[name] > before[name]


@pytest.mark.times
def test_each_site_has_the_time_that_threads_measure_there(looking, start):
    """Long waits and short ones of the same threads."""
    waits = Waits(looking, start, "waiter", shorts=50)
    waits.know("long_wait", "short_wait")
    before, own_before = waits.run(1), waits.own.copy()
    after = waits.run(60)
    for name in ("long", "short"):
        own = (waits.own - own_before)[f"{name}_wait_ns"] / 1e9
        gained = after[f"{name}_wait"] - before[f"{name}_wait"]
        assert gained == pytest.approx(own, rel=0.15, abs=0.05), name
    assert after["other"] - before["other"] < 0.02 * (after.total() - before.total())


@pytest.mark.times
def test_a_wait_longer_than_a_scrape_is_told_when_it_ends(looking, start):
    waits = Waits(looking, start, "waiter")
    wait_until_read(looking, waits.workload)
    found = waits.block(4)
    assert found["other"] > 4, "its site is shown from now on"
    assert found["long_wait"] == 0
    after = waits.block(4)
    assert after["long_wait"] > 4
    assert after["other"] == pytest.approx(found["other"], rel=0.01)


def test_functions_of_the_library_of_cpp_are_no_sites_where_they_are_compiled_in(looking, start):
    waits = Waits(looking, start, "guarded")
    waits.know("take_guard", "take_unique")
    found = waits.run(10)
    assert len(found) == 3
    assert all("take_" in site or site == "other" for site in found)


def test_it_is_off_unless_asked_for(profiling, start):
    waits = Waits(profiling, start, "waiter")
    waits.service.ask("run 5")
    scrape = profiling.wait_until(lambda s: s.sum(EXACT, workload=waits.workload) > 0)
    assert not scrape.rows(METRIC)


def test_without_profiles_there_are_none_which_is_said():
    with Exporter("--profiles.lock-sites") as running:
        running.wait_for_log(r"--profiles\.lock-sites: .*--collector\.profiles")
        assert not running.scrape().rows(METRIC)
