# SPDX-License-Identifier: Apache-2.0
"""Cgroups of a test's own, and services that start in them."""

import contextlib
import errno
import subprocess
from pathlib import Path

from services import SCRATCH, unique_name, wait_until

# What init systems arrange services by: version 2, or a hierarchy of version 1.
HIERARCHIES = {
    "version 2": ["-t", "cgroup2"],
    "version 1": ["-t", "cgroup", "-o", "none,name=systemd"],
}
# Executes what follows in the cgroup whose directory comes first.
JOIN = ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"']


def inside(directory):
    return [*JOIN, directory]


@contextlib.contextmanager
def mounted(version):
    """The root of one of HIERARCHIES."""
    mount = SCRATCH / unique_name("mount")
    mount.mkdir(parents=True)
    subprocess.run(["mount", *HIERARCHIES[version], "none", mount], check=True)
    try:
        yield mount
    finally:
        subprocess.run(["umount", mount], check=True)
        mount.rmdir()


def _is_removed(directory):
    """Not while a process is in it that has ended but was not waited for, which is not listed."""
    try:
        directory.rmdir()
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        return False
    return True


@contextlib.contextmanager
def cgroup(root, path):
    """The directory of the cgroup @path; what of it was not there is removed when all have left."""
    directory, made = Path(root), []
    for part in Path(path).parts:
        directory /= part
        if not directory.exists():
            directory.mkdir()
            made.append(directory)
    try:
        yield directory
    finally:
        for each in reversed(made):
            wait_until(lambda path=each: _is_removed(path), 10, "processes stay in a cgroup")
