# SPDX-License-Identifier: Apache-2.0
"""One workload: its requests, its queue, its threads, its locks, its connections."""

from panels import column, dashboard, heatmap, repeated, states, table, target, timeseries
from promql import BUSY, WORKLOADS, buckets, gauge, mean, quantile, rate, share, utilization

QUEUE = "workload_request_queue_seconds"
SERVICE = "workload_request_service_seconds"
DURATION = "workload_request_duration_seconds"
MUTEX = "workload_mutex_wait_seconds"
RUNQUEUE = "workload_runqueue_wait_seconds"
DISK = "workload_disk_wait_seconds"
PORT = "workload, port"
PORT_LEGEND = "{{workload}}:{{port}}"
POOL = "workload, pool"
POOL_LEGEND = "{{workload}} {{pool}}"
ROLE = ', role=~"$role"'


def quantiles(title, description, metric, by=PORT, legend=PORT_LEGEND, more=""):
    """p50, p90, p99 and mean of a histogram."""
    found = [
        target(quantile(q, metric, by, more), f"{legend} {name}", exemplar=True)
        for q, name in ((0.5, "p50"), (0.9, "p90"), (0.99, "p99"))
    ]
    found.append(target(mean(metric, by, more), f"{legend} mean"))
    return timeseries(title, description, found, "s")


def requests():
    heatmaps = [
        heatmap(
            "Queue time",
            "From the arrival of a request until a thread read it.",
            buckets(QUEUE),
        ),
        heatmap(
            "Service time",
            "From the read of a request to the last send of its answer.",
            buckets(SERVICE),
        ),
        heatmap("Duration", "Queue and service time together.", buckets(DURATION)),
    ]
    lines = [
        quantiles("Queue time, quantiles", "Longer: too few threads, or none that reads.", QUEUE),
        quantiles("Service time, quantiles", "Longer: look at what the threads do.", SERVICE),
        quantiles("Duration, quantiles", "What a client waits, but for the network.", DURATION),
    ]
    counts = [
        timeseries(
            "Requests",
            "Answered requests per second.",
            [target(rate(DURATION + "_count", PORT), PORT_LEGEND, exemplar=True)],
            "reqps",
        ),
        timeseries(
            "In service",
            "Requests that a thread has read and that are not answered yet: now, and on average "
            "since the scrape before (Little's law).",
            [
                target(gauge("workload_requests_in_service", PORT), PORT_LEGEND),
                target(rate(SERVICE + "_sum", PORT), f"{PORT_LEGEND} mean"),
            ],
            "short",
        ),
        timeseries(
            "Abandoned",
            "Requests whose connection closed before a thread read them (queued) or before they "
            "were answered (service): clients that gave up, servers that gave none. Not in it: "
            "turns with which clients say goodbye.",
            [
                target(
                    rate("workload_requests_abandoned_total", PORT + ", stage"),
                    f"{PORT_LEGEND} {{{{stage}}}}",
                )
            ],
            "reqps",
        ),
        timeseries(
            "Not measured: multiplexed, one-way",
            "Part of the accepted connections that carry many requests at a time (HTTP/2, gRPC, "
            "clients that do not wait for answers), something else (WebSocket, tunnels), or messages "
            "that nothing answers (syslog, uploads by FTP). What they carry is in no panel of this "
            "row; such a connection is in the queue depth once, while bytes of it wait to be read.",
            [
                target(
                    f"{gauge(f'workload_{kind}_connections_total', PORT)}"
                    f" / {gauge('workload_connections_accepted_total', PORT)}",
                    f"{PORT_LEGEND} {kind}",
                )
                for kind in ("multiplexed", "one_way")
            ],
            "percentunit",
        ),
    ]
    return "Requests", [(9, counts), (9, heatmaps), (10, lines)]


def queue():
    return "Queue", [
        (
            9,
            [
                timeseries(
                    "Queue depth",
                    "Requests that have arrived and that no thread has read: now, and on average "
                    "since the scrape before (Little's law: exact, whatever the interval).",
                    [
                        target(gauge("workload_requests_queued", PORT), f"{PORT_LEGEND} now"),
                        target(rate(QUEUE + "_sum", PORT), f"{PORT_LEGEND} mean"),
                    ],
                    "short",
                ),
                timeseries(
                    "Oldest requests",
                    "Age of the oldest request that no thread has read: if it grows as fast as the "
                    "clock, nobody reads any more. And for how long the oldest of those in service "
                    "has been so: if that grows as fast as the clock, it hangs.",
                    [
                        target(
                            gauge(
                                "workload_request_oldest_queued_seconds", PORT, operation="max"
                            ),
                            f"{PORT_LEGEND} queued",
                        ),
                        target(
                            gauge(
                                "workload_request_oldest_in_service_seconds",
                                PORT,
                                operation="max",
                            ),
                            f"{PORT_LEGEND} in service",
                        ),
                    ],
                    "s",
                ),
            ],
        ),
        (
            9,
            [
                timeseries(
                    "Accept queue",
                    "Connections that wait to be accepted, and how many may.",
                    [
                        target(
                            gauge("workload_accept_queue_connections", PORT), f"{PORT_LEGEND} waiting"
                        ),
                        target(
                            gauge("workload_accept_queue_limit_connections", PORT),
                            f"{PORT_LEGEND} limit",
                        ),
                    ],
                    "short",
                ),
                timeseries(
                    "Accept queue overflows",
                    "Connections per second that came while the accept queue was full: clients try in vain.",
                    [
                        target(
                            rate("workload_accept_queue_overflows_total", PORT), PORT_LEGEND
                        )
                    ],
                    "ops",
                ),
                quantiles(
                    "Accept wait",
                    "From the end of the handshake until the server accepted the connection; only "
                    "with the syscall backend.",
                    "workload_accept_wait_seconds",
                ),
            ],
        ),
    ]


