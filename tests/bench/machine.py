# SPDX-License-Identifier: Apache-2.0
"""What the numbers were measured on, and how the cores are shared between service and client."""

import contextlib
import os
import platform
import re
import subprocess
import time
from pathlib import Path

from paths import ROOT

CORES = sorted(os.sched_getaffinity(0))
SERVICE_CORE = str(CORES[-1])
CLIENT_CORE = str(CORES[0])


def take_precedence(pid="self", nice=-20):
    """
    What else runs on the machine gives way to the session of a process. Where the scheduler groups
    sessions, only the group's weight counts, else that of the process.
    """
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/autogroup").write_text(str(nice))
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0 if pid == "self" else pid, nice)


@contextlib.contextmanager
def precedence():
    """The same for this process and what it starts in its session, for a while."""
    take_precedence()
    try:
        yield
    finally:
        take_precedence(nice=0)


def on_core(core):
    return ["taskset", "--cpu-list", core]


def _first(pattern, path, otherwise="unknown"):
    match = re.search(pattern, Path(path).read_text(), re.MULTILINE)
    return match[1].strip() if match else otherwise


def _revision():
    command = ["git", "-C", ROOT, "describe", "--always", "--dirty"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def describe():
    """The machine, the kernel and the exporter's revision, and how busy the machine was."""
    return {
        "cpu": _first(r"^model name\s*:(.*)$", "/proc/cpuinfo"),
        "cores": len(CORES),
        "memory_bytes": int(_first(r"^MemTotal:\s*(\d+)", "/proc/meminfo", "0")) * 1024,
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "virtual": "hypervisor" in Path("/proc/cpuinfo").read_text(),
        "revision": _revision(),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "load_before": os.getloadavg()[0],
    }
