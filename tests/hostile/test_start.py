# SPDX-License-Identifier: Apache-2.0
"""What is odd or missing when it starts: it serves, or says what is wrong, and never hangs."""

import contextlib
import os
import resource
import signal
import subprocess
from pathlib import Path

import pytest

from exporter import BINARY
from limits import MemoryLimit
from services import Service, wait_until
from web import Authority, Client, basic, bcrypt

SECONDS = 10


def children(pid):
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def users(folder):
    path = folder / "web.yml"
    path.write_text(f"basic_auth_users: {{prometheus: {bcrypt('right')}}}\n")
    return path


@pytest.mark.parametrize("closed", ["0<&-", "2>&-", "0<&- 1>&- 2>&-"], ids=["in", "err", "all"])
def test_closed_standard_descriptors_are_no_sockets(tmp_path, closed):
    """A line of the log in the namer's socket would end it; a listener in the checker would stay."""
    command = f"exec {BINARY} --web.listen-address=127.0.0.1:0 --web.config.file={users(tmp_path)}"
    process = subprocess.Popen(
        ["sh", "-c", f"{command} {closed}"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        names = {"namer", "check-password"}
        wait_until(
            lambda: {Path(f"/proc/{pid}/comm").read_text().strip() for pid in children(process.pid)}
            == names,
            SECONDS,
            "its helpers do not start",
        )
        helpers = children(process.pid)
        wait_until(lambda: listening_port(process.pid), SECONDS, "it does not listen")
        client = Client(listening_port(process.pid), headers=basic("prometheus", "right"))
        wait_until(lambda: client.status() == 200, SECONDS, "it does not serve")
        for pid in [process.pid, *helpers]:
            for number in "012":
                assert not os.readlink(f"/proc/{pid}/fd/{number}").startswith("socket:")
        assert children(process.pid) == helpers
        process.kill()
        process.wait()
        wait_until(
            lambda: not any(Path(f"/proc/{pid}").exists() for pid in helpers),
            SECONDS,
            "a helper outlives the exporter",
        )
    finally:
        process.kill()
        process.wait()


def listening_port(pid):
    """Of the listening TCP socket that @pid has, None without one."""
    inodes = set()
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # some come and go
            target = os.readlink(path)
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
    for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        if words[3] == "0A" and words[9] in inodes:
            return int(words[1].split(":")[1], 16)
    return None


@pytest.mark.parametrize("name", ["web.yml", "server.crt", "server.key"])
def test_a_file_that_is_a_fifo_is_refused_at_the_start(tmp_path, name):
    Authority(tmp_path).issue("server", "DNS:localhost")
    (tmp_path / "web.yml").write_text(
        "tls_server_config: {cert_file: server.crt, key_file: server.key}\n"
    )
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    command = [BINARY, "--web.listen-address=127.0.0.1:0", f"--web.config.file={tmp_path}/web.yml"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert ended.returncode == 1
    assert f"{name}: no regular file" in ended.stderr


def test_a_certificate_that_becomes_a_fifo_hangs_nobody(tmp_path, exporters):
    authority = Authority(tmp_path)
    certificate, _ = authority.issue("server", "DNS:localhost")
    (tmp_path / "web.yml").write_text(
        "tls_server_config: {cert_file: server.crt, key_file: server.key}\n"
    )
    exporter = exporters(f"--web.config.file={tmp_path}/web.yml")
    client = Client(exporter.port, authority)
    assert client.status() == 200
    good = certificate.read_bytes()
    certificate.unlink()
    os.mkfifo(certificate)
    assert client.refused()
    exporter.wait_for_log(r"server\.crt: no regular file")
    certificate.unlink()
    certificate.write_bytes(good)
    assert client.status() == 200


def test_too_few_descriptors_are_an_error_that_says_so():
    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))

    command = ["setpriv", "--bounding-set=-sys_resource", BINARY, "--web.listen-address=127.0.0.1:0"]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=SECONDS, check=False, preexec_fn=limit
    )
    assert ended.returncode == 1
    assert "only 100 descriptors may be open" in ended.stderr
    assert "privileges" not in ended.stderr and "listening" not in ended.stderr


def test_a_low_soft_limit_of_descriptors_is_raised(exporters):
    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 1024))

    exporter = exporters(preexec_fn=limit)
    clients = [Client(exporter.port).connect() for _ in range(128)]
    for client in clients:
        client.connect()
    assert exporter.scrape().one("process_max_fds") > 128
    for client in clients:
        client.close()


def test_too_little_memory_is_an_error_that_says_so():
    with MemoryLimit(15 << 20) as limit:
        command = [*limit.launcher, BINARY, "--web.listen-address=127.0.0.1:0"]
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=3 * SECONDS, check=False
        )
    assert ended.returncode == 1
    assert "Cannot allocate memory; give it more memory" in ended.stderr
    assert "privileges" not in ended.stderr


def test_sighup_ends_nothing(exporters):
    exporter = exporters()
    for pid in [exporter.pid, *children(exporter.pid)]:
        os.kill(int(pid), signal.SIGHUP)
    assert exporter.scrape()
    assert len(children(exporter.pid)) == 1


def test_health_can_be_asked_for_without_a_password(tmp_path, exporters):
    path = users(tmp_path)
    closed = exporters(f"--web.config.file={path}")
    opened = exporters(f"--web.config.file={path}", "--web.health-unauthenticated")
    assert Client(closed.port).status("/-/healthy") == 401
    assert Client(opened.port).status("/-/healthy") == 200
    assert [Client(opened.port).status(page) for page in ("/", "/metrics")] == [401, 401]


def test_names_reach_no_terminal_as_commands(exporters, start):
    """The name of an executable may hold anything but a slash."""
    exporter = exporters("--log.level=debug")
    service = start(Service, "talker", name="evil\x1b[31m\x9b\x07\ue000", script="read:1,write:1,loop")
    exporter.workload_of(service.port)
    for page in ("/metrics", "/"):
        text = exporter.request(page)[2]
        assert "evil\ufffd[31m" in text
        assert not any(ord(char) < 32 and char not in "\n\t" for char in text)
        assert not any(0x7F <= ord(char) < 0xA0 for char in text)


@pytest.mark.parametrize("count", [33, 200, 700, 5000])
def test_many_arguments_get_an_answer(exporters, count):
    exporter = exporters()
    assert exporter.request("/metrics?" + "&".join(["collect[]=requests"] * count))[0] in (400, 414)
    assert exporter.request("/metrics?" + "&".join(["collect[]=requests"] * 32))[0] == 200
