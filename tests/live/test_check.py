# SPDX-License-Identifier: Apache-2.0
"""
The pre-flight and the start of the exporter, with more and fewer privileges and kernel features:
both work as far as they can, and say the same words about what does not.
"""

import json
import os
import platform
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

import exporter as exporter_module
from clients import exchange
from exporter import BINARY
from exposition import Endpoint
from kernel_types import KERNEL_TYPES, mounted, without
from services import Process, Service, free_port, python_link, unique_name, user

ALL_THREE = ("bpf", "perfmon", "sys_ptrace")
BITS_OF_ALL_THREE = 1 << 39 | 1 << 38 | 1 << 19
HEX_CAPABILITIES = r"^Cap(?:Inh|Prm|Eff|Bnd|Amb):\t([0-9a-f]+)$"
GONE_SECONDS = 20
OLDEST = "5.18" if platform.machine() == "aarch64" else "5.15"
DEFAULT_FEATURES = ["discovery", "requests", "threads"]
FEATURES = [*DEFAULT_FEATURES, "mutex", "profiles"]


@pytest.fixture(scope="module")
def directory():
    """A directory that every user can read, with a copy of the exporter."""
    path = Path(tempfile.mkdtemp(prefix="workload_check_"))
    path.chmod(0o755)
    shutil.copy(BINARY, path)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def run(directory):
    """run(arguments, prefix) runs the exporter to its end, by the command @prefix."""

    def function(*arguments, prefix=()):
        return subprocess.run(
            [*prefix, directory / BINARY.name, *arguments],
            capture_output=True,
            text=True,
            timeout=3 * exporter_module.START_SECONDS,
            check=False,
        )

    return function


@pytest.fixture
def check(run):
    """check(prefix) is the answer of `check --json`, after a look at its form."""

    def function(prefix=()):
        ended = run("check", "--json", prefix=prefix)
        answer = json.loads(ended.stdout)
        assert ended.stderr == ""
        assert ended.returncode == answer["exit_code"]
        assert ended.returncode == ["all", "some", "none"].index(answer["result"])
        assert [row["name"] for row in answer["features"]] == FEATURES
        assert {row["feature"] for row in answer["hooks"]} == set(FEATURES)
        assert all(row["ok"] or row["reason"] for rows in sections(answer) for row in rows)
        return answer

    return function


@pytest.fixture
def start_by(directory, exporters, monkeypatch):
    """start_by(prefix) is an exporter started by the command @prefix."""

    def function(prefix):
        script = directory / "start.sh"
        words = " ".join(f"'{word}'" for word in [*prefix, directory / BINARY.name])
        script.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        script.chmod(0o755)
        monkeypatch.setattr(exporter_module, "BINARY", script)
        return exporters()

    return function


def sections(answer):
    return [rows for rows in answer.values() if isinstance(rows, list)]


def row(answer, section, name):
    (found,) = [row for row in answer[section] if row["name"] == name]
    return found


def is_ok(answer, section):
    return {row["name"]: row["ok"] for row in answer[section]}


def denied(answer):
    """Everything that says no, but for hooks, which follow their features."""
    rows = [row for section, rows in answer.items() if section != "hooks" for row in rows_of(rows)]
    return [row["name"] for row in rows if not row["ok"]]


def rows_of(value):
    return value if isinstance(value, list) else []


def in_log(text):
    """@text as a line of the log shows it."""
    return text.replace("\\", "\\\\").replace('"', '\\"')


# --- privileges -----------------------------------------------------------------------------------


def test_root_can_do_everything(check, run):
    answer = check()
    assert answer["result"] == "all"
    assert denied(answer) == []
    assert all(hook["ok"] for hook in answer["hooks"])
    table = run("check")
    assert table.returncode == 0
    assert table.stderr == ""
    assert "All default features work.\n" in table.stdout
    for hook in answer["hooks"]:
        assert re.search(rf"{hook['name']} \({hook['program']}\) +yes\n", table.stdout)


def test_a_user_without_capabilities_is_told_what_lacks(check, run):
    answer = check(user())
    assert answer["result"] == "none"
    assert not any(is_ok(answer, "features").values())
    assert not any(is_ok(answer, "privileges").values())
    discovery = row(answer, "features", "discovery")
    assert "lacks CAP_BPF and CAP_PERFMON" in discovery["reason"]
    ended = run("--web.listen-address=127.0.0.1:0", prefix=user())
    assert ended.returncode == 1
    words = f"feature discovery is off: {discovery['reason']}; {discovery['remedy']}"
    assert in_log(words) in ended.stderr
    table = run("check", prefix=user())
    assert table.returncode == 2
    assert discovery["reason"] in table.stdout
    assert f"do: {discovery['remedy']}\n" in table.stdout


