# SPDX-License-Identifier: Apache-2.0
"""The limits under which the systemd unit runs the exporter, without systemd."""

import os
import re
from pathlib import Path

import pytest

from exporter import ROOT
from services import unique_name, wait_until

UNIT = ROOT / "scripts" / "systemd" / "workload_exporter.service"
ENTER = 'echo $$ > "$0/cgroup.procs" && exec "$@"'
SECONDS = 10


def unit_memory_bytes():
    return int(re.search(r"^MemoryMax=(\d+)M$", UNIT.read_text(), re.M)[1]) << 20


def _own_folder():
    """This process's own folder in the hierarchy that accounts memory, and whether it is version 1."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "memory":
            return Path("/sys/fs/cgroup/memory") / path.lstrip("/"), True
    return Path("/sys/fs/cgroup") / path.lstrip("/"), False


class MemoryLimit:
    """A cgroup below this process's own, by default with the unit's limit; skips where there is none."""

    def __init__(self, limit_bytes=None):
        parent, self.is_v1 = _own_folder()
        self.folder = parent / unique_name("limit")
        # Version 1 accounts for what sockets hold apart, and only if it is limited.
        v1 = ("memory.limit_in_bytes", "memory.kmem.tcp.limit_in_bytes")
        try:
            self.folder.mkdir()
            for limit in v1 if self.is_v1 else ("memory.max",):
                (self.folder / limit).write_text(str(limit_bytes or unit_memory_bytes()))
        except OSError as error:
            pytest.skip(f"no memory cgroup can be made here: {error}")

    @property
    def launcher(self):
        return ["sh", "-c", ENTER, str(self.folder)]

    def peak_bytes(self):
        """Of all memory, what sockets hold included."""
        if not self.is_v1:
            return int((self.folder / "memory.peak").read_text())
        parts = ("memory.max_usage_in_bytes", "memory.kmem.tcp.max_usage_in_bytes")
        return sum(int((self.folder / part).read_text()) for part in parts)

    def kills(self):
        name = "memory.oom_control" if self.is_v1 else "memory.events"
        return int(re.search(r"^oom_kill (\d+)$", (self.folder / name).read_text(), re.M)[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # What is in it has been told to end, and may take a moment.
        wait_until(
            lambda: not (self.folder / "cgroup.procs").read_text(), SECONDS, "it stays in its cgroup"
        )
        os.rmdir(self.folder)
