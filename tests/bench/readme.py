#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the numbers of tests/README.md anew from build/bench/*.json: `make bench-readme`."""

import json
import sys
import textwrap

import paths
from loads import LOADS, PROFILED
from table import event_texts, size_text, time_text

PAGE = paths.ROOT / "tests" / "README.md"

TITLES = {
    "exporter": "workload_exporter",
    "profiles": "workload_exporter `--collector.profiles`, none is taken",
    "profile-cpu": "workload_exporter, a profile of CPU time is taken",
    "profile-offcpu": "workload_exporter, a profile of waits is taken",
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
    "bcc-offcputime": "bcc `offcputime`",
    "bcc-profile": "bcc `profile`, 99 Hz",
    "bpftrace-profile": "bpftrace: stacks at 99 Hz",
    "perf-record-fp": "`perf record -g`, 99 Hz",
    "perf-record-dwarf": "`perf record --call-graph dwarf`, 99 Hz",
}


class NotMeasured(Exception):
    """A file of results is missing."""


def result(name):
    path = paths.RESULTS / f"{name}.json"
    if not path.exists():
        raise NotMeasured(f"{path} is missing: `make bench bench-scale` makes it")
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


def profiles_table(results):
    rows = []
    for each in results:
        rows.append([f"**{each['title']}**", "", "", "", "", ""])
        for name, numbers in each["variants"].items():
            cost, own = numbers["cost"], numbers["cost"]["profile"]
            rows.append(
                [
                    TITLES[name],
                    f"{own['cpu_share']:.2%}" if own["cpu_share"] else "",
                    time_text(own["ns_per_sample"]) if own["ns_per_sample"] else "",
                    f"{cost['cpu_share']:.2%}",
                    size_text(cost["kernel_bytes"]) if cost["kernel_bytes"] else "",
                    size_text(cost["rss_bytes"]),
                ]
            )
    head = ["beside the service", "BPF that takes stacks, of each CPU", "one sample", "CPU of the tool",
            "memory of BPF", "resident memory"]  # fmt: skip
    return markdown(head, rows)


def compared_text(command, results):
    """By which machine and how often, for all tables of @results."""
    pairs = results[0]["none"]["requests_per_second"]["pairs"] // len(results[0]["variants"])
    variants = [each for load in results for each in load["variants"].values()]
    repeated = sum(each["repeated"] for each in variants)
    disturbed = sum(each["disturbed"] for each in variants)
    return (
        machine_text(command, results[0]["machine"])
        + f" Ratios are medians of {pairs} pairs of intervals with and without, in brackets"
        f" the quartiles; {repeated} pairs were repeated because the hypervisor took CPU time, and"
        f" it did so in {disturbed} of those that count.\n"
    )


def profiles():
    results = [result(name) for name in PROFILED]
    command = f'make bench BENCH="{" ".join(PROFILED)}"'
    tables = [throughput_table(results), profiles_table(results)]
    return "\n".join([compared_text(command, results), *tables])


def services():
    results = [result(name) for name in LOADS]
    events, scale = result("events"), result("scale")
    return "\n".join(
        [
            compared_text("make bench", results),
            throughput_table(results),
            events_table(events),
            machine_text("make bench-scale", scale["machine"]) + "\n",
            scale_table(scale),
        ]
    )


def replaced(readme, numbers, begin, end):
    """The text of a README with @numbers between its markers."""
    if readme.count(begin) != 1 or readme.count(end) != 1 or readme.find(begin) > readme.find(end):
        raise NotMeasured(f"the README needs the markers {begin} and {end} once, in this order")
    head, rest = readme.split(begin)
    return f"{head}{begin}\n{numbers}{end}{rest.split(end)[1]}"


def write(name, made):
    """Whether the part of this name was written; why not, if not."""
    try:
        text = PAGE.read_text(encoding="utf-8")
        text = replaced(text, made(), f"<!-- {name}:begin -->", f"<!-- {name}:end -->")
    except NotMeasured as reason:
        print(f"bench-readme: {name} stays as it is: {reason}", file=sys.stderr)
        return False
    PAGE.write_text(text, encoding="utf-8")
    return True


def main():
    written = [write("bench", services), write("profiles", profiles)]
    sys.exit(not any(written))


if __name__ == "__main__":
    main()
