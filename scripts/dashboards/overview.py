# SPDX-License-Identifier: Apache-2.0
"""Which service is saturated, and why: all workloads in one table, worst first."""

from panels import column, dashboard, stat, states, table, target, timeseries
from promql import BUSY, SERVING, WORKLOADS
from promql import gauge, mean, quantile, rate, share, utilization

QUEUE = "workload_request_queue_seconds"
DURATION = "workload_request_duration_seconds"
DETAIL = (
    "/d/workload-exporter-workload?var-workload=${__value.raw}"
    "&${datasource:queryparam}&${cluster:queryparam}&${job:queryparam}"
    "&${instance:queryparam}&${__url_time_range}"
)

DEPTH = (("transparent", None), ("yellow", 1), ("red", 10))
WAIT = (("transparent", None), ("yellow", 0.1), ("red", 1))
SHARE = (("transparent", None), ("yellow", 0.1), ("red", 0.25))
FULL = (("transparent", None), ("yellow", 0.7), ("red", 0.9))

# (query, title, unit, colours) of each column behind the name, in their order.
COLUMNS = [
    (rate(QUEUE + "_sum", "workload"), "Mean depth", "short", DEPTH),
    (gauge("workload_requests_queued", "workload"), "Queued now", "short", DEPTH),
    (mean(QUEUE, "workload"), "Mean wait", "s", WAIT),
    (quantile(0.99, QUEUE, "workload"), "p99 wait", "s", WAIT),
    (rate(DURATION + "_count", "workload"), "Requests", "reqps", None),
    (quantile(0.5, DURATION, "workload"), "p50 duration", "s", None),
    (quantile(0.99, DURATION, "workload"), "p99 duration", "s", None),
    # The serving pool that is busiest: the mean over all threads hides it behind idle ones.
    (f"max by (workload) ({utilization('workload, pool')})", "Utilization", "percentunit", FULL),
    (share("workload", 'role="serving", state="lock"', SERVING + BUSY), "Lock share", "percentunit", SHARE),
    (mean("workload_runqueue_wait_seconds", "workload"), "Run-queue wait", "s", None),
]
SERVING_BUSY = SERVING + BUSY
# Where the serving threads' busy time goes: the label `state` is the value that is shown.
MOSTLY = (
    "topk by (workload) "
    f"(1, {rate('workload_thread_seconds_total', 'workload, state', SERVING_BUSY)} > 0)"
)


def worst_first():
    columns = [column("workload", "Workload", links=[("Show ${__value.text}", DETAIL)], width=220)]
    for letter, (_, title, unit, steps) in zip("ABCDEFGHIJKLMN", COLUMNS):
        columns.append(column(f"Value #{letter}", title, unit, steps))
    columns.append(column("state", "Busy threads are mostly"))
    return table(
        "Workloads, worst first",
        "Mean depth is the mean number of requests that waited (Little's law). Utilization is that "
        "of the busiest pool of threads that serve. The lock share is of their busy time. The last "
        "column is where most of it goes: running: CPU; runnable: no CPU free; lock: a hot lock; "
        "network: a slow downstream, or clients; wait: its own threads. A click on a name shows the workload.",
        [query for query, *_ in COLUMNS] + [MOSTLY],
        "workload",
        columns,
        "Mean depth",
    )


def numbers():
    good_zero = (("green", None), ("red", 1))
    return [
        stat(
            "Workloads",
            "Services that are observed.",
            f"count(sum by (workload) (workload_processes{{{WORKLOADS}}}))",
            "short",
            (("text", None),),
        ),
        stat(
            "Requests",
            "Answered requests per second, of all workloads.",
            f"sum({rate(DURATION + '_count', 'workload')})",
            "reqps",
            (("text", None),),
        ),
        stat(
            "Queued now",
            "Requests that have arrived and that no thread has read yet.",
            f"sum({gauge('workload_requests_queued', 'workload')})",
            "short",
            (("green", None), ("yellow", 10), ("red", 100)),
        ),
        stat(
            "Oldest queued",
            "Age of the oldest request that no thread has read yet.",
            f"max({gauge('workload_request_oldest_queued_seconds', 'workload', operation='max')})",
            "s",
            (("green", None), ("yellow", 1), ("red", 30)),
        ),
        stat(
            "Alerts firing",
            "Alerts of this project that fire now; 0 also if its rules are not loaded.",
            'count(ALERTS{alertname=~"Workload.+", alertstate="firing"}) or vector(0)',
            "short",
            good_zero,
        ),
        stat(
            "Exporters down",
            "Instances that Prometheus could not scrape.",
            'sum(up{cluster=~"$cluster", job=~"$job", instance=~"$instance"} == bool 0)',
            "short",
            good_zero,
        ),
    ]


def charts():
    return [
        timeseries(
            "Queue depth (mean)",
            "Mean number of requests that waited, by workload; the ten deepest.",
            [target(f"topk(10, {rate(QUEUE + '_sum', 'workload')})", "{{workload}}")],
            "short",
        ),
        timeseries(
            "Queue wait p99",
            "99 % of the requests waited for less; the ten longest.",
            [
                target(
                    f"topk(10, {quantile(0.99, QUEUE, 'workload')})", "{{workload}}", exemplar=True
                )
            ],
            "s",
        ),
        timeseries(
            "Utilization of the busiest pool",
            "Busy time / (threads x time), of each workload's busiest pool of threads that serve.",
            [target(COLUMNS[7][0], "{{workload}}")],
            "percentunit",
            limit=1,
        ),
        states(
            "Busy threads",
            "Mean number of serving threads in each state but idle, of all workloads together.",
            [
                target(
                    rate("workload_thread_seconds_total", "state", SERVING_BUSY),
                    "{{state}}",
                )
            ],
        ),
    ]


def make():
    found = charts()
    return dashboard(
        "workload-exporter-overview",
        "Workloads overview",
        "Every service of the selected machines: what waits, how long, and why.",
        ("cluster", "job", "instance", "workload"),
        [(None, [(4, numbers()), (12, [worst_first()]), (9, found[:2]), (9, found[2:])])],
    )
