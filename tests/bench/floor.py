# SPDX-License-Identifier: Apache-2.0
"""
Empty programs beside the exporter's: one for each, at the same tracepoint, counted by the same
statistics at the same time. What they cost is no work of the exporter's: goals are net of it.
"""

import platform
import re
import subprocess

import bpf
import paths

NATIVE = {"x86_64": "x86", "aarch64": "arm64"}[platform.machine()]


def tracepoints():
    """{program: tracepoint} of all programs that were built; another build has most of them too."""
    found = {}
    for path in (paths.BUILD / "bpf" / NATIVE).glob("*.bpf.o"):
        symbols = subprocess.run(
            ["llvm-objdump", "--syms", path], capture_output=True, check=True, text=True
        ).stdout
        for hook, name in re.findall(r" g +F tp_btf/(\w+)\s+\w+ (\w+)$", symbols, re.MULTILINE):
            found[name] = hook
    return found


class Floor:
    """The empty programs beside those of process @pid, until stop()."""

    def __init__(self, pid):
        hooks = tracepoints()
        own = sorted({each["name"] for each in bpf.programs(pid)} & hooks.keys())
        self._names = {f"floor_{number}": name for number, name in enumerate(own)}
        self._process = subprocess.Popen(
            [paths.BUILD / "bench" / "floor"]
            + [f"{floor}={hooks[name]}" for floor, name in self._names.items()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        if self._process.stdout.readline() != b"ready\n":
            self.stop()
            raise RuntimeError("the empty programs cannot be attached")

    def programs(self):
        """As bpf.programs(), by the names of those that they are beside."""
        found = bpf.programs(self._process.pid)
        return [{**each, "name": self._names[each["name"]]} for each in found]

    def stop(self):
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
