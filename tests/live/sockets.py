# SPDX-License-Identifier: Apache-2.0
"""Sockets that are passed to the exporter as systemd passes them."""

import os
import socket
import sys

# Passes descriptors as systemd does: from 3 on, to this very process.
PASS = """
import os, sys
for number, fd in enumerate(map(int, sys.argv[1].split(",")), 3):
    os.dup2(fd, number)
os.environ.update(LISTEN_FDS=sys.argv[2], LISTEN_PID=str(os.getpid() + int(sys.argv[3])))
os.execv(sys.argv[4], sys.argv[4:])
"""


def passing(*sockets, count=None, pid_offset=0):
    """The launcher and the options that hand @sockets over."""
    # High numbers first, so that none is overwritten before it is passed.
    for one in sockets:
        os.set_inheritable(one.fileno(), True)
    high = [os.dup2(one.fileno(), 200 + i) for i, one in enumerate(sockets)]
    numbers = ",".join(map(str, high))
    launcher = [sys.executable, "-c", PASS, numbers, str(count or len(sockets)), str(pid_offset)]
    return {"launcher": launcher, "pass_fds": high}


def listening(family=socket.AF_INET, address=("127.0.0.1", 0)):
    made = socket.socket(family)
    made.bind(address)
    made.listen()
    return made
