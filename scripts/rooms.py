#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Arrows point down: which folder of the sources may include which others, which headers of the system
one folder alone may include, and through which functions a room is told by others what to call. What
is not in the tables is forbidden. Prints each line that breaks them, and ends with 1.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Every folder may include itself, and those below it that it names.
ROOMS = {
    "bpf/abi": [],
    "bpf/machine": ["bpf/abi"],
    "bpf/lib": ["bpf/abi", "bpf/machine"],
    "bpf/core": ["bpf/abi", "bpf/machine", "bpf/lib"],
    "bpf/discovery": ["bpf/abi", "bpf/machine", "bpf/lib", "bpf/core"],
    "bpf/requests": ["bpf/abi", "bpf/machine", "bpf/lib", "bpf/core"],
    "bpf/threads": ["bpf/abi", "bpf/machine", "bpf/lib", "bpf/core"],
    "bpf/profiles": ["bpf/abi", "bpf/machine", "bpf/lib", "bpf/core"],
    "bpf": [
        "bpf/abi", "bpf/machine", "bpf/lib", "bpf/core", "bpf/discovery", "bpf/requests", "bpf/threads",
        "bpf/profiles",
    ],
    "exporter/base": [],
    "exporter/identity": ["bpf/abi", "exporter/base"],
    "exporter/unwind": ["bpf/abi", "exporter/base"],
    "exporter/model": ["bpf/abi", "exporter/base", "exporter/identity"],
    "exporter/security": ["exporter/base", "exporter/identity"],
    "exporter/helpers": ["exporter/base", "exporter/security"],
    "exporter/profiles": [
        "bpf/abi", "exporter/base", "exporter/identity", "exporter/unwind", "exporter/model",
        "exporter/security", "exporter/helpers", "exporter/kernel", "exporter/registry",
        "exporter/exposition", "exporter/http",
    ],
    "exporter/kernel": [
        "bpf/abi", "exporter/base", "exporter/identity", "exporter/model", "exporter/security",
    ],
    "exporter/registry": [
        "bpf/abi", "exporter/base", "exporter/identity", "exporter/model", "exporter/helpers",
        "exporter/kernel", "exporter/security",
    ],
    "exporter/features": [
        "bpf/abi", "exporter/base", "exporter/identity", "exporter/model", "exporter/security",
        "exporter/helpers", "exporter/kernel", "exporter/registry", "exporter/http", "exporter/profiles",
    ],
    "exporter/collect": [
        "bpf/abi", "exporter/base", "exporter/identity", "exporter/model", "exporter/kernel",
        "exporter/registry", "exporter/features",
    ],
    "exporter/exposition": ["bpf/abi", "exporter/base", "exporter/model"],
    "exporter/web": ["exporter/base", "exporter/security", "exporter/helpers"],
    "exporter/http": ["exporter/base", "exporter/model", "exporter/helpers", "exporter/web"],
    "exporter/commands": [
        "exporter/base", "exporter/identity", "exporter/security", "exporter/kernel", "exporter/features",
        "exporter/web",
    ],
    "exporter/config": [
        "exporter/base", "exporter/security", "exporter/features", "exporter/http", "exporter/commands",
    ],
    "exporter/app": [
        "exporter/base", "exporter/model", "exporter/security", "exporter/helpers", "exporter/kernel",
        "exporter/registry", "exporter/features", "exporter/collect", "exporter/exposition", "exporter/http",
        "exporter/commands", "exporter/config", "exporter/profiles",
    ],
}  # fmt: skip
# What one room alone knows of the libraries and of the system.
KNOWN_IN = {
    r"bpf/(lib)?bpf\.h|bpf/btf\.h|.*\.skel\.h": "exporter/kernel",
    r"sys/epoll\.h": "exporter/base",
    r"microhttpd\.h": "exporter/http",
    r"seccomp\.h": "exporter/security",
}
# The functions that a header takes, most of them from rooms above its own. A reader of the code cannot
# follow a call through one: so each is here, and has a reason.
CALLED_BACK = {
    # An event has come, or a date.
    "exporter/base/loop.h": "ready due_ns run",
    "exporter/http/page.h": "gone http_page_fn",
    "exporter/features/mutexes.h": "mutexes_note_fn",
    "exporter/web/guard.h": "say",
    "exporter/profiles/profiler.h": "profiler_taken_fn",
    # Rows of a table.
    "exporter/base/command.h": "run",
    "exporter/base/flag.h": "set show",
    "exporter/features/feature.h": "open close collect show show_self maps fold retire try helper_holds",
    "exporter/kernel/plan.h": "size fill",
    "exporter/kernel/sizes.h": "entries",
    "exporter/kernel/objects.h": "destroy",
    # A visit of each.
    "exporter/identity/proc.h": "proc_line_fn",
    "exporter/kernel/table.h": "table_row_fn",
    "exporter/kernel/walk.h": "walk_row_fn",
    "exporter/model/metrics.h": "family sample histogram",
    "exporter/exposition/series.h": "head",
    # What a process of its own does.
    "exporter/helpers/helper.h": "answer check",
    "exporter/helpers/keeper.h": "run",
}
FUNCTION_POINTER = re.compile(r"\(\s*\*\s*(?:const\s+)?(\w+)\s*(?:\[[^]]*\]\s*)?\)\s*\(")
INCLUDE = re.compile(r'^\s*#include [<"](.*?)[>"]', re.MULTILINE)


