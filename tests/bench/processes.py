# SPDX-License-Identifier: Apache-2.0
"""What a process has used: CPU time to the nanosecond, memory."""

import time
from pathlib import Path


def children(pid):
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def tree(pid):
    """The process and all its descendants that are children of main threads."""
    return [pid] + [below for child in children(pid) for below in tree(child)]


def cpu_ns(pid):
    """CPU time of all threads of a process, those that have ended included."""
    # The clock's id as glibc's clock_getcpuclockid(3) makes it: CPUCLOCK_SCHED of the process.
    return time.clock_gettime_ns((~pid << 3) | 2)


def tree_cpu_ns(pid):
    return sum(cpu_ns(each) for each in tree(pid))


def _rss_bytes(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) * 1024


def tree_rss_bytes(pid):
    return sum(_rss_bytes(each) for each in tree(pid))
