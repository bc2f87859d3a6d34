# SPDX-License-Identifier: Apache-2.0
"""
Two hosts that are far from each other: a network namespace each, with a TUN device, and this program
is the line between them. It carries packets in order, each as much later as the line is long, and no
faster than the line allows. Arguments: delay of one way in ms, Mbit/s. It says `ready` and a process
in either namespace: in that of 10.77.0.1, and in that of 10.77.0.2.
"""

import collections
import ctypes
import fcntl
import os
import select
import signal
import struct
import subprocess
import sys
import time

CLONE_NEWNET = 0x40000000
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000
WINDOW_SEGMENTS = 40
LIBC = ctypes.CDLL(None, use_errno=True)


def host(address):
    """Moves this process to a namespace of its own; returns the file of its device."""
    assert LIBC.unshare(CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", b"line", IFF_TUN | IFF_NO_PI))
    for words in (
        "link set lo up",
        f"addr add {address}/24 dev line",
        "link set line up",
        # What is sent at once leaves at once: its end does not wait for the acknowledgement of its
        # begin, with which an early answer may come, on a busy machine only.
        f"route replace 10.77.0.0/24 dev line src {address} initcwnd {WINDOW_SEGMENTS}",
    ):
        subprocess.run(["ip", *words.split()], check=True)
    return tun


def stay():
    """A process that stays in the present namespace."""
    pid = os.fork()
    if not pid:
        signal.pause()
    return pid


class Way:
    """From one device to the other."""

    def __init__(self, source, sink, delay, rate):
        self.source, self.sink, self.delay, self.rate = source, sink, delay, rate
        self.packets = collections.deque()  # with the time at which each comes out
        self.free_at = 0.0

    def take(self, now):
        packet = os.read(self.source, 65536)
        self.free_at = max(now, self.free_at) + len(packet) / self.rate
        self.packets.append((self.free_at + self.delay, packet))

    def give(self, now):
        while self.packets and self.packets[0][0] <= now:
            os.write(self.sink, self.packets.popleft()[1])


def carry(ways):
    while True:
        times = [way.packets[0][0] for way in ways if way.packets]
        wait = max(0, min(times) - time.monotonic()) if times else None
        ready, _, _ = select.select([way.source for way in ways], [], [], wait)
        now = time.monotonic()
        for way in ways:
            if way.source in ready:
                way.take(now)
            way.give(now)


def main():
    delay, rate = float(sys.argv[1]) / 1e3, float(sys.argv[2]) * 1e6 / 8
    near = host("10.77.0.1")
    nearby = stay()
    far = host("10.77.0.2")
    print("ready", nearby, os.getpid(), flush=True)
    carry([Way(near, far, delay, rate), Way(far, near, delay, rate)])


main()
