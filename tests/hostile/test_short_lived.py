# SPDX-License-Identifier: Apache-2.0
"""
Thousands of processes that listen and exit at once. While they do, the tables of every exporter of
the machine are full.
"""

from services import Process, own_copy

OTHERS = 50  # what the rest of the machine may start meanwhile
TABLES = ("trees", "endpoints", "pools", "threads")
FLOOD = 20000  # several are sure to listen just while a walk ends
RECOUNTED_SECONDS = 60  # some machines hide that a thread is freed: two counts of all tell, 20 s
SHORT_LIVED = 2500  # so many that some exit while they are being found


def map_entries(scrape):
    rows = scrape.rows("workload_exporter_map_entries")
    return {labels["map"]: value for labels, value in rows}


def short_lived_run_to_end(start):
    """Starts processes that listen and exit; returns their workload's name."""
    program = own_copy("short_lived")
    process = start(Process, [program, f"--children={SHORT_LIVED}"])
    assert process.process.wait(60) == 0
    return program.name


def test_listeners_that_exit_at_once_leave_nothing_behind(start, exporters):
    exporter = exporters("--workloads.grace-period=1s")
    before = map_entries(exporter.scrape())
    for _ in range(2):
        name = short_lived_run_to_end(start)
        exporter.wait_for_equal(lambda s, n=name: s.belonging_to(n), {})
    exporter.wait_for_equal(
        lambda s: {t: n for t in TABLES if (n := map_entries(s)[t]) > before[t] + OTHERS},
        {},
        RECOUNTED_SECONDS,
    )


def test_processes_that_listen_while_tasks_are_walked_are_no_loss(start, exporters):
    exporter = exporters()
    flood = start(Process, [own_copy("short_lived"), f"--children={FLOOD}"])
    assert flood.process.wait(300) == 0
    lost = exporter.scrape().one("workload_exporter_dropped_total", reason="thread_untracked")
    assert lost == 0