@pytest.mark.parametrize("held, lacking", [("bpf", "CAP_PERFMON"), ("perfmon", "CAP_BPF")])
def test_the_one_capability_that_lacks_is_named(check, held, lacking):
    answer = check(user(held, "sys_ptrace"))
    assert answer["result"] == "none"
    assert row(answer, "features", "discovery")["reason"].endswith(f"lacks {lacking}")
    assert denied({"privileges": answer["privileges"]}) == [lacking]


def test_root_without_capabilities_is_not_taken_for_root(check):
    answer = check(["setpriv", "--bounding-set=-all"])
    assert answer["result"] == "none"
    assert "lacks CAP_BPF" in row(answer, "features", "discovery")["reason"]


def test_cap_sys_admin_implies_what_bpf_needs(check):
    answer = check(user("sys_admin"))
    assert answer["result"] == "all"
    assert row(answer, "privileges", "CAP_BPF")["reason"] == "implied by CAP_SYS_ADMIN"
    assert denied(answer) == ["CAP_SYS_PTRACE"]


def test_capabilities_of_a_user_namespace_do_not_count(check):
    answer = check(["unshare", "--user", "--map-root-user"])
    assert answer["result"] == "none"
    assert "user namespace" in row(answer, "features", "discovery")["reason"]
    assert not any(is_ok(answer, "privileges").values())


def measure_one_request(exporter, start, connect, when_started):
    """
    A service of root, whose main thread has only the beginning of the executable's name. Starts it
    before or after @exporter and checks that all about one request is measured; returns its
    workload_info and its name.
    """
    service = when_started or long_named_service(start)
    exporter.workload_of(service.port)
    client = connect(service.port)
    exchange(client)
    client.close()
    end = exporter.wait_for_end(service.port, 1)
    workload = exporter.workload_of(service.port)
    tasks = Path(f"/proc/{service.pid}/task")
    # The thread of the connection may be about to exit.
    exporter.wait_until(
        lambda s: s.sum("workload_threads", workload=workload) == len(list(tasks.iterdir()))
    )
    assert end.scrape.sum("workload_processes", workload=workload) == 1
    (info,) = end.scrape.rows("workload_info", workload=workload)
    return info[0], service


def long_named_service(start):
    name = unique_name("talker") + "_with_a_long_name"
    return start(Service, "talker", name=name, script="read:100,write:100,loop")


def held_by(pid):
    held = re.findall(HEX_CAPABILITIES, Path(f"/proc/{pid}/status").read_text(), re.M)
    return [int(bits, 16) for bits in held]


@pytest.mark.parametrize("adopted", [True, False], ids=["running", "new"])
def test_exactly_three_capabilities_suffice(check, start_by, start, connect, adopted):
    prefix = user(*ALL_THREE)
    answer = check(prefix)
    assert answer["result"] == "all"
    assert denied(answer) == []
    before = long_named_service(start) if adopted else None
    exporter = start_by(prefix)
    # The bounding set stays, as emptying it takes a further capability: nothing comes of it.
    assert held_by(exporter.pid) == [0, 0, 0, BITS_OF_ALL_THREE, 0]
    info, service = measure_one_request(exporter, start, connect, before)
    assert info["workload"] == service.name
    assert info["exe"] == str(service.path)
    assert info["runtime"] == "native"
    assert not any("level=warn" in line for line in exporter.log)


@pytest.mark.parametrize("adopted", [True, False], ids=["running", "new"])
def test_without_ptrace_all_is_measured_but_named_by_thread(
    check, start_by, start, connect, adopted
):
    prefix = user("bpf", "perfmon")
    answer = check(prefix)
    assert answer["result"] == "all"
    assert denied(answer) == ["CAP_SYS_PTRACE"]
    before = long_named_service(start) if adopted else None
    exporter = start_by(prefix)
    info, service = measure_one_request(exporter, start, connect, before)
    assert info["workload"] == service.name[:15]
    assert info["exe"] == ""
    assert info["runtime"] == "unknown"
    lost = row(answer, "privileges", "CAP_SYS_PTRACE")
    for word in ("executables", "thread", "runtime"):
        assert word in lost["reason"]
    warnings = [line for line in exporter.log if "level=warn" in line]
    assert len(warnings) == 1
    assert in_log(f"CAP_SYS_PTRACE: no: {lost['reason']}; {lost['remedy']}") in warnings[0]


