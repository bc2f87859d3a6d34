# SPDX-License-Identifier: Apache-2.0
"""
As burner.c, in Python: main burns CPU time in three functions that call spin, and in a function of
the library zlib, which is not of Python. With the argument `foreign` also in one that is called by
code that is generated here (x86-64), which keeps another frame than Python's own. With `public` all
may read its perf map.

Commands: anything (most_ns, some_ns, least_ns, native_ns: CPU time of each), `quit`.
"""

import ctypes
import functools
import mmap
import os
import select
import socket
import sys
import time
import zlib

ROUNDS = 40000
BYTES = bytes(8 << 20)


def spin(rounds):
    total = 1
    for i in range(rounds):
        total = (total * 48271 + i) & 0xFFFFFFFF
    return total


def burn_most():
    return spin(6 * ROUNDS) + 1


def burn_some():
    return spin(3 * ROUNDS) + 2


def burn_least():
    return spin(ROUNDS) + 3


def burn_native():
    return zlib.crc32(BYTES)


# push %rbp; push %rbx; sub $8, %rsp; call *%rdi; add $8, %rsp; pop %rbx; pop %rbp; ret
FOREIGN = bytes.fromhex("55 53 4883ec08 ffd7 4883c408 5b 5d c3")
CALLBACK = ctypes.CFUNCTYPE(None)


def foreign():
    protection = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
    page = mmap.mmap(-1, mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, protection)
    page.write(FOREIGN)
    held = ctypes.c_char.from_buffer(page)
    generated = ctypes.CFUNCTYPE(None, CALLBACK)(ctypes.addressof(held))
    generated.held = held
    return generated


@CALLBACK
def burn_called():
    spin(3 * ROUNDS)


BURNS = {"most": burn_most, "some": burn_some, "least": burn_least, "native": burn_native}
if "foreign" in sys.argv:
    BURNS["foreign"] = functools.partial(foreign(), burn_called)
spent = dict.fromkeys(BURNS, 0)


def slice_of(name):
    begin = time.process_time_ns()
    BURNS[name]()
    spent[name] += time.process_time_ns() - begin


def answer(line):
    if line == "quit":
        sys.exit(0)
    for name, ns in spent.items():
        print(f"{name}_ns {ns}")
    print("ok", flush=True)


def main():
    if "public" in sys.argv:
        os.chmod(f"/tmp/perf-{os.getpid()}.map", 0o644)
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"ready {listener.getsockname()[1]}", flush=True)
    while True:
        for name in BURNS:
            slice_of(name)
        if select.select([sys.stdin], [], [], 0)[0]:
            answer(sys.stdin.readline().strip())


main()
