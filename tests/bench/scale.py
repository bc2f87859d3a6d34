#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
Measures how the exporter's cost grows with what it watches: `make bench-scale`.

Each crowd comes in sizes, once beside an exporter that runs already, once before it starts. Prints
a table and writes build/bench/scale.json. Fails if the exporter's numbers are not the truth and its
drop counters do not say why, or if a cost grows faster than what causes it.
"""

import argparse
import json
import os
import sys
import time

import paths
import bpf
import loads
import machine
import processes
import table
from crowds import CROWDS
from exporter import Exporter
from services import Service

SETTLE_SECONDS = 10
SCRAPES = 3
SWEEP_SECONDS = 1.05  # scrapes that are further apart walk over all sockets
EVENT_ROUNDS = 20000
STALL_MAX_NS = 2e6  # for which a scrape may keep a CPU from everybody else
STALL_CPU = os.cpu_count() - 1
# Growth is judged where a cost has become noticeable, and leaves room for noise and for caches that
# become too small: between the sizes here the square is four times what the line would be.
ABOVE_LINE_MAX = 3
NOTICEABLE = {"scrape_cpu_ns": 2e6, "start_cpu_ns": 20e6, "rss_bytes": 4e6, "act_cpu_ns": 20e6}


def settled(exporter, crowd, first):
    """(scrape, what is still wrong after some time)"""
    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        scrape = exporter.scrape()
        wrong = crowd.wrong(scrape, first)
        if not wrong or time.monotonic() > deadline:
            return scrape, wrong
        time.sleep(0.2)


def scrape_stall_ns(exporter):
    """
    For how long others did not get the exporter's CPU while it answered: the shortest of some, for a
    hypervisor and other programs do that too, but not every time.
    """
    os.sched_setaffinity(exporter.pid, {STALL_CPU})
    watch = Service("stall", cpu=STALL_CPU)
    try:
        stalls = []
        for _ in range(SCRAPES):
            time.sleep(SWEEP_SECONDS)
            watch.ask("reset")
            exporter.scrape()
            stalls.append(watch.ask("worst")["worst_ns"])
        return min(stalls)
    finally:
        watch.stop()
        os.sched_setaffinity(exporter.pid, range(os.cpu_count()))


def scrape_cost(exporter):
    exporter.scrape()
    before = processes.tree_cpu_ns(exporter.pid)
    for _ in range(SCRAPES):
        time.sleep(SWEEP_SECONDS)
        text = exporter.scrape().text
    return {
        "scrape_cpu_ns": (processes.tree_cpu_ns(exporter.pid) - before) / SCRAPES,
        "text_bytes": len(text),
        "series": sum(not line.startswith("#") for line in text.splitlines()),
        "rss_bytes": processes.tree_rss_bytes(exporter.pid),
        "kernel_bytes": bpf.memory_bytes(exporter.pid),
    }


def request_ns(exporter):
    """BPF time of one exchange on a loopback connection, both sides, all programs."""
    service = Service("events", mode="request", rounds=EVENT_ROUNDS)
    try:
        with bpf.statistics():
            before = bpf.programs(exporter.pid)
            service.ask("start")
            ran = bpf.ran_between(before, bpf.programs(exporter.pid))
    finally:
        service.stop()
    return sum(ns for name, (_, ns) in ran.items() if name.startswith("requests_")) / EVENT_ROUNDS


def beside_running(kind, size):
    """The exporter runs, then the crowd comes."""
    with Exporter() as exporter:
        cpu_ns = processes.tree_cpu_ns(exporter.pid)
        crowd = kind(size)
        try:
            crowd.act()
            scrape, wrong = settled(exporter, crowd, True)
            act_cpu_ns = processes.tree_cpu_ns(exporter.pid) - cpu_ns
            return {
                **scrape_cost(exporter),
                "stall_ns": scrape_stall_ns(exporter),
                "rate": getattr(crowd, "rate", None),
                "act_cpu_ns": act_cpu_ns,
                "request_bpf_ns": request_ns(exporter),
                "lost": crowd.lost(scrape),
                "wrong": wrong,
            }
        finally:
            crowd.stop()


def found_at_start(kind, size):
    """The crowd is there, then the exporter starts."""
    crowd = kind(size)
    try:
        with Exporter() as exporter:
            start_cpu_ns = processes.tree_cpu_ns(exporter.pid)
            _, wrong = settled(exporter, crowd, False)
        return {"start_cpu_ns": start_cpu_ns, "start_wrong": wrong}
    finally:
        crowd.stop()


def too_fast(levels):
    """Costs that grow faster than their cause from one size to the next, in words."""
    found = []
    for below, level, above in zip(levels, levels[1:], levels[2:]):
        for cost, noticeable in NOTICEABLE.items():
            near, far = level[cost] - below[cost], above[cost] - level[cost]
            if far < noticeable or near <= 0:
                continue
            near_size, far_size = level["size"] - below["size"], above["size"] - level["size"]
            line = near * far_size / near_size
            if far > ABOVE_LINE_MAX * line + noticeable:
                found.append(f"{cost} grows by {far:.3g} where a line would by {line:.3g}")
    return found


def measured(kind):
    levels = []
    for size in kind.sizes:
        print(f"\r{kind.title}: {size}      ", end="", file=sys.stderr, flush=True)
        levels.append({"size": size, **beside_running(kind, size), **found_at_start(kind, size)})
    print(file=sys.stderr)
    return {"title": kind.title, "levels": levels, "too_fast": too_fast(levels)}


def complaints(result):
    wrong = [
        f"{result['title']} {level['size']}: {text}"
        for level in result["levels"]
        for text in [*level["wrong"], *(f"found at start: {w}" for w in level["start_wrong"])]
    ]
    wrong += [
        f"{result['title']} {level['size']}: a scrape keeps a CPU for {level['stall_ns'] / 1e6:.1f} ms"
        for level in result["levels"]
        if level["stall_ns"] > STALL_MAX_NS
    ]
    return wrong + [f"{result['title']}: {text}" for text in result["too_fast"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--crowds", nargs="*", default=list(CROWDS), choices=CROWDS)
    wanted = parser.parse_args()
    if os.geteuid():
        sys.exit("bench-scale: needs root: it loads BPF programs and reads their statistics")
    paths.RESULTS.mkdir(parents=True, exist_ok=True)
    described = machine.describe()
    with machine.precedence():
        results = [measured(CROWDS[name]) for name in wanted.crowds]
    output = {"name": "scale", "machine": described, "crowds": results}
    (paths.RESULTS / "scale.json").write_text(json.dumps(output, indent=1) + "\n")
    print(table.of_scale(output))
    loads.clean()
    wrong = [text for result in results for text in complaints(result)]
    if wrong:
        sys.exit("bench-scale: WRONG:\n" + "\n".join(wrong))


if __name__ == "__main__":
    main()