# Nobody may look at it until it is told so (PR_SET_DUMPABLE), not even who has the same user.
HIDING = """
import ctypes, signal, socket, sys
prctl = ctypes.CDLL(None).prctl
prctl(4, 0, 0, 0, 0)
signal.signal(signal.SIGUSR1, lambda *_: prctl(4, 1, 0, 0, 0))
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    client, _ = listener.accept()
    client.recv(100)
    client.sendall(b"a" * 100)
    client.close()
"""


def test_what_becomes_readable_later_is_named_then(start_by, start, connect):
    uid = random.randrange(61000, 61184)
    exporter = start_by(user("bpf", "perfmon", uid=uid))
    name, port = unique_name("hiding") + "_with_a_long_name", free_port()
    service = start(Process, [*user(uid=uid), python_link(name), "-c", HIDING, port])

    def told(scrape, workload):
        return (
            [labels["exe"] for labels, _ in scrape.rows("workload_info", workload=workload)],
            scrape.sum(
                "workload_measurements_dropped_total",
                workload=workload,
                reason="identity_unreadable",
            ),
        )

    before, after = f"user@{uid}/{name[:15]}", f"user@{uid}/{name}"
    assert exporter.workload_of(port) == before
    client = connect(port)
    exchange(client)
    client.close()
    exporter.wait_for_end(port, 1)
    exporter.wait_for_equal(lambda s: told(s, before), ([""], 1))
    service.process.send_signal(signal.SIGUSR1)
    exporter.wait_for_equal(lambda s: told(s, after), ([os.path.realpath("/usr/bin/python3")], 0))
    scrape = exporter.scrape()
    assert Endpoint(scrape, port, workload=after).counts() == (1, 1, 1)
    assert told(scrape, before)[1] == 1, "it is counted once"


def programs_of(uid):
    bpftool = shutil.which("bpftool", path="/usr/sbin:/sbin:/usr/bin:/bin")
    shown = subprocess.run([bpftool, "-j", "prog", "show"], capture_output=True, check=True)
    return [program["name"] for program in json.loads(shown.stdout) if program.get("uid") == uid]


