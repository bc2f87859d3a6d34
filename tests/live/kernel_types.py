# SPDX-License-Identifier: Apache-2.0
"""
What the kernel's description of its types tells; and a kernel that lacks something, played by a
changed copy of that, mounted over the real one for one command alone. Commands here execute the one
that follows them.
"""

from pathlib import Path

KERNEL_TYPES = Path("/sys/kernel/btf/vmlinux")


def programs_are_preempted():
    """At tracepoints, since Linux 7.0: see exporter/kernel/spares.h."""
    return b"class_srcu_fast_notrace_t" in KERNEL_TYPES.read_bytes()


def mounted(script, *then):
    """Runs a command where the mounts of the shell @script have been made."""
    return ["unshare", "--mount", "sh", "-c", f'{script} && exec "$@"', "sh", *then]


def without(directory, name):
    """Runs a command on a kernel in whose types @name is called otherwise."""
    types = KERNEL_TYPES.read_bytes()
    old = b"\0" + name.encode() + b"\0"
    assert types.count(old) == 1
    changed = directory / "types"
    changed.write_bytes(types.replace(old, b"\0" + name[:-1].encode() + b"0\0"))
    return mounted(f"mount --bind {changed} {KERNEL_TYPES}")
