# SPDX-License-Identifier: Apache-2.0
"""What the hypervisor takes from this machine."""

import os
from pathlib import Path


def stolen_seconds():
    """CPU time that the hypervisor has given to other machines so far, of all CPUs together."""
    steal = Path("/proc/stat").read_text().split("\n", 1)[0].split()[8]
    return int(steal) / os.sysconf("SC_CLK_TCK")