def test_nothing_stays_behind(check, start_by):
    uid = random.randrange(61000, 64000)
    exporter = start_by(user(*ALL_THREE, uid=uid))
    assert len(programs_of(uid)) >= 10  # it is this that shows what there is
    exporter.stop()
    check(user(*ALL_THREE, uid=uid))
    deadline = time.monotonic() + GONE_SECONDS
    while programs_of(uid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert programs_of(uid) == []


# --- /proc ----------------------------------------------------------------------------------------

HIDDEN = "mount -t proc -o hidepid=2 proc /proc"


def test_processes_hidden_by_hidepid_are_told_of(check, start_by, start, connect):
    prefix = mounted(HIDDEN, *user("bpf", "perfmon"))
    answer = check(prefix)
    assert answer["result"] == "all"
    assert denied(answer) == ["CAP_SYS_PTRACE", "/proc shows all processes"]
    hidden = row(answer, "processes", "/proc shows all processes")
    assert "hidepid" in hidden["reason"]
    exporter = start_by(prefix)
    info, service = measure_one_request(exporter, start, connect, None)
    assert info["workload"] == service.name[:15]
    assert any(in_log(f"{hidden['reason']}; {hidden['remedy']}") in line for line in exporter.log)


def test_cap_sys_ptrace_sees_through_hidepid(check):
    assert denied(check(mounted(HIDDEN, *user(*ALL_THREE)))) == []


def test_another_pid_namespace_is_told_of(check):
    answer = check(["unshare", "--pid", "--fork", "--mount-proc"])
    assert answer["result"] == "all"
    assert denied(answer) == ["/proc shows all processes"]
    assert "PID namespace" in row(answer, "processes", "/proc shows all processes")["reason"]


def test_an_unmounted_proc_is_told_of(check):
    answer = check(mounted("umount -l /proc"))
    assert answer["result"] == "all"
    assert "not mounted" in row(answer, "processes", "/proc shows all processes")["reason"]


# --- what a kernel may lack -----------------------------------------------------------------------


def off_at_start(exporter, feature):
    """The warning about @feature, while the others go on."""
    (warning,) = [line for line in exporter.log if f"feature {feature} is off" in line]
    attached = {f: set() for f in DEFAULT_FEATURES}
    for labels, value in exporter.scrape().rows("workload_exporter_probe_attached"):
        attached[labels["feature"]].add(value)
    assert attached == {f: {0.0 if f == feature else 1.0} for f in DEFAULT_FEATURES}
    return warning


def test_a_tracepoint_that_is_not_there_is_named(check, start_by, directory):
    prefix = without(directory, "btf_trace_task_rename")
    answer = check(prefix)
    assert answer["result"] == "some"
    assert denied(answer) == ["threads", "mutex", "profiles"]
    feature = row(answer, "features", "threads")
    assert feature["reason"] == "loading: this kernel has no tracepoint task_rename"
    assert feature["remedy"] == f"use Linux {OLDEST} or later"
    hook = row(answer, "hooks", "tp_btf/task_rename")
    assert hook["reason"] == "this kernel has no tracepoint task_rename"
    warning = off_at_start(start_by(prefix), "threads")
    assert f"{feature['reason']}; {feature['remedy']}" in warning


def test_without_the_tracepoints_of_sockets_system_calls_are_observed(
    check, start_by, start, connect, directory
):
    prefix = without(directory, "btf_trace_sk_data_ready")
    answer = check(prefix)
    assert answer["result"] == "all"
    assert row(answer, "hooks", "tp_btf/sys_exit")["ok"]
    exporter = start_by(prefix)
    assert exporter.backend == "syscall"
    service = start(Service, "talker", script="read:100,write:100,eof")
    exchange(connect(service.port))
    exporter.wait_until(lambda s: Endpoint(s, service.port).counts() == (1, 1, 1))


def test_a_hook_of_an_iterator_that_is_not_there_is_named(check, directory):
    answer = check(without(directory, "bpf_iter_task_file"))
    assert "no iterator task_file" in row(answer, "features", "discovery")["reason"]


def test_hooks_that_are_not_there_are_named_also_without_privileges(check, directory):
    prefix = without(directory, "btf_trace_task_rename")
    answer = check([*prefix, *user()])
    assert answer["result"] == "none"
    assert "lacks CAP_BPF" in row(answer, "features", "discovery")["reason"]
    hook = row(answer, "hooks", "tp_btf/task_rename")
    assert hook["reason"] == "this kernel has no tracepoint task_rename"


def test_the_last_lines_of_the_verifier_are_shown(check, start_by, directory):
    """A field that the kernel does not have makes the verifier refuse who reads it."""
    prefix = without(directory, "sk_max_ack_backlog")
    answer = check(prefix)
    assert answer["result"] == "some"
    feature = row(answer, "features", "requests")
    assert "the verifier of this kernel refuses requests_" in feature["reason"]
    assert "struct sock.sk_max_ack_backlog" in feature["reason"]
    refused = [hook["program"] for hook in answer["hooks"] if "refuses it" in hook["reason"]]
    assert len(refused) == 1
    assert f"refuses {refused[0]}:" in feature["reason"]
    assert in_log(feature["reason"]) in off_at_start(start_by(prefix), "requests")


def test_without_the_types_of_the_kernel_nothing_works(check, run):
    prefix = mounted(f"mount -t tmpfs none {KERNEL_TYPES.parent}")
    answer = check(prefix)
    assert answer["result"] == "none"
    assert denied({"kernel": answer["kernel"]}) == ["types of the kernel (BTF)"]
    feature = row(answer, "features", "discovery")
    assert "CONFIG_DEBUG_INFO_BTF" in feature["remedy"]
    ended = run("--web.listen-address=127.0.0.1:0", prefix=prefix)
    assert ended.returncode == 1
    assert f"{feature['reason']}; {feature['remedy']}" in ended.stderr


# --- the command line -----------------------------------------------------------------------------


@pytest.mark.parametrize("argument", ["--jso", "--log.level=info", "nonsense"])
def test_a_wrong_argument_of_the_check_is_told_apart_from_its_answers(run, argument):
    ended = run("check", argument)
    assert ended.returncode == 64
    assert ended.stdout == ""
    assert ended.stderr.count("\n") == 1
    assert argument in ended.stderr


def test_the_check_has_its_own_help(run):
    ended = run("check", "--help")
    assert ended.returncode == 0
    assert "--json" in ended.stdout
    assert "Exit code" in ended.stdout


def test_an_answer_that_cannot_be_written_is_no_answer(run):
    ended = run("check", prefix=["sh", "-c", 'exec "$@" > /dev/full', "sh"])
    assert ended.returncode == 74
    assert "cannot write" in ended.stderr
