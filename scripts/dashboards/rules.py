# SPDX-License-Identifier: Apache-2.0
"""
Recording rules and alerts: templates filled in with dashboards/thresholds.toml.

A time of the section [window] named `rate` is @{window_rate} in a template, and
@{window_rate_seconds} as a number; names of the other sections are prefixed alike.
"""

import re
import string
import tomllib
from pathlib import Path

UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
HERE = Path(__file__).resolve().parent


class Template(string.Template):
    """`$` belongs to the alerts' own templates."""

    delimiter = "@"


def seconds(duration):
    """The seconds of a duration with one unit, like 5m."""
    number, unit = re.fullmatch(r"(\d+)([smhd])", duration).groups()
    return int(number) * UNIT_SECONDS[unit]


def values(thresholds):
    """What templates may use, from the text of thresholds.toml."""
    found = {}
    for section, content in tomllib.loads(thresholds).items():
        if not isinstance(content, dict):
            found[section] = str(content)
            continue
        for name, value in content.items():
            found[f"{section}_{name}"] = str(value)
            if section in ("window", "for"):
                found[f"{section}_{name}_seconds"] = str(seconds(value))
    return found


def _series(metric, by, more="", operation="sum"):
    """(name, expression) of a gauge over all instances; @more is a matcher in braces."""
    level = "_".join(label for label in ("workload", "port", "pool") if label in by)
    return f"{level}:{metric}:{operation}", f"{operation} by ({_labels(by)}) ({metric}{more})"


def _labels(by):
    return ", ".join(("cluster", "job", *by))


def _rate(metric, by, window):
    level = "_".join(label for label in ("workload", "port", "pool") if label in by)
    short = metric.removesuffix("_total")
    return f"{level}:{short}:rate{window}", f"sum by ({_labels(by)}) (rate({metric}[{window}]))"


PORT = ("workload", "port")
POOL = ("workload", "pool", "role")
GAUGES = [
    ("workload_requests_queued", PORT, "sum"),
    ("workload_requests_in_service", PORT, "sum"),
    ("workload_request_oldest_queued_seconds", PORT, "max"),
    ("workload_request_oldest_in_service_seconds", PORT, "max"),
    ("workload_accept_queue_connections", PORT, "sum"),
    ("workload_accept_queue_limit_connections", PORT, "sum"),
    ("workload_connections", PORT, "sum"),
    ("workload_threads", (*POOL, "state"), "sum"),
    ("workload_processes", ("workload",), "sum"),
]
COUNTERS = [
    ("workload_requests_abandoned_total", (*PORT, "stage")),
    ("workload_connection_goodbyes_total", PORT),
    ("workload_unanswered_reads_total", PORT),
    ("workload_multiplexed_connections_total", PORT),
    ("workload_one_way_connections_total", PORT),
    ("workload_accept_queue_overflows_total", PORT),
    ("workload_connections_accepted_total", PORT),
    ("workload_received_bytes_total", PORT),
    ("workload_sent_bytes_total", PORT),
    ("workload_thread_seconds_total", (*POOL, "state")),
]
HISTOGRAMS = [
    ("workload_request_queue_seconds", PORT),
    ("workload_request_service_seconds", PORT),
    ("workload_request_duration_seconds", PORT),
    ("workload_mutex_wait_seconds", POOL),
    ("workload_runqueue_wait_seconds", POOL),
    ("workload_disk_wait_seconds", POOL),
]


def _over_instances(window):
    for metric, by, operation in GAUGES:
        yield _series(metric, by, operation=operation)
    for metric, by in COUNTERS:
        yield _rate(metric, by, window)
    for metric, by in HISTOGRAMS:
        yield _rate(metric + "_sum", by, window)
        yield _rate(metric + "_count", by, window)
        yield _rate(metric + "_bucket", (*by, "le"), window)


def _by_workload(window):
    """What a person asks of a service, from the series above."""
    by = _labels(("workload",))
    threads = f"workload_pool:workload_thread_seconds:rate{window}"
    queue = f"workload_port:workload_request_queue_seconds_%s:rate{window}"
    duration = f"workload_port:workload_request_duration_seconds_%s:rate{window}"
    yield f"workload:workload_requests:rate{window}", f"sum by ({by}) ({duration % 'count'})"
    yield f"workload:workload_queue_depth:mean{window}", f"sum by ({by}) ({queue % 'sum'})"
    for name, metric in (("queue", queue), ("duration", duration)):
        for q in (50, 99):
            yield (
                f"workload:workload_request_{name}_seconds:p{q}_{window}",
                f"histogram_quantile(0.{q}, sum by ({by}, le) ({metric % 'bucket'}))",
            )
    yield (
        f"workload_pool:workload_utilization:ratio_{window}",
        f'sum without (state) ({threads}{{state!="idle"}}) / sum without (state) ({threads})',
    )
    yield (
        f"workload:workload_lock_share:ratio_{window}",
        f'sum by ({by}) ({threads}{{role="serving", state="lock"}})'
        f' / sum by ({by}) ({threads}{{role="serving", state!="idle"}})',
    )


def recording(thresholds):
    """The text of the recording rules."""
    window = values(thresholds)["window_rate"]
    lines = [
        "# Generated by scripts/dashboards from dashboards/thresholds.toml: `make dashboards`.",
        "# SPDX-License-Identifier: Apache-2.0",
        "#",
        "# Each series is over all instances of a job: a workload that runs on many machines is",
        "# one. Rates are taken before sums, so a restart is no dip, and quantiles come from summed",
        "# buckets. A server above federates these and no other (prometheus-global.yml): whoever",
        "# adds them up counts every machine once.",
        "groups:",
    ]
    for group, rules in (
        ("workload_over_instances", _over_instances(window)),
        ("workload_summary", _by_workload(window)),
    ):
        lines += [f"  - name: {group}", "    rules:"]
        for name, expression in rules:
            lines += [f"      - record: {name}", f"        expr: {expression}"]
    return "\n".join(lines) + "\n"


def alerts(thresholds):
    """The text of the alerts."""
    return Template((HERE / "alerts.yml.in").read_text()).substitute(values(thresholds))
