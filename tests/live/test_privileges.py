# SPDX-License-Identifier: Apache-2.0
"""
What the exporter may still do once it serves, as the kernel tells it, and that all it is for goes on
without the rest. (test_check.py has the start with fewer privileges than root's.)
"""

import contextlib
import os
import re
import signal
from pathlib import Path

import pytest

from clients import exchange_once
from exporter import BEHIND_A_FILTER, run_to_end
from services import Service, status_of, wait_until
from web import basic, bcrypt

NOBODY = 65534
CAP_SYS_PTRACE = 1 << 19
SETS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
UNPRIVILEGED = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
SECONDS = 10


def capabilities(pid):
    return {name: int(status_of(pid)[name], 16) for name in SETS}


def child_of(pid, name):
    """
    The only child of @pid, which is called @name. Another one may follow it at any time, as the
    namer's does that has kept it waiting: then there are two for a moment, or none.
    """
    children = []

    def is_there():
        children[:] = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        with contextlib.suppress(OSError):
            return len(children) == 1 and status_of(children[0])["Name"] == name
        return False

    wait_until(is_there, SECONDS, f"no {name}, or several")
    return int(children[0])


def namer_of(exporter):
    return child_of(exporter.pid, "namer")


def reader_of(exporter):
    return child_of(namer_of(exporter), "namer-reader")


def limit(pid, name):
    for line in Path(f"/proc/{pid}/limits").read_text().splitlines():
        if line.startswith(name):
            return line[len(name) :].split()[:2]
    raise AssertionError(name)


def all_of(exporter):
    return [exporter.pid, namer_of(exporter), reader_of(exporter)]


def users(pid):
    """Its users and its groups, each as all four sorts of it: real, effective, saved, of files."""
    lines = status_of(pid)
    return {int(one) for key in ("Uid", "Gid") for one in lines[key].split()}, lines["Groups"].split()


@pytest.fixture(params=[(), ("--security.user=nobody",)], ids=["root", "user"])
def exporter(request, exporters):
    return exporters(*request.param)


def test_who_serves_has_no_capability_and_can_get_none(exporter):
    assert capabilities(exporter.pid) == dict.fromkeys(SETS, 0)
    assert status_of(exporter.pid)["NoNewPrivs"] == "1"


def test_only_the_namer_can_look_at_others_and_can_do_nothing_else(exporter):
    expected = dict.fromkeys(SETS, 0) | {"CapPrm": CAP_SYS_PTRACE, "CapEff": CAP_SYS_PTRACE}
    for pid, others in (namer_of(exporter), 3), (reader_of(exporter), 1):
        assert capabilities(pid) == expected
        assert status_of(pid)["NoNewPrivs"] == "1"
        descriptors = sorted(Path(f"/proc/{pid}/fd").iterdir(), key=lambda path: int(path.name))
        assert [path.name for path in descriptors[:3]] == ["0", "1", "2"]
        kinds = [re.match(r"\w+", os.readlink(path))[0] for path in descriptors[3:]]
        # The keeper has two sockets, and its child by a descriptor.
        assert len(kinds) == others and set(kinds) <= {"socket", "anon_inode", "pidfd"}


def test_who_reads_of_others_is_not_root(exporter):
    for pid in namer_of(exporter), reader_of(exporter):
        ids, groups = users(pid)
        assert ids == {NOBODY}
        assert set(groups) <= {str(NOBODY)}


def test_who_compares_passwords_is_not_root_and_can_only_read_and_write(exporters, tmp_path):
    path = tmp_path / "web.yml"
    path.write_text(f"basic_auth_users:\n  prometheus: {bcrypt('right')}\n")
    exporter = exporters(f"--web.config.file={path}")
    assert exporter.request(**basic("prometheus", "right"))[0] == 200
    assert exporter.request(**basic("prometheus", "wrong"))[0] == 401
    children = Path(f"/proc/{exporter.pid}/task/{exporter.pid}/children").read_text().split()
    (pid,) = [child for child in children if status_of(child)["Name"] == "check-password"]
    assert users(pid) == ({NOBODY}, [])
    assert capabilities(pid) == dict.fromkeys(SETS, 0)
    assert status_of(pid)["NoNewPrivs"] == "1"
    assert status_of(pid)["Seccomp"] == "2"
    assert limit(pid, "Max processes") == ["0", "0"]
    assert Path(f"/proc/{pid}/environ").stat().st_uid == 0  # it is not dumpable


def test_passwords_are_compared_behind_a_filter_of_others(exporters, tmp_path):
    """The kernel's strict mode cannot be had then: systemd's SystemCallFilter= is one."""
    path = tmp_path / "web.yml"
    path.write_text(f"basic_auth_users:\n  prometheus: {bcrypt('right')}\n")
    exporter = exporters(f"--web.config.file={path}", launcher=BEHIND_A_FILTER)
    assert status_of(exporter.pid)["Seccomp_filters"] == "2"
    assert exporter.request(**basic("prometheus", "right"))[0] == 200
    assert exporter.request(**basic("prometheus", "wrong"))[0] == 401