def threads():
    by_pool = ', pool=~"$pool"' + ROLE
    return "Threads", [
        (
            9,
            [
                repeated(
                    states(
                        "Threads of $pool",
                        "Mean number of threads in each state: they add up to the number of "
                        "threads. Everything but idle is busy.",
                        [
                            target(
                                rate("workload_thread_seconds_total", "state", by_pool),
                                "{{state}}",
                            )
                        ],
                    ),
                    "pool",
                    3,
                )
            ],
        ),
        (
            9,
            [
                timeseries(
                    "Utilization of serving threads",
                    "Busy time / (threads x time) of the threads that read and answer requests, "
                    "whatever roles are selected. Near 100 % with a queue: too few threads, or "
                    "threads that are held up.",
                    [target(utilization(POOL), POOL_LEGEND)],
                    "percentunit",
                    limit=1,
                ),
                states(
                    "Threads now",
                    "What the threads of all selected workloads do at this instant.",
                    [target(gauge("workload_threads", "state", ROLE), "{{state}}")],
                ),
                timeseries(
                    "Threads started and exited",
                    "Churn: a pool that starts threads all the time pays for it.",
                    [
                        target(rate("workload_threads_started_total", POOL, ROLE), f"{POOL_LEGEND} started"),
                        target(rate("workload_threads_exited_total", POOL, ROLE), f"{POOL_LEGEND} exited"),
                    ],
                    "ops",
                ),
            ],
        ),
        (
            9,
            [
                heatmap(
                    "Run-queue wait", "From wanting a CPU until running.", buckets(RUNQUEUE, ROLE)
                ),
                quantiles(
                    "Run-queue wait, quantiles",
                    "Longer: too few CPUs, or a CPU limit. More threads make it worse.",
                    RUNQUEUE,
                    POOL,
                    POOL_LEGEND,
                    ROLE,
                ),
                timeseries(
                    "Wanting a CPU",
                    "Mean number of threads that want a CPU and have none.",
                    [
                        target(
                            rate("workload_thread_seconds_total", POOL, ROLE + ', state="runnable"'),
                            POOL_LEGEND,
                        )
                    ],
                    "short",
                ),
            ],
        ),
    ]


def locks():
    return "Locks and I/O", [
        (
            9,
            [
                timeseries(
                    "Lock share",
                    "Part of the busy time that threads are blocked on a lock.",
                    [target(share(POOL, 'role=~"$role", state="lock"', ROLE + BUSY), POOL_LEGEND)],
                    "percentunit",
                    limit=1,
                ),
                timeseries(
                    "Waiting for a lock",
                    "Mean number of threads that are blocked on a lock, from the waits that have "
                    "ended.",
                    [target(rate(MUTEX + "_sum", POOL, ROLE), POOL_LEGEND)],
                    "short",
                ),
                heatmap(
                    "Lock wait", "One observation for each acquisition that slept.", buckets(MUTEX, ROLE)
                ),
            ],
        ),
        (
            9,
            [
                quantiles(
                    "Lock wait, quantiles",
                    "How long an acquisition that slept has waited.",
                    MUTEX,
                    POOL,
                    POOL_LEGEND,
                    ROLE,
                ),
                heatmap("Disk wait", "Each time that a thread was blocked on a disk.", buckets(DISK, ROLE)),
                quantiles(
                    "Disk wait, quantiles",
                    "How long threads were blocked on a disk.",
                    DISK,
                    POOL,
                    POOL_LEGEND,
                    ROLE,
                ),
            ],
        ),
        (
            9,
            [
                timeseries(
                    "Lock waits",
                    "Acquisitions per second that slept.",
                    [target(rate(MUTEX + "_count", POOL, ROLE), POOL_LEGEND)],
                    "ops",
                ),
                timeseries(
                    "Lock acquisitions",
                    "Mutexes acquired per second, free ones included; only with "
                    "--mutex.backend=uprobe.",
                    [target(rate("workload_mutex_acquisitions_total", POOL, ROLE), POOL_LEGEND)],
                    "ops",
                ),
                timeseries(
                    "Disk waits",
                    "Times per second that a thread was blocked on a disk.",
                    [target(rate(DISK + "_count", POOL, ROLE), POOL_LEGEND)],
                    "ops",
                ),
            ],
        ),
        (
            9,
            [
                timeseries(
                    "Where locks are waited for",
                    "Mean number of threads that are blocked on a lock, from the waits that have "
                    "ended, by the place in the code that waits; of all pools and roles. Only with "
                    "--profiles.lock-sites.",
                    [
                        target(
                            rate("workload_lock_site_wait_seconds_total", "workload, site"),
                            "{{workload}} {{site}}",
                        )
                    ],
                    "short",
                    stacked=True,
                ),
                timeseries(
                    "Who releases them",
                    "Mean number of threads that are blocked on a lock, from the waits that have "
                    "ended, by their pool and that of the thread that released it: who holds whom up.",
                    [
                        target(
                            rate("workload_lock_blocked_seconds_total", "workload, pool, holder_pool"),
                            "{{workload}} {{pool}} by {{holder_pool}}",
                        )
                    ],
                    "short",
                    stacked=True,
                ),
            ],
        ),
    ]


