# SPDX-License-Identifier: Apache-2.0
"""The BPF programs and maps of one process, as the kernel accounts for them."""

import contextlib
import json
import re
import shutil
import subprocess
from pathlib import Path

STATISTICS = Path("/proc/sys/kernel/bpf_stats_enabled")
BPFTOOL = shutil.which("bpftool", path="/usr/sbin:/sbin:/usr/local/sbin:/usr/bin") or "bpftool"


def _show(what):
    done = subprocess.run([BPFTOOL, "--json", what, "show"], capture_output=True, check=True)
    return json.loads(done.stdout)


def _ids(pid, key):
    """The numbers named @key in what the process's descriptors say; a link names its program."""
    found = set()
    for path in Path(f"/proc/{pid}/fdinfo").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found |= {int(n) for n in re.findall(rf"^{key}:\s*(\d+)", path.read_text(), re.M)}
    return found


def programs(pid):
    """[{id, name, runs, ns, memory_bytes, map_ids}] of the process."""
    own = _ids(pid, "prog_id")
    return [
        {
            "id": program["id"],
            "name": program.get("name", str(program["id"])),
            "runs": program.get("run_cnt", 0),
            "ns": program.get("run_time_ns", 0),
            "memory_bytes": program["bytes_memlock"],
            "map_ids": program.get("map_ids", []),
        }
        for program in _show("prog")
        if program["id"] in own
    ]


def all_program_ids():
    """Of the whole machine."""
    return {program["id"] for program in _show("prog")}


def memory_bytes(pid):
    """Kernel memory of the process's programs and of all maps that they or it hold."""
    own = programs(pid)
    maps = _ids(pid, "map_id").union(*(program["map_ids"] for program in own))
    held = sum(each["bytes_memlock"] for each in _show("map") if each["id"] in maps)
    return held + sum(program["memory_bytes"] for program in own)


def ran_between(before, after):
    """{name: (runs, ns)} of what ran between two lists of programs()."""
    old = {program["id"]: program for program in before}
    ran = {}
    for new in after:
        was = old.get(new["id"], {"runs": 0, "ns": 0})
        runs, ns = new["runs"] - was["runs"], new["ns"] - was["ns"]
        if runs:
            known = ran.get(new["name"], (0, 0))
            ran[new["name"]] = (known[0] + runs, known[1] + ns)
    return ran


@contextlib.contextmanager
def statistics():
    """Switches the kernel's BPF statistics on; they cost about 50 ns for each run of a program."""
    before = STATISTICS.read_text()
    STATISTICS.write_text("1")
    try:
        yield
    finally:
        STATISTICS.write_text(before)
