# SPDX-License-Identifier: Apache-2.0
"""The health of the exporter itself: what is attached, what is lost, what it costs."""

from panels import column, dashboard, stat, table, target, timeseries
from promql import INSTANCES, WINDOW, rate

INSTANCE = "{{instance}}"


def mine(metric, by, operation="max", more=""):
    return f"{operation} by ({by}) ({metric}{{{INSTANCES}{more}}})"


def growth(metric, by):
    return rate(metric, by, scope=INSTANCES)


def numbers():
    bad = (("green", None), ("red", 1))
    return [
        stat(
            "Exporters up",
            "Instances that answer.",
            f"sum(up{{{INSTANCES}}})",
            "short",
            (("red", None), ("green", 1)),
        ),
        stat(
            "Probes not attached",
            "Hooks that the kernel or the privileges do not allow: see the table.",
            f"sum(workload_exporter_probe_attached{{{INSTANCES}}} == bool 0)",
            "short",
            bad,
        ),
        stat(
            "Collectors that failed",
            "Parts of the last scrape whose numbers are missing or incomplete.",
            f"sum(workload_scrape_collector_success{{{INSTANCES}}} == bool 0)",
            "short",
            bad,
        ),
        stat(
            "Lost per second",
            "Measurements that were lost or went to `other`, for all reasons but `switch_unseen`.",
            f'sum(rate(workload_exporter_dropped_total{{{INSTANCES}, reason!="switch_unseen"}}{WINDOW}))',
            "ops",
            (("green", None), ("yellow", 0.1), ("red", 10)),
        ),
        stat(
            "Fullest map",
            "Entries / capacity of the BPF map with the least room.",
            f"max({mine('workload_exporter_map_entries', 'instance, map')}"
            f" / {mine('workload_exporter_map_capacity', 'instance, map')})",
            "percentunit",
            (("green", None), ("yellow", 0.7), ("red", 0.9)),
        ),
        stat(
            "Slowest scrape",
            "Time that Prometheus waited for the slowest instance.",
            f"max(scrape_duration_seconds{{{INSTANCES}}})",
            "s",
            (("green", None), ("yellow", 0.5), ("red", 2)),
        ),
    ]


def tables():
    return [
        table(
            "Versions",
            "What each instance was built from.",
            [mine("workload_exporter_build_info", "instance, version, revision, branch, compiler")],
            "instance",
            [
                column(name, name.capitalize())
                for name in ("instance", "version", "revision", "branch", "compiler")
            ],
            "Instance",
        ),
        table(
            "Probes",
            "1: attached; 0: the kernel or the privileges do not allow it.",
            [mine("workload_exporter_probe_attached", "instance, feature, probe")],
            "probe",
            [
                column("feature", "Feature"),
                column("probe", "Probe"),
                column("instance", "Instance"),
                column("Value", "Attached", "bool_yes_no", (("red", None), ("transparent", 1))),
            ],
            "Feature",
        ),
    ]


def losses():
    return [
        timeseries(
            "Lost measurements",
            "Lost or counted as `other`, per second, by reason, in all and, where it is known, of which"
            " workload; the runbook explains each.",
            [
                target(
                    growth("workload_exporter_dropped_total", "instance, reason") + " or "
                    + growth("workload_measurements_dropped_total", "instance, workload, reason"),
                    f"{INSTANCE} {{{{workload}}}} {{{{reason}}}}",
                )
            ],
            "ops",
        ),
        timeseries(
            "Map fill",
            "Entries / capacity of each BPF map.",
            [
                target(
                    f"{mine('workload_exporter_map_entries', 'instance, map')}"
                    f" / {mine('workload_exporter_map_capacity', 'instance, map')}",
                    f"{INSTANCE} {{{{map}}}}",
                )
            ],
            "percentunit",
        ),
        timeseries(
            "Collectors",
            "Time that each part of a scrape took.",
            [
                target(
                    mine("workload_scrape_collector_duration_seconds", "instance, collector"),
                    f"{INSTANCE} {{{{collector}}}}",
                )
            ],
            "s",
        ),
        timeseries(
            "Refused by the web server",
            "Connections and requests that the exporter has turned away or ended, by reason.",
            [
                target(
                    growth("workload_exporter_http_refused_total", "instance, reason"),
                    f"{INSTANCE} {{{{reason}}}}",
                )
            ],
            "ops",
        ),
        timeseries(
            "Processes with probes on mutexes",
            "By what has become of the probes; only with --mutex.backend=uprobe.",
            [
                target(
                    mine("workload_exporter_mutex_processes", "instance, result"),
                    f"{INSTANCE} {{{{result}}}}",
                )
            ],
            "short",
        ),
        timeseries(
            "Samples of profiles",
            "By how their stacks end: what is not complete lacks callers. Only with --collector.profiles.",
            [
                target(
                    growth("workload_exporter_profile_samples_total", "instance, stack"),
                    f"{INSTANCE} {{{{stack}}}}",
                )
            ],
            "ops",
        ),
    ]


def cost():
    run = growth("workload_exporter_bpf_run_seconds_total", "instance, program")
    runs = growth("workload_exporter_bpf_runs_total", "instance, program")
    return [
        timeseries(
            "BPF programs: CPUs",
            "CPUs that each program keeps busy; only while kernel.bpf_stats_enabled is set.",
            [target(run, f"{INSTANCE} {{{{program}}}}")],
            "short",
        ),
        timeseries(
            "BPF programs: time per run",
            "Mean time of a run; only while kernel.bpf_stats_enabled is set.",
            [target(f"{run} / {runs}", f"{INSTANCE} {{{{program}}}}")],
            "s",
        ),
        timeseries(
            "CPU of the exporter",
            "CPUs that the process keeps busy, without its BPF programs.",
            [target(growth("process_cpu_seconds_total", "instance"), INSTANCE)],
            "short",
        ),
    ]


def process():
    return [
        timeseries(
            "Memory",
            "Memory of the process.",
            [
                target(mine("process_resident_memory_bytes", "instance"), f"{INSTANCE} resident"),
                target(mine("process_virtual_memory_bytes", "instance"), f"{INSTANCE} virtual"),
            ],
            "bytes",
        ),
        timeseries(
            "File descriptors",
            "Open descriptors / how many may be open.",
            [
                target(
                    f"{mine('process_open_fds', 'instance')} / {mine('process_max_fds', 'instance')}",
                    INSTANCE,
                )
            ],
            "percentunit",
        ),
        timeseries(
            "Series",
            "Samples of one scrape.",
            [target(mine("scrape_samples_scraped", "instance"), INSTANCE)],
            "short",
        ),
        timeseries(
            "Uptime",
            "Time since the exporter started.",
            [target(f"time() - {mine('process_start_time_seconds', 'instance')}", INSTANCE)],
            "s",
        ),
    ]


def make():
    return dashboard(
        "workload-exporter-health",
        "Exporter health",
        "workload_exporter itself: what is attached, what is lost, what it costs.",
        ("cluster", "job", "instance"),
        [
            (None, [(4, numbers()), (10, tables())]),
            ("Lost and full", [(9, losses())]),
            ("Cost", [(9, cost()), (9, process())]),
        ],
    )
