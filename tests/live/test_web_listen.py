# SPDX-License-Identifier: Apache-2.0
"""Where it listens, and what it says to systemd."""

import http.client
import os
import re
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from exporter import ROOT, run_to_end
from sockets import listening, passing

UNITS = ROOT / "scripts" / "systemd"


def status(port, host="127.0.0.1"):
    connection = http.client.HTTPConnection(host, port, timeout=10)
    try:
        connection.request("GET", "/metrics")
        return connection.getresponse().status
    finally:
        connection.close()


def test_several_addresses_are_served(exporters):
    exporter = exporters("--web.listen-address=[::1]:0", "--web.listen-address=127.0.0.2:0")
    hosts = ("127.0.0.1", "::1", "127.0.0.2")
    assert [status(port, host) for port, host in zip(exporter.ports(3), hosts)] == [200] * 3


def test_every_interface_is_both_families(exporters):
    exporter = exporters(address=":0")
    assert status(exporter.port, "127.0.0.1") == 200
    assert status(exporter.port, "::1") == 200


def test_one_address_in_use_is_an_error(exporter):
    ended = run_to_end(
        "--web.listen-address=127.0.0.1:0", f"--web.listen-address=127.0.0.1:{exporter.port}"
    )
    assert ended.returncode == 1
    assert f"127.0.0.1:{exporter.port}: Address already in use" in ended.stderr


def test_sockets_from_systemd_are_served(exporters):
    with listening() as one, listening(socket.AF_INET6, ("::1", 0)) as other:
        ports = [one.getsockname()[1], other.getsockname()[1]]
        exporter = exporters("--web.systemd-socket", **passing(one, other))
    assert exporter.ports(2) == ports
    assert status(ports[0]) == 200
    assert status(ports[1], "::1") == 200


def test_sockets_for_another_process_are_not_ours():
    with listening() as one:
        options = passing(one, pid_offset=1)
        command = [*options["launcher"], str(ROOT / "build" / "workload_exporter")]
        ended = subprocess.run(
            [*command, "--web.systemd-socket"], pass_fds=options["pass_fds"], capture_output=True,
            text=True, timeout=20, check=False,
        )  # fmt: skip
    assert ended.returncode == 1
    assert "LISTEN_PID" in ended.stderr


def test_a_descriptor_that_does_not_listen_is_refused():
    with socket.socket() as one:
        options = passing(one)
        command = [*options["launcher"], str(ROOT / "build" / "workload_exporter")]
        ended = subprocess.run(
            [*command, "--web.systemd-socket"], pass_fds=options["pass_fds"], capture_output=True,
            text=True, timeout=20, check=False,
        )  # fmt: skip
    assert ended.returncode == 1
    assert "descriptor 3" in ended.stderr


def test_systemd_is_told_of_start_life_and_end(exporters, tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(10)
        environment = {**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify")}
        exporter = exporters(env={**environment, "WATCHDOG_USEC": "1000000"})
        heard = [manager.recv(1000).decode() for _ in range(4)]
        assert any("READY=1" in text.splitlines() for text in heard)
        assert heard[-1] == "WATCHDOG=1"
        assert exporter.stop() == 0
        while "STOPPING=1" not in (text := manager.recv(1000).decode()):
            assert text == "WATCHDOG=1"


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
def test_the_units_are_good_and_tightly_confined(tmp_path):
    for unit in UNITS.glob("workload_exporter.*"):
        text = unit.read_text().replace("/usr/local/bin/workload_exporter", "/bin/true")
        (tmp_path / unit.name).write_text(text)
    service = tmp_path / "workload_exporter.service"
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(service),
         str(tmp_path / "workload_exporter.socket")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    ours = [line for line in checked.stderr.splitlines() if "workload_exporter" in line]
    assert (checked.returncode, ours) == (0, [])
    security = subprocess.run(
        ["systemd-analyze", "security", "--offline=yes", "--no-pager", str(service)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    exposure = float(re.search(r"Overall exposure level.*?: ([\d.]+)", security.stdout)[1])
    assert exposure < 2.5


def test_install_puts_the_units_where_systemd_finds_them(tmp_path):
    subprocess.run(
        ["make", "-s", "-C", str(ROOT), "install", f"DESTDIR={tmp_path}", "prefix=/usr"],
        check=True, capture_output=True,
    )  # fmt: skip
    installed = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert "usr/bin/workload_exporter" in installed
    assert "usr/lib/systemd/system/workload_exporter.service" in installed
    service = Path(tmp_path / "usr/lib/systemd/system/workload_exporter.service").read_text()
    assert "ExecStart=/usr/bin/workload_exporter" in service


def test_a_listening_socket_that_somebody_shuts_down_ends_it_with_an_error(exporters):
    """accept(2) then fails for ever, and the kernel goes on saying that there is something to accept."""
    with listening() as one, listening() as other:
        exporter = exporters("--web.systemd-socket", **passing(one, other))
        assert status(one.getsockname()[1]) == 200
        other.shutdown(socket.SHUT_RDWR)
        assert exporter.process.wait(10) == 1
    exporter.wait_for_log("stopping: a listening socket was shut down by somebody else")
