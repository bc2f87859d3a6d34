# SPDX-License-Identifier: Apache-2.0
"""Results as a table of text."""

from variants import BASE_OF


def aligned(rows):
    """Rows of cells as lines; the first column to the left, the others to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def time_text(ns):
    """Nanoseconds in a unit that suits them."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}" if ns < 999 * size else f"{ns / size:.0f} {unit}"
    return f"{ns:.0f} ns"


def size_text(size):
    return f"{size / 1048576:.1f} MiB"


def ratio_text(summary):
    return f"{summary['median']:.3f} ({summary['lower']:.3f}-{summary['upper']:.3f})"


HEAD = ("", "requests/s", "ratio (quartiles)", "p99", "CPU/request", "CPU ratio", "BPF/request",
        "empty", "kernel", "RSS", "tool CPU", "counts")  # fmt: skip


def _against(name, numbers):
    """What the rows below are compared with: the service alone, or beside another build."""
    return [
        name,
        f"{numbers['requests_per_second']['median']:.0f}",
        "",
        time_text(numbers["p99_ns"]["median"]),
        time_text(numbers["cpu_ns_per_request"]["median"]),
        *[""] * 7,
    ]


def _beside(name, numbers):
    cost = numbers["cost"]
    return [
        name,
        f"{numbers['requests_per_second']['median']:.0f}",
        ratio_text(numbers["throughput"]),
        time_text(numbers["p99_ns"]["median"]),
        time_text(numbers["cpu_ns_per_request"]["median"]),
        f"{numbers['cpu']['median']:.3f}",
        time_text(cost["bpf_ns_per_request"]),
        time_text(cost["floor_ns_per_request"]) if cost["floor_ns_per_request"] else "",
        size_text(cost["kernel_bytes"]),
        size_text(cost["rss_bytes"]),
        f"{cost['cpu_share']:.2%}",
        ("WRONG" if numbers["wrong"] else "exact") if "scrape_cpu_ns" in cost else "",
    ]


def _of_bases(bases):
    """The exporter against another build of it, in each of its modes."""
    rows = [HEAD]
    for name, numbers in bases.items():
        rows += [_against(BASE_OF[name], numbers["base"]), _beside(name, numbers)]
    return aligned(rows)


def _programs(name, cost):
    rows = [
        [
            f"  {program}",
            f"{ran['runs_per_request']:.2f}",
            time_text(ran["ns_per_run"]),
            time_text(ran["floor_ns_per_run"]) if ran["floor_ns_per_run"] else "",
        ]
        for program, ran in sorted(cost["programs"].items())
        if ran["runs_per_request"] >= 0.01
    ]
    return aligned([[f"BPF programs of {name}", "runs/request", "per run", "empty"], *rows])


def _profile(name, cost):
    text = f"{name}: BPF programs that take stacks use {cost['cpu_share']:.2%} of each CPU"
    if cost["samples_per_second"]:
        text += f", {time_text(cost['ns_per_sample'])} for each of {cost['samples_per_second']:.0f} samples a second"
    return text


def of_load(result):
    """The table of one load: services beside each variant, then the exporter's programs."""
    rows = [HEAD]
    if result["none"]:
        rows.append(_against("none", result["none"]))
    rows += [_beside(name, numbers) for name, numbers in result["variants"].items()]
    parts = [f"\n{result['title']}, {result['seconds']:g} s intervals", aligned(rows)]
    if result["bases"]:
        parts.append(_of_bases(result["bases"]))
    against = [(f"{name} against {BASE_OF[name]}", each) for name, each in result["bases"].items()]
    for name, numbers in [*result["variants"].items(), *against]:
        parts += [f"WRONG: {name}: {wrong}" for wrong in sorted(set(numbers["wrong"]))]
        if numbers["repeated"]:
            parts.append(
                f"{name}: {numbers['repeated']} pairs repeated, for the hypervisor took CPU time;"
                f" it took some from {numbers['disturbed']} of those that count"
            )
    for name, numbers in result["variants"].items():
        if "scrape_cpu_ns" in numbers["cost"]:
            parts.append(_programs(name, numbers["cost"]))
    for name, numbers in result["variants"].items():
        if numbers["cost"]["profile"]["cpu_share"]:
            parts.append(_profile(name, numbers["cost"]["profile"]))
    parts += [f"{name}: does not run here: {why}" for name, why in result["unavailable"].items()]
    return "\n".join(parts)


def event_texts(result, event):
    """For each variant: what an event costs, and what of it an empty program costs."""
    for name, times in result["variants"].items():
        for ns in (times[event], result["floors"][name][event]):
            yield "-" if ns is None else time_text(ns)


def of_events(result):
    """Nanoseconds of each event beside each variant."""
    names = list(result["variants"])
    rows = [["BPF time of one event", *(text for name in names for text in (name, "empty"))]]
    rows += [[event, *event_texts(result, event)] for event in result["variants"][names[0]]]
    return "\n" + aligned(rows)


def of_scale(result):
    """How the exporter's cost grows."""
    rows = [["", "size", "scrape CPU", "stall", "series", "text", "RSS", "kernel", "BPF/exchange",
             "CPU meanwhile", "CPU at start", "counts"]]  # fmt: skip
    for crowd in result["crowds"]:
        for number, level in enumerate(crowd["levels"]):
            right = not level["wrong"] and not level["start_wrong"]
            rows.append(
                [
                    "" if number else crowd["title"],
                    str(level["size"]),
                    time_text(level["scrape_cpu_ns"]),
                    time_text(level["stall_ns"]),
                    str(level["series"]),
                    f"{level['text_bytes'] / 1024:.0f} KiB",
                    size_text(level["rss_bytes"]),
                    size_text(level["kernel_bytes"]),
                    time_text(level["request_bpf_ns"]),
                    time_text(level["act_cpu_ns"]),
                    time_text(level["start_cpu_ns"]),
                    (level["lost"] or "exact") if right else "WRONG",
                ]
            )
    return aligned(rows)
