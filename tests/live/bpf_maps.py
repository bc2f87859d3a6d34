# SPDX-License-Identifier: Apache-2.0
"""Maps of an exporter, as bpftool shows and changes them."""

import json
import subprocess


def bpftool(*arguments):
    done = subprocess.run(
        ["bpftool", "--json", "map", *arguments], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)


def map_shown(exporter, name, pid=None):
    """What is shown of the one of this name that the exporter, or process @pid of it, holds."""
    shown = [bpftool("show", "id", str(each)) for each in exporter.bpf_ids("map", pid)]
    (found,) = (each for each in shown if each["name"] == name)
    return found
