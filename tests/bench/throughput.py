# SPDX-License-Identifier: Apache-2.0
"""Pairs of intervals, one beside nothing and one beside a variant; and what a variant costs."""

import os
import time

import bpf
import pairs
import paths
import processes
from floor import Floor
from hypervisor import stolen_seconds
from variants import BASE_OF, VARIANTS, Unavailable

SETTLE_SECONDS = 3
SCRAPES = 10
STOLEN_MAX = 0.02  # of the CPU time of an interval that counts
TRIES = 5  # of a pair, before a disturbed one is taken after all
MEANS_TOLERANCE = {"service": 0.02, "duration": 0.03}  # that of the live tests


def is_exporter(variant):
    return hasattr(variant, "scrape")


def compare(load, variant, interval):
    """Adds to the interval what the exporter says otherwise than the client, once all has ended."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        scrape = variant.scrape()
        wrong = load.check(scrape, interval)
        if not wrong or time.monotonic() > deadline:
            break
        time.sleep(0.1)
    dropped = {row[0]["reason"]: row[1] for row in scrape.rows("workload_exporter_dropped_total")}
    lost = ", ".join(f"{reason} {count}" for reason, count in dropped.items() if count)
    interval["wrong"] = [f"{each} (dropped: {lost or 'nothing'})" for each in wrong]
    interval["means"] = load.means(scrape, interval) if hasattr(load, "means") else {}


def start_beside(load, name):
    variant = VARIANTS[name]()
    try:
        if is_exporter(variant) and hasattr(load, "prepare"):
            load.prepare(variant)
    except BaseException:
        variant.stop()
        raise
    return variant


def interval_beside(load, name, seconds):
    """One interval beside a variant that starts before it and stops after it."""
    variant = start_beside(load, name)
    try:
        stolen = stolen_seconds()
        interval = load.measure(seconds)
        stolen = stolen_seconds() - stolen
        interval["stolen"] = stolen / interval["seconds"] / os.cpu_count()
        if is_exporter(variant):
            compare(load, variant, interval)
        return interval
    finally:
        variant.stop()


def pair(load, against, name, seconds, variant_first):
    """(interval beside @against, interval beside @name)"""
    order = (name, against) if variant_first else (against, name)
    intervals = {each: interval_beside(load, each, seconds) for each in order}
    return intervals[against], intervals[name]


def _stolen(both):
    return max(interval["stolen"] for interval in both)


def _is_disturbed(both):
    return _stolen(both) > STOLEN_MAX


def pairs_until_undisturbed(load, against, name, seconds, variant_first):
    """The pairs that it took; the last one counts, it is that with which was interfered least."""
    tried = []
    while not tried or (_is_disturbed(tried[-1]) and len(tried) < TRIES):
        tried.append(pair(load, against, name, seconds, variant_first))
    return sorted(tried, key=_stolen, reverse=True)


def _scrape_cpu_ns(exporter):
    exporter.scrape()
    before = processes.tree_cpu_ns(exporter.pid)
    for _ in range(SCRAPES):
        exporter.scrape()
    return (processes.tree_cpu_ns(exporter.pid) - before) / SCRAPES


def _per_run(ran):
    runs, ns = ran or (0, 0)
    return ns / runs if runs else None


def _profile(ran, seconds, prefix):
    """Of each CPU what programs for profiles take; and one sample of CPU time, by the exporter."""
    runs, ns = ran.get("profiles_sample", (0, 0))
    own_ns = sum(ns for name, (_, ns) in ran.items() if name.startswith(prefix))
    return {
        "cpu_share": own_ns / 1e9 / seconds / os.cpu_count(),
        "samples_per_second": runs / seconds,
        "ns_per_sample": ns / runs if runs else None,
    }


def cost_beside(load, name, seconds):
    """
    What the variant itself uses, and the time in its BPF programs as the kernel's statistics count
    it: {programs: {name: {runs_per_request, ns_per_run, floor_ns_per_run}}, ...}, the floor being
    that of an empty program at the same tracepoint. Never at the time of a pair.
    """
    variant = start_beside(load, name)
    empty = None
    try:
        empty = Floor(variant.pid)
        with bpf.statistics():
            before, cpu_ns = bpf.programs(variant.pid), processes.tree_cpu_ns(variant.pid)
            empty_before = empty.programs()
            interval = load.measure(seconds)
            ran = bpf.ran_between(before, bpf.programs(variant.pid))
            floor = bpf.ran_between(empty_before, empty.programs())
        cost = {
            "programs": {
                program: {
                    "runs_per_request": runs / interval["requests"],
                    "ns_per_run": ns / runs,
                    "floor_ns_per_run": _per_run(floor.get(program)),
                }
                for program, (runs, ns) in ran.items()
            },
            "bpf_ns_per_request": sum(ns for _, ns in ran.values()) / interval["requests"],
            "floor_ns_per_request": sum(ns for _, ns in floor.values()) / interval["requests"],
            "bpf_runs_per_request": sum(runs for runs, _ in ran.values()) / interval["requests"],
            "profile": _profile(ran, interval["seconds"], "profiles_" if is_exporter(variant) else ""),
            "cpu_share": (processes.tree_cpu_ns(variant.pid) - cpu_ns) / 1e9 / interval["seconds"],
            "rss_bytes": processes.tree_rss_bytes(variant.pid),
            "kernel_bytes": bpf.memory_bytes(variant.pid),
        }
        if is_exporter(variant):
            cost["scrape_cpu_ns"] = _scrape_cpu_ns(variant)
        return cost
    finally:
        if empty:
            empty.stop()
        variant.stop()


def _rate(interval):
    return interval["requests"] / interval["seconds"]


def _cpu_per_request(interval):
    return interval["cpu_ns"] / interval["requests"]


def _wrong_means(intervals):
    """Times off in the median; in one interval the scheduler may come between two clocks."""
    wrong = []
    for what, tolerance in MEANS_TOLERANCE.items():
        means = [interval["means"][what] for interval in intervals if interval.get("means")]
        if means and abs(pairs.summary(means)["median"] - 1) > tolerance:
            wrong.append(f"{what} is {pairs.summary(means)['median']:.3f} of what own clocks say")
    return wrong


def summarised(tries):
    """What the pairs of one variant come to; what the exporter counts is right in all of them."""
    found = [tried[-1] for tried in tries]
    beside = [interval for tried in tries for _, interval in tried]
    return {
        "throughput": pairs.summary(pairs.ratios(found, _rate)),
        "p99": pairs.summary(pairs.ratios(found, lambda interval: interval["p99_ns"])),
        "cpu": pairs.summary(pairs.ratios(found, _cpu_per_request)),
        "requests_per_second": pairs.summary([_rate(variant) for _, variant in found]),
        "p99_ns": pairs.summary([variant["p99_ns"] for _, variant in found]),
        "cpu_ns_per_request": pairs.summary([_cpu_per_request(variant) for _, variant in found]),
        "wrong": [each for interval in beside for each in interval.get("wrong", [])]
        + _wrong_means(beside),
        "repeated": sum(len(tried) - 1 for tried in tries),
        "disturbed": sum(_is_disturbed(each) for each in found),
        "intervals": found,
    }


def first_of(tries):
    """The same numbers of what each pair that counts is against."""
    alone = [tried[-1][0] for tried in tries]
    return {
        "requests_per_second": pairs.summary([_rate(interval) for interval in alone]),
        "p99_ns": pairs.summary([interval["p99_ns"] for interval in alone]),
        "cpu_ns_per_request": pairs.summary([_cpu_per_request(interval) for interval in alone]),
    }


def _costs(load, names, seconds):
    """({name: what it costs}, {name: why it cannot run})"""
    costs, missing = {}, {}
    for name in names:
        try:
            costs[name] = cost_beside(load, name, seconds)
        except Unavailable as why:
            missing[name] = str(why)
    return costs, missing


def measure(load, names, count, seconds, say, beside_base=False):
    """
    Everything about one load beside the variants named, against the service alone; those that
    cannot run say why. Where there is another build, the exporter against that as well.
    """
    bases = [BASE_OF[name] for name in names if beside_base and name in BASE_OF]
    costs, missing = _costs(load, [*names, *bases], seconds)
    found = {("none", name): [] for name in names if name in costs}
    found |= {
        (BASE_OF[name], name): []
        for name in names
        if name in costs and BASE_OF.get(name) in costs
    }
    # Rounds, so that a disturbance of the machine meets all variants alike; the order within a pair
    # changes, so that a drift does not favour one side.
    for number in range(count):
        for (against, name), those in found.items():
            those.append(pairs_until_undisturbed(load, against, name, seconds, number % 2))
        say(number + 1)
    alone = [each for (against, _), those in found.items() for each in those if against == "none"]
    return {
        "title": load.title,
        "seconds": seconds,
        "none": first_of(alone) if alone else None,
        "variants": {
            name: {**summarised(those), "cost": costs[name]}
            for (against, name), those in found.items()
            if against == "none" and those
        },
        "bases": {
            name: {**summarised(those), "cost": costs[name],
                   "base": first_of(those)}
            for (against, name), those in found.items()
            if against != "none" and those
        },
        "unavailable": missing,
    }  # fmt: skip
