#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
Measures what services pay for being observed, and by what: `make bench`.

Prints a table and writes build/bench/NAME.json for every load measured.
"""

import argparse
import json
import os
import sys
from pathlib import Path

import events
import loads
import machine
import paths
import table
import throughput
import variants

ALL = {**loads.LOADS, **loads.PROFILED}
PARTS = ["events", *ALL]


def options():
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--loads", nargs="*", default=PARTS, choices=PARTS)
    parser.add_argument("--variants", nargs="*", help="default: those that suit the load")
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=1.0, help="length of an interval")
    parser.add_argument("--base", type=lambda path: Path(path).resolve(), help="another build of the exporter, to be beside it")
    return parser.parse_args()


def chosen(load, wanted):
    return [name for name in load.variants if name in wanted] if wanted else load.variants


def measured(kind, wanted):
    def say(number):
        print(f"\r{kind.name}: round {number} of {wanted.pairs} ", end="", file=sys.stderr)

    load = kind()
    try:
        names = chosen(load, wanted.variants)
        result = throughput.measure(load, names, wanted.pairs, wanted.seconds, say, wanted.base)
    finally:
        load.stop()
        print(file=sys.stderr)
    return result


def write(name, result):
    (paths.RESULTS / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")


def run_part(name, wanted):
    """Measures, prints and writes; how often the exporter disagreed with the client."""
    described = machine.describe()
    with machine.precedence():
        result = events.measure(wanted.base) if name == "events" else measured(ALL[name], wanted)
    write(name, {"name": name, "machine": described, **result})
    if name == "events":
        print(table.of_events(result), flush=True)
        return 0
    print(table.of_load(result), flush=True)
    compared = [*result["variants"].values(), *result["bases"].values()]
    return sum(len(each["wrong"]) for each in compared)


def main():
    wanted = options()
    if os.geteuid():
        sys.exit("bench: needs root: it loads BPF programs and reads their statistics")
    if wanted.base:
        if not wanted.base.is_file() or not os.access(wanted.base, os.X_OK):
            sys.exit(f"bench: {wanted.base}: no program: BASE is a workload_exporter of another build")
        variants.add_base(wanted.base)
    paths.RESULTS.mkdir(parents=True, exist_ok=True)
    wrong = sum([run_part(name, wanted) for name in wanted.loads])
    loads.clean()
    if wrong:
        sys.exit(f"bench: WRONG: the exporter disagreed with the client {wrong} times, see above")


if __name__ == "__main__":
    main()
