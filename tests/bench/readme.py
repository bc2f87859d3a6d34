#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the numbers of tests/README.md anew from build/bench/*.json: `make bench-readme`."""

import json
import sys
import textwrap

import paths
from loads import LOADS
from table import event_texts, size_text, time_text

BEGIN = "<!-- bench:begin -->"
END = "<!-- bench:end -->"
TITLES = {
    "exporter": "workload_exporter",
    "syscall": "workload_exporter `--requests.backend=syscall`",
    "uprobe": "workload_exporter `--mutex.backend=uprobe`",
    "bpftrace-requests": "bpftrace: system calls by pid and descriptor",
    "bpftrace-switches": "bpftrace: `sched_switch`",
    "bpftrace-locks": "bpftrace: uprobes on `pthread_mutex_lock`",
    "bcc-syscount": "bcc `syscount -L`",
    "bcc-runqlat": "bcc `runqlat`",
    "bcc-cpudist": "bcc `cpudist`",
    "bcc-funclatency": "bcc `funclatency` on `pthread_mutex_lock`",
    "bcc-tcprtt": "bcc `tcprtt`",
    "bcc-klockstat": "bcc `klockstat`",
}


class NotMeasured(Exception):
    """A file of results is missing."""


def result(name):
    path = paths.RESULTS / f"{name}.json"
    if not path.exists():
        raise NotMeasured(f"{path} is missing: run `make bench bench-scale` first")
    return json.loads(path.read_text(encoding="utf-8"))


def markdown(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def machine_text(command, machine):
    kind = "virtual, " if machine["virtual"] else ""
    where = f"{machine['cpu']} ({kind}{machine['cores']} CPUs), Linux {machine['kernel']}"
    return (
        f"Measured with `{command}` on {machine['date']}: {where}, load average"
        f" {machine['load_before']:.1f} before."
    )


def _ratio(summary):
    return f"{summary['median']:.3f} ({summary['lower']:.3f} to {summary['upper']:.3f})"


def _alone_row(title, alone):
    return [
        f"**{title}**, alone",
        f"{alone['requests_per_second']['median']:.0f}/s",
        time_text(alone["p99_ns"]["median"]),
        time_text(alone["cpu_ns_per_request"]["median"]),
        "",
        "",
    ]


def _variant_row(name, numbers):
    return [
        TITLES[name],
        _ratio(numbers["throughput"]),
        time_text(numbers["p99_ns"]["median"]),
        time_text(numbers["cpu_ns_per_request"]["median"]),
        time_text(numbers["cost"]["bpf_ns_per_request"]),
        time_text(numbers["cost"]["floor_ns_per_request"])
        if numbers["cost"]["floor_ns_per_request"]
        else "",
    ]


def _reason(why):
    return textwrap.shorten(why.removeprefix("libbpf: "), 100, placeholder=" ...")


def throughput_table(results):
    rows = []
    for each in results:
        if each["none"]:
            rows.append(_alone_row(each["title"], each["none"]))
        rows += [_variant_row(name, numbers) for name, numbers in each["variants"].items()]
        rows += [
            [TITLES[name], f"does not run here: {_reason(why)}", "", "", "", ""]
            for name, why in each["unavailable"].items()
            if name in TITLES
        ]
    head = ["beside the service", "throughput", "p99", "CPU of the service per request",
            "BPF per request", "of empty programs"]  # fmt: skip
    return markdown(head, rows)


def events_table(events):
    names = [name for name in events["variants"] if name in TITLES]
    events = {**events, "variants": {name: events["variants"][name] for name in names}}
    rows = [[event, *event_texts(events, event)] for event in events["variants"][names[0]]]
    titles = (text for name in names for text in (TITLES[name], "empty programs"))
    return markdown(["BPF time of one event", *titles], rows)


def scale_table(scale):
    rows = [
        [
            f"{level['size']} {crowd['title']}",
            time_text(level["scrape_cpu_ns"]),
            time_text(level["stall_ns"]),
            str(level["series"]),
            size_text(level["rss_bytes"]),
            size_text(level["kernel_bytes"]),
            time_text(level["start_cpu_ns"]),
        ]
        for crowd in scale["crowds"]
        for level in (crowd["levels"][0], crowd["levels"][-1])
    ]
    head = ["with", "CPU of a scrape", "longest stall", "series", "resident memory", "kernel memory",
            "CPU of the exporter's start"]  # fmt: skip
    return markdown(head, rows)


def block():
    results = [result(name) for name in LOADS]
    events, scale = result("events"), result("scale")
    pairs = results[0]["none"]["requests_per_second"]["pairs"] // len(results[0]["variants"])
    variants = [each for load in results for each in load["variants"].values()]
    repeated = sum(each["repeated"] for each in variants)
    disturbed = sum(each["disturbed"] for each in variants)
    return "\n".join(
        [
            machine_text("make bench", results[0]["machine"])
            + f" Ratios are medians of {pairs} pairs of intervals with and without, in brackets"
            f" the quartiles; {repeated} pairs were repeated because the hypervisor took CPU time, and"
            f" it did so in {disturbed} of those that count.\n",
            throughput_table(results),
            events_table(events),
            machine_text("make bench-scale", scale["machine"]) + "\n",
            scale_table(scale),
        ]
    )


def replaced(readme, numbers, begin=BEGIN, end=END):
    """The text of a README with @numbers between its markers."""
    if readme.count(begin) != 1 or readme.count(end) != 1 or readme.find(begin) > readme.find(end):
        raise NotMeasured(f"the README needs the markers {begin} and {end} once, in this order")
    head, rest = readme.split(begin)
    return f"{head}{begin}\n{numbers}{end}{rest.split(end)[1]}"


def main():
    readme = paths.ROOT / "tests" / "README.md"
    readme.write_text(replaced(readme.read_text(encoding="utf-8"), block()), encoding="utf-8")


if __name__ == "__main__":
    try:
        main()
    except NotMeasured as reason:
        sys.exit(f"bench-readme: {reason}")
