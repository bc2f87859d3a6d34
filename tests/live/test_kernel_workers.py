# SPDX-License-Identifier: Apache-2.0
"""
Threads of a service that never leave the kernel. Since Linux 6.4 the worker of vhost, which moves the
packets of a virtual machine, is a thread of the process that has asked for it (kernel/vhost_task.c). The
worker has registers like any other thread, and they tell nothing.
"""

import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from services import Process, free_port, python_link, unique_name

DEVICE = Path("/dev/vhost-net")
REST_SECONDS = 2

pytestmark = pytest.mark.skipif(not DEVICE.exists(), reason="the kernel has no vhost_net")

SERVER = f"""
import fcntl, socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
device = open("{DEVICE}", "rb+", buffering=0)
fcntl.ioctl(device, 0xAF01)  # VHOST_SET_OWNER of include/uapi/linux/vhost.h
print("ready", flush=True)
listener.accept()
"""


class Owner(Process):
    def __init__(self):
        self.name, self.port = unique_name("vhost"), free_port()
        super().__init__([python_link(self.name), "-c", SERVER, self.port], stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == b"ready\n"


def test_a_worker_of_vhost_without_work_is_idle(exporter, start):
    server = start(Owner)
    threads = len(os.listdir(f"/proc/{server.pid}/task"))
    release = re.match(r"(\d+)\.(\d+)", os.uname().release)
    is_thread = tuple(map(int, release.groups())) >= (6, 4)
    assert threads == 1 + is_thread

    def states(scrape):
        """[(pool, state in which it has a thread)]"""
        rows = scrape.rows("workload_threads", workload=server.name)
        return sorted((labels["pool"], labels["state"]) for labels, value in rows if value)

    expected = [("vhost-#", "idle")] * is_thread + [(server.name, "idle")]
    exporter.wait_for_equal(states, expected)
    time.sleep(REST_SECONDS)
    assert states(exporter.scrape()) == expected
