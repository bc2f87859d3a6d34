# SPDX-License-Identifier: Apache-2.0
"""What must hold of every scrape, and of two that follow each other: in words, what does not."""

from collections import defaultdict

COUNTER_ENDINGS = ("_total", "_bucket", "_count", "_sum")
# Losses that have a cause outside of the exporter: a process that is gone before it can be looked
# at, a connection that was there before the exporter, or a request of one, a switch or an end of
# which the kernel did not tell.
EXPLAINED_LOSSES = {
    "identity_unreadable",
    "connection_untracked",
    "request_unpaired",
    "program_skipped",
    "slot_stale",
    "switch_unseen",
    "end_unseen",
}
STATES_TOLERANCE = 0.01


def _is_counter(name):
    return name.endswith(COUNTER_ENDINGS) and not name.startswith("go_")


def _row(key):
    """Whose counter it is: its workload and port or pool; nothing for the exporter's own."""
    return frozenset(label for label in key[1] if label[0] in ("workload", "port", "pool"))


def _text(key):
    return key[0] + "{" + ",".join(f"{k}={v}" for k, v in sorted(key[1])) + "}"


class Counters:
    """
    They never go back while their row lives. It may have ended, and a new one begun, only if all of
    it stood still for the grace period.
    """

    def __init__(self, grace_seconds):
        self._grace_seconds = grace_seconds
        self._values = {}
        self._at = 0.0
        self._grown = {}  # {row: time after which one of its counters has last grown}

    def backward(self, scrape):
        """Counters of @scrape that are smaller than at the one before, without excuse."""
        old, at = self._values, self._at
        self._values = {key: n for key, n in scrape.series.items() if _is_counter(key[0])}
        self._at = scrape.began
        wrong = [
            f"{_text(key)} went from {old[key]} to {value}"
            for key, value in self._values.items()
            if value < old.get(key, value) and not self._may_have_ended(_row(key), scrape.ended)
        ]
        for key, value in self._values.items():
            if value != old.get(key):
                self._grown[_row(key)] = at
        return wrong

    def _may_have_ended(self, row, now):
        return row and now - self._grown[row] > self._grace_seconds


def _buckets(scrape):
    """{(histogram, labels without le): [(le, value)]}"""
    found = defaultdict(list)
    for (name, labels), value in scrape.series.items():
        if name.endswith("_bucket"):
            rest = frozenset(label for label in labels if label[0] != "le")
            found[(name.removesuffix("_bucket"), rest)].append((float(dict(labels)["le"]), value))
    return found


def inconsistent_histograms(scrape):
    wrong = []
    for (name, labels), buckets in _buckets(scrape).items():
        values = [value for _, value in sorted(buckets)]
        count = scrape.series[(f"{name}_count", labels)]
        if values != sorted(values) or values[-1] != count:
            wrong.append(f"{_text((name, labels))}: buckets {values[-3:]}, count {count}")
    return wrong


def unequal_counts(scrape):
    """Endpoints whose three request histograms have not the same number of observations."""
    names = [f"workload_request_{part}_seconds_count" for part in ("queue", "service", "duration")]
    counts = defaultdict(set)
    for name in names:
        for labels, value in scrape.rows(name):
            counts[labels["workload"], labels["port"]].add(value)
    return [f"{endpoint}: {sorted(seen)} requests" for endpoint, seen in counts.items()
            if len(seen) > 1]  # fmt: skip


def wrong_states(old, new, workload):
    """Pools of @workload without starts or exits whose states do not add up to threads x time."""
    shortest, longest = new.began - old.ended, new.ended - old.began
    wrong = []
    for name in {row[0]["pool"] for row in new.rows("workload_threads", workload=workload)}:
        pool = {"workload": workload, "pool": name}
        if any(
            old.sum(f"workload_threads_{what}_total", **pool)
            != new.sum(f"workload_threads_{what}_total", **pool)
            for what in ("started", "exited")
        ):
            continue
        threads = new.sum("workload_threads", **pool)
        before, after = (s.sum("workload_thread_seconds_total", **pool) for s in (old, new))
        seconds = after - before
        low, high = threads * shortest, threads * longest
        if not low * (1 - STATES_TOLERANCE) <= seconds <= high * (1 + STATES_TOLERANCE):
            wrong.append(f"{pool}: {seconds:.3f} s of {threads} threads in {shortest:.3f} s")
    return wrong


def unexplained_losses(scrape):
    return [
        f"{row[1]} lost: {row[0]['reason']}"
        for row in scrape.rows("workload_exporter_dropped_total")
        if row[1] and row[0]["reason"] not in EXPLAINED_LOSSES
    ]


def failed_collectors(scrape):
    return [
        f"collector {row[0]['collector']} failed"
        for row in scrape.rows("workload_scrape_collector_success")
        if not row[1]
    ]


def of_one(scrape):
    return [
        *inconsistent_histograms(scrape),
        *unequal_counts(scrape),
        *unexplained_losses(scrape),
        *failed_collectors(scrape),
    ]


def growth(points):
    """By how much a straight line through [(time, value)] rises from the first time to the last."""
    count = len(points)
    if count < 3:
        return 0.0
    mean_time = sum(time for time, _ in points) / count
    mean = sum(value for _, value in points) / count
    variance = sum((time - mean_time) ** 2 for time, _ in points)
    slope = sum((time - mean_time) * (value - mean) for time, value in points) / variance
    return slope * (points[-1][0] - points[0][0])