def connections():
    return "Connections", [
        (
            9,
            [
                timeseries(
                    "Open connections",
                    "Open server-side connections.",
                    [target(gauge("workload_connections", PORT), PORT_LEGEND)],
                    "short",
                ),
                timeseries(
                    "Accepted connections",
                    "New connections per second, by how the server drives the socket.",
                    [
                        target(
                            rate("workload_connections_accepted_total", PORT + ", io_model"),
                            f"{PORT_LEGEND} {{{{io_model}}}}",
                        )
                    ],
                    "cps",
                ),
                timeseries(
                    "Traffic",
                    "Bytes read from and sent to clients.",
                    [
                        target(rate("workload_received_bytes_total", PORT), f"{PORT_LEGEND} received"),
                        target(rate("workload_sent_bytes_total", PORT), f"{PORT_LEGEND} sent"),
                    ],
                    "Bps",
                ),
                timeseries(
                    "Goodbyes and unanswered reads",
                    "Turns that ended a connection and wanted no answer: the client closed within "
                    "10 ms of its last bytes. Reads that nothing answered: bodies that came late, "
                    "commands without an answer, messages. None of them is a request.",
                    [
                        target(
                            rate("workload_connection_goodbyes_total", PORT),
                            f"{PORT_LEGEND} goodbyes",
                        ),
                        target(
                            rate("workload_unanswered_reads_total", PORT),
                            f"{PORT_LEGEND} unanswered reads",
                        ),
                    ],
                    "ops",
                ),
                timeseries(
                    "Unrequested sends",
                    "Sends with no request in service: a server that speaks first, a push.",
                    [target(rate("workload_unrequested_sends_total", PORT), PORT_LEGEND)],
                    "ops",
                ),
            ],
        ),
    ]


IDENTITY = ("workload", "instance", "exe", "runtime", "unit", "container", "user")
# By the name of the page that the flame graph is of.
PROFILES = {
    "profile": "CPU time by function",
    "offcpu": "Waits by function",
    "mutex": "Waits for locks by function",
    "fault": "Page faults by function",
}


def flame_graphs(scheme):
    """Links to the exporter itself, of a row of a table that has both labels."""
    page = scheme + "://${__data.fields.instance:raw}/flame?workload=${__data.fields.workload:percentencode}"
    return [(title, f"{page}&type={kind}&seconds=10") for kind, title in PROFILES.items()]


def identity(scheme):
    links = {"instance": flame_graphs(scheme)}
    return "Identity", [
        (
            7,
            [
                table(
                    "What it is",
                    "What is known of the workload on each instance; empty: not known. A click on an "
                    "instance offers flame graphs of the workload there, taken now, if its exporter "
                    "has --collector.profiles and may be reached from here.",
                    [
                        f"max by ({', '.join(IDENTITY)}) (workload_info{{{WORKLOADS}}})"
                    ],
                    "workload",
                    [column(name, name.capitalize(), links=links.get(name, ())) for name in IDENTITY],
                    "Workload",
                ),
                timeseries(
                    "Processes",
                    "Processes that are alive.",
                    [target(gauge("workload_processes", "workload, instance"), "{{workload}} {{instance}}")],
                    "short",
                ),
            ],
        )
    ]


def make(scheme):
    sections = [requests(), queue(), threads()]
    sections += [locks(), connections(), identity(scheme)]
    return dashboard(
        "workload-exporter-workload",
        "Workload",
        "One service in depth: requests, queue, threads, locks, connections.",
        ("cluster", "job", "instance", "workload", "pool", "role"),
        sections,
    )
