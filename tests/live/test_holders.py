# SPDX-License-Identifier: Apache-2.0
"""
Who releases the locks that threads wait for: by a program that knows it, and beside the time in the
state `lock`, which all of it adds up to.
"""

import pytest

from services import Service

METRIC = "workload_lock_blocked_seconds_total"
ROUNDS = 20


class Lender:
    def __init__(self, exporter, start, **options):
        self.exporter = exporter
        self.service = start(Service, "lender", hold_us=20000, **options)
        self.workload = exporter.workload_of(self.service.port)
        exporter.wait_until(lambda s: s.sum("workload_threads", workload=self.workload) == 3)

    def run(self, command, rounds=ROUNDS):
        """Its own seconds of that, and {(pool, holder): seconds}, which are as many as in `lock`."""
        before = self.exporter.scrape()
        own = self.service.ask(f"{command} {rounds}")[f"{command}_wait_ns"] / 1e9
        after = self.exporter.settled(lambda s: self._locked(s, "threads") == 0)
        found = self._rows(after)
        for pair, seconds in self._rows(before).items():
            found[pair] -= seconds
        spent = self._locked(after, "thread_seconds_total")
        assert sum(self._rows(after).values()) == pytest.approx(spent, abs=1e-6)
        return own, {pair: seconds for pair, seconds in found.items() if seconds > 1e-6}

    def _locked(self, scrape, what):
        return scrape.sum(f"workload_{what}", workload=self.workload, state="lock")

    def _rows(self, scrape):
        return {
            (labels["pool"], labels["holder_pool"]): seconds
            for labels, seconds in scrape.rows(METRIC, workload=self.workload)
        }


@pytest.fixture
def lender(exporter, start):
    return Lender(exporter, start)


@pytest.mark.parametrize(("command", "pair"), [("lend", ("taker", "owner")), ("return", ("owner", "taker"))])
def test_a_wait_is_of_the_pool_that_released_the_lock(lender, command, pair):
    own, found = lender.run(command)
    assert found.keys() == {pair}
    # Until the thread runs again it waits for a CPU, which is another state.
    assert 0 < found[pair] <= own


@pytest.mark.times
def test_a_wait_is_as_long_as_the_thread_says(lender):
    own, found = lender.run("lend")
    assert found["taker", "owner"] == pytest.approx(own, rel=0.1)


def test_threads_that_are_no_workers_have_pools_as_well(lender):
    own, found = lender.run("give")
    ((waits, holds),) = found
    assert waits == "taker"
    assert holds not in ("owner", "taker", "other")
    assert 0 < found[waits, holds] <= own


def test_a_wait_that_nobody_ends_is_of_none(lender):
    own, found = lender.run("expire", 20)
    assert found.keys() == {("taker", "other")}
    assert 0 < found["taker", "other"] <= own


def test_holders_beyond_the_seventh_are_other(lender):
    """And what they have released is counted all the same."""
    for i, name in enumerate("abcdefghij"):
        lender.service.ask(f"as {name}")
        own, found = lender.run("lend", 5)
        ((pool, holder),) = found
        assert (pool, holder) == ("taker", name if i < 7 else "other")
        assert 0 < found[pool, holder] <= own


@pytest.mark.parametrize("mode", ["mutex", "robust", "rwlock", "pi"])
def test_what_all_have_released_is_the_time_at_locks(exporter, start, mode):
    """Of each kind of lock."""
    server = start(Service, "locker", mode=mode, threads=4, hold_us=500, think_us=100)
    workload = exporter.workload_of(server.port)
    server.ask("start")
    exporter.wait_until(lambda s: s.sum("workload_mutex_wait_seconds_count", workload=workload) > 200)
    server.ask("finish")
    end = exporter.settled(
        lambda s: not s.sum("workload_threads", workload=workload, state="lock")
    )
    spent = end.sum("workload_thread_seconds_total", workload=workload, state="lock")
    assert end.sum(METRIC, workload=workload) == pytest.approx(spent, abs=1e-6)
    by_workers = end.sum(METRIC, workload=workload, pool="locker-#", holder_pool="locker-#")
    assert by_workers > 0.9 * spent
