#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Arrows point down: which folder of the sources may include which others, and which headers of the
system one folder alone may include. A pair that is not in the table is forbidden. Prints each
include that breaks it, and ends with 1.
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
    "bpf": [
        "bpf/abi", "bpf/machine", "bpf/lib", "bpf/core", "bpf/discovery", "bpf/requests", "bpf/threads",
    ],
    "exporter/base": [],
    "exporter/identity": ["bpf/abi", "exporter/base"],
    "exporter/model": ["bpf/abi", "exporter/base", "exporter/identity"],
    "exporter/security": ["exporter/base", "exporter/identity"],
    "exporter/kernel": [
        "bpf/abi", "exporter/base", "exporter/identity", "exporter/model", "exporter/security",
    ],
    "exporter/features": [
        "bpf/abi", "exporter/base", "exporter/identity", "exporter/model", "exporter/kernel",
    ],
    "exporter/collect": [
        "bpf/abi", "exporter/base", "exporter/identity", "exporter/model", "exporter/security",
        "exporter/kernel", "exporter/features",
    ],
    "exporter/exposition": ["bpf/abi", "exporter/base", "exporter/model"],
    "exporter/web": ["exporter/base", "exporter/security"],
    "exporter/http": ["exporter/base", "exporter/model", "exporter/web"],
    "exporter/commands": [
        "exporter/base", "exporter/identity", "exporter/security", "exporter/kernel", "exporter/features",
        "exporter/web",
    ],
    "exporter/config": [
        "exporter/base", "exporter/security", "exporter/features", "exporter/http", "exporter/commands",
    ],
    "exporter/app": [
        "exporter/base", "exporter/model", "exporter/security", "exporter/kernel", "exporter/features",
        "exporter/collect", "exporter/exposition", "exporter/http", "exporter/commands", "exporter/config",
    ],
}  # fmt: skip
# What one room alone knows of the libraries and of the system.
KNOWN_IN = {
    r"bpf/(lib)?bpf\.h|bpf/btf\.h|.*\.skel\.h": "exporter/kernel",
    r"sys/epoll\.h": "exporter/base",
    r"microhttpd\.h": "exporter/http",
    r"seccomp\.h": "exporter/security",
}
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


def main():
    files = [
        path
        for base in ("bpf", "exporter")
        for path in sorted((ROOT / base).rglob("*.[ch]"))
    ]
    strange = {path.parent.relative_to(ROOT).as_posix() for path in files} - set(ROOMS)
    found = [f"{room}: is not in the table of scripts/rooms.py" for room in sorted(strange)]
    found += [fault for path in files if not strange for fault in faults(path)]
    print(*found, sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