def test_without_the_capabilities_to_become_another_it_stays_root_and_says_so(exporters):
    """As in the DaemonSet. All others are held: it does not matter which."""
    exporter = exporters(launcher=["setpriv", "--bounding-set=-setuid,-setgid"])
    exporter.wait_for_log("stay root")
    assert users(namer_of(exporter))[0] == {0}
    assert capabilities(namer_of(exporter))["CapPrm"] == CAP_SYS_PTRACE


def test_all_are_in_the_sandbox(exporter):
    for pid in all_of(exporter):
        assert status_of(pid)["Seccomp"] == "2"
        assert limit(pid, "Max core file size") == ["0", "0"]
        assert pid == namer_of(exporter) or limit(pid, "Max processes") == ["0", "0"]


def test_none_is_dumpable(exporters):
    """The kernel then gives what is in /proc/PID to root, whoever runs it (proc(5))."""
    for pid in all_of(exporters("--security.user=nobody")):
        assert status_of(pid)["Uid"].split() == [str(NOBODY)] * 4
        assert Path(f"/proc/{pid}/environ").stat().st_uid == 0


def test_nothing_is_open_for_writing_but_the_log_and_sockets_and_what_is_no_file(exporter):
    for pid in all_of(exporter):
        for path in Path(f"/proc/{pid}/fd").iterdir():
            try:
                target = os.readlink(path)
            except FileNotFoundError:  # closed since
                continue
            assert path.name in "012" or re.match(r"(socket|anon_inode):", target), target


@pytest.mark.parametrize("prefix", [UNPRIVILEGED, []], ids=["other_user", "root"])
def test_a_service_that_starts_later_is_named_by_its_executable(
    exporter, start, connect, prefix
):
    service = start(Service, "talker", script="read:100,write:100,loop", prefix=prefix)
    exchange_once(connect(service.port))
    exporter.wait_until(lambda s: s.rows("workload_request_queue_seconds_count", port=service.port))
    assert exporter.workload_of(service.port) == service.name
    scrape = exporter.scrape()
    (info,) = scrape.rows("workload_info", workload=service.name)
    assert info[0]["exe"] == str(service.path)
    assert info[0]["runtime"] == "native"
    assert scrape.sum("workload_threads", workload=service.name) >= 1
    for labels, success in scrape.rows("workload_scrape_collector_success"):
        assert success == 1, labels
    for reason in ("walk_failed", "thread_untracked"):
        assert scrape.sum("workload_exporter_dropped_total", reason=reason) == 0


def test_a_service_that_ends_is_folded_without_privileges(exporter, start):
    service = start(Service, "talker", script="read:100,write:100,loop")
    name = exporter.workload_of(service.port)
    service.stop()
    exporter.wait_for_equal(lambda s: s.sum("workload_processes", workload=name), 0)


def test_if_the_namer_ends_it_is_said_and_the_rest_goes_on(exporters, start):
    exporter = exporters()
    os.kill(namer_of(exporter), signal.SIGKILL)
    exporter.wait_for_log("the process that names services has ended")
    service = start(Service, "talker", script="read:100,write:100,loop")
    assert exporter.workload_of(service.port) == service.name[:15]
    lost = exporter.scrape().sum("workload_exporter_dropped_total", reason="identity_unreadable")
    assert lost >= 1


def test_the_namer_ends_with_the_exporter(exporters):
    for ending in (signal.SIGTERM, signal.SIGKILL):
        exporter = exporters()
        pids = [namer_of(exporter), reader_of(exporter)]
        exporter.stop(ending)
        for pid in pids:
            wait_until(lambda p=pid: not Path(f"/proc/{p}").exists(), SECONDS, "the namer stays")


def test_a_reader_that_ends_or_hangs_is_replaced(exporter, start):
    for with_signal in (signal.SIGKILL, signal.SIGSTOP):
        before = reader_of(exporter)
        os.kill(before, with_signal)
        service = start(Service, "talker", script="read:100,write:100,loop")
        exporter.wait_until(
            lambda s, own=service: s.rows("workload_info", workload=own.name, exe=str(own.path))
        )
        wait_until(lambda own=before: not Path(f"/proc/{own}").exists(), SECONDS, "it stays")
        assert capabilities(reader_of(exporter)) == capabilities(namer_of(exporter))


def test_a_user_that_does_not_exist_is_an_error_that_says_so():
    ended = run_to_end("--web.listen-address=127.0.0.1:0", "--security.user=no such user")
    assert ended.returncode == 1
    assert "--security.user=no such user: there is no such user" in ended.stderr


def test_the_sandbox_can_be_left_off(exporters):
    exporter = exporters("--security.sandbox=off")
    for pid in all_of(exporter):
        assert status_of(pid)["Seccomp"] == "0"
    assert capabilities(exporter.pid) == dict.fromkeys(SETS, 0)


def test_each_process_has_one_thread(exporter, start):
    """Nothing is shared between threads: there are none (exporter/README.md, "How it works")."""

    def threads():
        """An empty list where a reader was replaced meanwhile."""
        with contextlib.suppress(OSError):
            return [len(list(Path(f"/proc/{pid}/task").iterdir())) for pid in all_of(exporter)]
        return []

    seen = [threads()]
    for _ in range(20):
        start(Service, "talker", script="read:100,write:100,loop")
        exporter.scrape()
        seen.append(threads())
    assert [1, 1, 1] in seen and all(each in ([1, 1, 1], []) for each in seen)
