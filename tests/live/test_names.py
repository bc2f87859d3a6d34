# SPDX-License-Identifier: Apache-2.0
"""Names that processes choose: every byte, in both text formats, and nothing is lost by it."""

import os
import re
import subprocess

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from services import Process, Service, free_port, python_link, unique_name

OPENMETRICS = "application/openmetrics-text; version=1.0.0"
THREAD_NAME_BYTES = 15
EVERY_BYTE = bytes(range(1, 256))
THREAD_NAMES = [
    EVERY_BYTE[i : i + THREAD_NAME_BYTES] for i in range(0, len(EVERY_BYTE), THREAD_NAME_BYTES)
]
NAMER = """
import ctypes, socket, sys, threading
libc = ctypes.CDLL(None)
started = threading.Barrier(len(sys.argv) - 1)
def run(name):
    libc.prctl(15, name, 0, 0, 0)
    started.wait()
    threading.Event().wait()
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
for word in sys.argv[2:]:
    threading.Thread(target=run, args=(bytes.fromhex(word),), daemon=True).start()
started.wait()
print("ready", flush=True)
threading.Event().wait()
"""


class NamedThreads(Process):
    """Listens, with a thread for each of the names."""

    def __init__(self, names):
        self.port = free_port()
        words = [name.hex() for name in names]
        super().__init__(
            [python_link(unique_name("python")), "-c", NAMER, self.port, *words],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout.readline() == "ready\n"


def shown(name):
    """@name as a label: bytes that are no UTF-8 or a control character's are replaced, one by one."""
    text = name.decode("utf-8", "surrogateescape")
    text = re.sub("[\x80-\x9f]", "\ufffd\ufffd", text)
    return re.sub("[\udc80-\udcff\0-\x1f\x7f]", "\ufffd", text)


def pages(exporter):
    """The samples of both formats, read by the official parsers."""
    found = []
    for accept, read in ((OPENMETRICS, read_openmetrics), ("text/plain", read_text)):
        _, headers, text = exporter.request(Accept=accept)
        assert headers["Content-Type"].startswith(accept.split(";")[0])
        found.append([sample for family in read(text) for sample in family.samples])
    return found


def labels_of(samples, name, **wanted):
    return [
        sample.labels
        for sample in samples
        if sample.name == name and wanted.items() <= sample.labels.items()
    ]


def test_threads_may_have_names_of_any_bytes(exporter, start):
    service = start(NamedThreads, THREAD_NAMES)
    workload = exporter.workload_of(service.port)
    expected = {re.sub("[0-9]+", "#", shown(name)) for name in THREAD_NAMES}
    exporter.wait_until(
        lambda s: s.sum("workload_threads", workload=workload) == len(THREAD_NAMES) + 1
    )
    for samples in pages(exporter):
        rows = labels_of(samples, "workload_threads", workload=workload, state="idle")
        pools = [(row["pool"], row["role"]) for row in rows]
        assert len(pools) == len(set(pools))
        assert expected <= {pool for pool, _ in pools}


# A server that has hidden its arguments and its thread's name, as those with titles of their own do.
TITLED = """#!/usr/bin/python3
import ctypes, os, socket, sys, threading
if "titled" in sys.argv:
    fields = open("/proc/self/stat").read().rsplit(")", 1)[1].split()
    begin, end = int(fields[45]), int(fields[46])
    ctypes.memset(begin, ord("x"), end - begin - 1)
    ctypes.CDLL(None).prctl(15, b"renamed", 0, 0, 0)
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("ready", flush=True)
threading.Event().wait()
"""


class Script(Process):
    """A Python program; @command is what is executed, followed by its port."""

    def __init__(self, *command, titled=False):
        self.port = free_port()
        words = [*command, self.port, *(["titled"] if titled else [])]
        super().__init__(words, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"


@pytest.fixture
def script(tmp_path):
    path = tmp_path / (unique_name("script") + "_with_a_long_name.py")
    path.write_text(TITLED)
    path.chmod(0o755)
    return path


def program_of(exporter, server):
    (row,) = exporter.wait_until(
        lambda s: s.rows("workload_connections", port=server.port)
    ).rows("workload_connections", port=server.port)
    (info,) = exporter.scrape().rows("workload_info", workload=row[0]["workload"])
    return info[0]["workload"], info[0]["exe"], info[0]["runtime"]


@pytest.mark.parametrize("titled", [False, True], ids=["plain", "titled"])
def test_a_script_is_named_by_its_file_whatever_it_calls_itself(
    exporter, exporters, start, script, titled
):
    server = start(Script, script, titled=titled)
    expected = (script.name, os.path.realpath("/usr/bin/python3"), "python")
    assert program_of(exporter, server) == expected
    # An exporter that comes later finds the same.
    assert program_of(exporters(), server) == expected


@pytest.mark.parametrize("titled", [False, True], ids=["plain", "titled"])
def test_an_interpreter_is_named_as_it_was_executed(exporter, start, script, tmp_path, titled):
    """By a link that outlives its versions, as python3 is."""
    interpreter = tmp_path / (unique_name("python") + "_that_is_linked")
    interpreter.symlink_to("/usr/bin/python3")
    server = start(Script, interpreter, script, titled=titled)
    exe = os.path.realpath("/usr/bin/python3")
    assert program_of(exporter, server) == (interpreter.name, exe, "python")


HOSTILE = [
    b'quote"back\\slash',
    b"line\nfeed and\ttab",
    b"not \xff\xfe\xc3 utf\xed\xa0\x80",
    "ünï\U0001f600cödé".encode(),
    b'a{b="c"} 1\n# EOF',
    b"\x01\x1b[31m\x7f",
    b" (deleted)x",
    b"long" + b"\xff" * 200,
    b"x" * 255,
]


@pytest.mark.parametrize("hostile", HOSTILE, ids=range(len(HOSTILE)))
def test_an_executable_may_have_a_name_of_any_bytes(exporter, start, hostile):
    unique = unique_name("file").encode()
    name = (unique + hostile)[:255]
    service = start(Service, "talker", name=os.fsdecode(name), script="read:100,write:100,loop")
    workload = exporter.workload_of(service.port)
    # A label holds 255 bytes, and a byte that is replaced takes three.
    assert shown(name).startswith(workload)
    assert workload == shown(name) or len(workload.encode()) > 250
    for samples in pages(exporter):
        (info,) = labels_of(samples, "workload_info", workload=workload)
        path = shown(os.fsencode(service.path))
        assert info["exe"] == path or path.startswith(info["exe"].rstrip("\ufffd"))
        assert info["runtime"] == "native"