def room_of(path):
    """The folder whose file an include of the project names; None: a library's, or the system's."""
    for base in ("exporter", "bpf"):
        if (ROOT / base / path).is_file():
            return (Path(base) / path).parent.as_posix()
    return None


def known_in(include):
    """The room that alone may include it; None: any may."""
    return next((room for known, room in KNOWN_IN.items() if re.fullmatch(known, include)), None)


def faults(path):
    """What is wrong with the includes of one file."""
    room = path.parent.relative_to(ROOT).as_posix()
    name = path.relative_to(ROOT)
    includes = INCLUDE.findall(path.read_text())
    for include in includes:
        if includes.count(include) > 1 and not include.endswith(".def"):
            yield f"{name}: {include}: is included twice"
        knows = known_in(include)
        if knows and room.startswith("exporter"):
            if room != knows:
                yield f"{name}: {include}: only {knows} may know it"
            continue
        if ".." in Path(include).parts:
            yield f"{name}: {include}: an include does not climb"
        target = room_of(include)
        if target and target != room and target not in ROOMS[room]:
            yield f"{name}: {include}: {room} may not include {target}"


def called_back(path):
    """What is wrong with the functions that a header takes."""
    name = path.relative_to(ROOT).as_posix()
    taken = set(FUNCTION_POINTER.findall(path.read_text())) if path.suffix == ".h" else set()
    allowed = set(CALLED_BACK.get(name, "").split())
    for function in sorted(taken - allowed):
        yield f"{name}: {function}: calls upwards; return what there is to do, or add it to CALLED_BACK"
    for function in sorted(allowed - taken):
        yield f"{name}: {function}: is in CALLED_BACK, and not in the header"


def main():
    files = [
        path
        for base in ("bpf", "exporter")
        for path in sorted((ROOT / base).rglob("*.[ch]"))
    ]
    strange = {path.parent.relative_to(ROOT).as_posix() for path in files} - set(ROOMS)
    found = [f"{room}: is not in the table of scripts/rooms.py" for room in sorted(strange)]
    found += [fault for path in files if not strange for fault in faults(path)]
    found += [fault for path in files for fault in called_back(path)]
    found += [f"{name}: is in CALLED_BACK, and not there" for name in CALLED_BACK if not (ROOT / name).is_file()]
    print(*found, sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
