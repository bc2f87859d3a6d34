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
        return self.exporter.scrape()

    def know(self):
        """Until its code is read, and its sites have names."""
        wait_until_read(self.exporter, self.workload)
        self.exporter.wait_until(lambda _: len(self.sites(self.run(2))) > 1)

    def sites(self, scrape):
        expect_whole(scrape, self.workload)
        found = seconds_by_function(scrape, self.workload)
        print(f"sites {dict(found)}\nown {dict(self.own)}")
        return found


def test_each_site_has_its_time_and_all_of_them_that_of_the_exact_metric(looking, start):
    waits = Waits(looking, start, "waiter", shorts=50)
    waits.know()
    waits.exporter.wait_until(lambda s: len(waits.sites(waits.run(2))) > 2)
    before, own_before = waits.sites(looking.scrape()), waits.own.copy()
    after = waits.sites(waits.run(25))
    for name in ("long", "short"):
        own = (waits.own - own_before)[f"{name}_wait_ns"] / 1e9
        gained = after[f"{name}_wait"] - before[f"{name}_wait"]
        # Of both their waits for a CPU are in the exact time, and shared out with it.
        assert gained == pytest.approx(own, rel=0.25, abs=0.1), name
    assert after["other"] - before["other"] < 0.02 * (after.total() - before.total())


def test_a_wait_longer_than_a_scrape_is_told_when_it_ends(looking, start):
    waits = Waits(looking, start, "waiter")
    wait_until_read(looking, waits.workload)
    waits.service.ask("block")
    looking.wait_until(
        lambda s: s.sum("workload_threads", workload=waits.workload, state="lock") == 1
    )
    ended = looking.scrape().at + 4
    looking.wait_until(lambda s: s.at > ended)
    assert not waits.sites(looking.scrape()).total()
    waits.service.ask("nothing")
    found = waits.sites(looking.wait_until(lambda s: waits.sites(s).total() > 4))
    assert found["other"] > 4, "its site is shown from now on"
    assert found["long_wait"] == 0
    waits.service.ask("block")
    looking.wait_until(
        lambda s: s.sum("workload_threads", workload=waits.workload, state="lock") == 1
    )
    ended = looking.scrape().at + 4
    looking.wait_until(lambda s: s.at > ended)
    waits.service.ask("nothing")
    after = waits.sites(looking.wait_until(lambda s: waits.sites(s).total() > 8))
    assert after["long_wait"] > 4
    assert after["other"] == pytest.approx(found["other"], rel=0.01)


def test_functions_of_the_library_of_cpp_are_no_sites_where_they_are_compiled_in(looking, start):
    waits = Waits(looking, start, "guarded")
    waits.know()
    looking.wait_until(lambda _: len(waits.sites(waits.run(2))) == 3)
    before, own_before = waits.sites(looking.scrape()), waits.own.copy()
    after = waits.sites(waits.run(100))
    assert len(after) == 3
    for name in ("guard", "unique"):
        (function,) = (function for function in after if f"take_{name}" in function)
        own = (waits.own - own_before)[f"{name}_ns"] / 1e9
        assert after[function] - before[function] == pytest.approx(own, rel=0.25, abs=0.1), name


def test_it_is_off_unless_asked_for(profiling, start):
    waits = Waits(profiling, start, "waiter")
    scrape = waits.run(5)
    assert scrape.sum(EXACT, workload=waits.workload) > 0
    assert not scrape.rows(METRIC)


def test_without_profiles_there_are_none_which_is_said():
    with Exporter("--profiles.lock-sites") as running:
        running.wait_for_log(r"--profiles\.lock-sites: .*--collector\.profiles")
        assert not running.scrape().rows(METRIC)
