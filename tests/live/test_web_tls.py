# SPDX-License-Identifier: Apache-2.0
"""TLS by the web configuration file: who is let in, which versions, renewed certificates."""

import json
import os
import socket
import subprocess

import pytest

from exporter import run_to_end
from prometheus import Prometheus, scrape_config
from web import Authority, Client, basic, bcrypt

PASSWORD = "right horse"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tls")


@pytest.fixture(scope="module")
def authority(folder):
    made = Authority(folder)
    made.issue("server", "DNS:localhost,IP:127.0.0.1")
    return made


@pytest.fixture(scope="module")
def client_pair(authority):
    return authority.issue("client", "DNS:prometheus.example,IP:10.0.0.1,email:a@b.example")


def config(folder, name="web.yml", **tls):
    """Writes a file with these keys of tls_server_config."""
    keys = {"cert_file": "server.crt", "key_file": "server.key", **tls}
    path = folder / name
    users = f"basic_auth_users:\n  prometheus: {bcrypt(PASSWORD)}\n"
    lines = "".join(f"  {key}: {json.dumps(value)}\n" for key, value in keys.items())
    path.write_text("tls_server_config:\n" + lines + users)
    return path


def replace(path, text):
    """As certificate tools do it: whole or not at all."""
    new = path.with_suffix(".new")
    new.write_text(text)
    os.replace(new, path)


@pytest.fixture(scope="module")
def strict(folder, authority, client_pair, exporters_for_module):
    """An exporter that asks for a certificate of the CA with a name, and for a password."""
    path = config(folder, client_ca_file="ca.crt", client_auth_type="RequireAndVerifyClientCert",
                  client_allowed_sans=["prometheus.example"])  # fmt: skip
    running = exporters_for_module(f"--web.config.file={path}")
    running.path = path
    return running


def test_the_right_certificate_and_password_pass(strict, authority, client_pair):
    client = Client(strict.port, authority, client_pair, basic("prometheus", PASSWORD))
    status, headers, body = client.get()
    assert status == 200
    assert headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert "workload_exporter_build_info" in body


@pytest.mark.parametrize("given", [{}, basic("prometheus", "wrong"), basic("nobody", PASSWORD)])
@pytest.mark.parametrize("path", ["/metrics", "/", "/-/healthy", "/nothing"])
def test_a_wrong_password_is_unauthorized_whatever_is_asked(
    strict, authority, client_pair, given, path
):
    status, headers, body = Client(strict.port, authority, client_pair, given).get(path)
    assert status == 401
    assert headers["WWW-Authenticate"].startswith("Basic")
    assert "workload_" not in body.replace("workload_exporter", "")


def test_without_a_certificate_nobody_is_let_in(strict, authority):
    assert Client(strict.port, authority, None, basic("prometheus", PASSWORD)).refused()


def test_a_certificate_of_another_ca_is_refused(strict, authority, tmp_path):
    other = Authority(tmp_path, "other")
    pair = other.issue("client", "DNS:prometheus.example")
    assert Client(strict.port, authority, pair, basic("prometheus", PASSWORD)).refused()


def test_a_certificate_with_another_name_is_refused(strict, authority):
    pair = authority.issue("other-name", "DNS:grafana.example,DNS:prometheus.example.evil")
    assert Client(strict.port, authority, pair, basic("prometheus", PASSWORD)).refused()


def test_a_certificate_for_servers_only_is_refused(strict, authority):
    pair = authority.issue("no-client", "DNS:prometheus.example", usage="serverAuth")
    assert Client(strict.port, authority, pair, basic("prometheus", PASSWORD)).refused()


def handshake(port, *flags):
    """What openssl says of a handshake: the protocol and the cipher, or None."""
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", *flags]
    ended = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20, check=False
    )
    words = [line.split() for line in ended.stdout.splitlines() if line.startswith("New, ")]
    return (words[0][1].rstrip(","), words[0][4]) if words and words[0][4] != "(NONE)" else None


def test_old_tls_is_refused(strict, client_pair):
    certificate, key = map(str, client_pair)
    weak = ["-cipher", "ALL:@SECLEVEL=0", "-cert", certificate, "-key", key]
    assert handshake(strict.port, "-tls1_1", *weak) is None
    assert handshake(strict.port, "-tls1", *weak) is None
    assert handshake(strict.port, "-tls1_2", *weak)
    assert handshake(strict.port, "-tls1_3", "-cert", certificate, "-key", key)


def test_plain_http_on_a_tls_port_is_no_harm(strict, authority, client_pair):
    with socket.create_connection(("127.0.0.1", strict.port), 5) as plain:
        plain.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"workload_" not in plain.recv(1000)
    client = Client(strict.port, authority, client_pair, basic("prometheus", PASSWORD))
    assert client.status() == 200


def test_a_renewed_certificate_is_shown_without_a_restart(strict, folder, authority, client_pair):
    client = Client(strict.port, authority, client_pair, basic("prometheus", PASSWORD))
    before = client.peer()
    authority.issue("server", "DNS:localhost,IP:127.0.0.1")
    assert client.peer() != before
    assert client.status() == 200


def test_while_a_file_is_broken_nobody_is_let_in_and_it_is_said_once(
    strict, folder, authority, client_pair
):
    client = Client(strict.port, authority, client_pair, basic("prometheus", PASSWORD))
    good = strict.path.read_text()
    kept = client.connect()
    kept.request("GET", "/metrics", headers=client.headers)
    assert kept.getresponse().read()
    replace(strict.path, good + "nonsense: 1\n")
    kept.request("GET", "/metrics", headers=client.headers)
    assert kept.getresponse().status == 500
    kept.close()
    assert client.refused() and client.refused()
    strict.wait_for_log("unknown key")
    said = [line for line in strict.log if line and "unknown key" in line]
    assert len(said) == 1 and "web.yml:" in said[0] and "nonsense" in said[0]
    replace(strict.path, good)
    assert client.status() == 200

    key = folder / "server.key"
    kept = key.read_text()
    replace(key, "no key\n")
    assert client.refused() and client.refused()
    strict.wait_for_log(r"level=error.*server\.key")
    replace(key, kept)
    assert client.status() == 200


def test_users_are_read_again_without_a_restart(strict, authority, client_pair):
    good = strict.path.read_text()
    second = Client(strict.port, authority, client_pair, basic("second", "two"))
    first = Client(strict.port, authority, client_pair, basic("prometheus", PASSWORD))
    assert (first.status(), second.status()) == (200, 401)
    users = f"basic_auth_users:\n  second: {bcrypt('two')}\n"
    replace(strict.path, good.split("basic_auth")[0] + users)
    assert (first.status(), second.status()) == (401, 200)
    replace(strict.path, good)
    assert (first.status(), second.status()) == (200, 401)


POLICIES = {  # policy: (none, of the CA, of another CA)
    "NoClientCert": (True, True, True),
    "RequestClientCert": (True, True, True),
    "RequireAnyClientCert": (False, True, True),
    "VerifyClientCertIfGiven": (True, True, False),
    "RequireAndVerifyClientCert": (False, True, False),
}


def test_every_client_certificate_policy(folder, authority, client_pair, tmp_path, exporters):
    """One exporter, whose file changes: policies are taken over at the next handshake."""
    stranger = Authority(tmp_path, "stranger").issue("client", "DNS:x.example")
    path = config(folder, "policy.yml")
    exporter = exporters(f"--web.config.file={path}")
    for policy, expected in POLICIES.items():
        ca = {} if policy == "NoClientCert" else {"client_ca_file": "ca.crt"}
        config(folder, "policy.yml", client_auth_type=policy, **ca)
        seen = tuple(
            not Client(exporter.port, authority, pair, basic("prometheus", PASSWORD)).refused()
            for pair in (None, client_pair, stranger)
        )
        assert seen == expected, policy


def test_versions_suites_and_curves_are_as_configured(folder, authority, exporters):
    path = config(folder, "suites.yml")
    exporter = exporters(f"--web.config.file={path}")
    rsa256 = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"
    ecdsa128 = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
    old = "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA"

    config(folder, "suites.yml", min_version="TLS11", max_version="TLS12")
    weak = ["-cipher", "ALL:@SECLEVEL=0"]
    assert handshake(exporter.port, "-tls1_1", *weak)
    assert handshake(exporter.port, "-tls1", *weak) is None
    assert handshake(exporter.port, "-tls1_3") is None

    config(folder, "suites.yml", min_version="TLS13")
    assert handshake(exporter.port, "-tls1_2") is None
    assert handshake(exporter.port, "-tls1_3")

    # They choose ciphers for each version, and for whatever key the certificate has.
    config(folder, "suites.yml", cipher_suites=[rsa256])
    assert handshake(exporter.port, "-tls1_2")[1] == "ECDHE-RSA-AES256-GCM-SHA384"
    assert handshake(exporter.port, "-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256") is None
    assert handshake(exporter.port, "-tls1_3")[1] == "TLS_AES_256_GCM_SHA384"
    assert handshake(exporter.port, "-tls1_3", "-ciphersuites", "TLS_AES_128_GCM_SHA256") is None
    config(folder, "suites.yml", cipher_suites=[ecdsa128])
    assert handshake(exporter.port, "-tls1_2")[1] == "ECDHE-RSA-AES128-GCM-SHA256"
    config(folder, "suites.yml", cipher_suites=[old], max_version="TLS12")
    assert handshake(exporter.port)[1] == "ECDHE-RSA-AES128-SHA"

    config(folder, "suites.yml", curve_preferences=["CurveP384"])
    assert handshake(exporter.port, "-curves", "P-384")
    assert handshake(exporter.port, "-curves", "P-256:X25519") is None


def test_inline_certificates_are_served(folder, authority, exporters):
    path = config(folder, "inline.yml")
    certificate, key = (folder / "server.crt").read_text(), (folder / "server.key").read_text()
    path.write_text(f"tls_server_config: {json.dumps({'cert': certificate, 'key': key})}\n")
    exporter = exporters(f"--web.config.file={path}")
    assert Client(exporter.port, authority).status() == 200


@pytest.mark.parametrize(
    "text, word",
    [
        ("tls_server_config: {cert_file: none.crt, key_file: server.key}\n", "none.crt"),
        ("tls_server_config: {cert_file: server.crt, key_file: ca.key}\n", "ca.key"),
        ("tls_server_config: {cert_file: server.crt, key_file: server.key, client_ca_file: "
         "server.key, client_auth_type: RequestClientCert}\n", "server.key"),
        ("unknown: 1\n", "1:1: unknown key"),
    ],
)  # fmt: skip
def test_a_bad_file_is_refused_by_the_check_and_at_the_start(folder, authority, text, word):
    path = folder / "bad.yml"
    path.write_text(text)
    for ended in (
        run_to_end("web-config", "check", str(path)),
        run_to_end("--web.listen-address=127.0.0.1:0", f"--web.config.file={path}"),
    ):
        assert ended.returncode == 1
        assert len(ended.stderr.splitlines()) == 1
        assert word in ended.stderr


def test_the_check_says_that_a_good_file_is_good(folder, strict):
    ended = run_to_end("web-config", "check", str(strict.path))
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "good" in ended.stdout
    assert run_to_end("web-config", "check").returncode == 64


def test_prometheus_scrapes_with_certificate_and_password(
    strict, authority, client_pair, start, tmp_path
):
    certificate, key = client_pair
    job = scrape_config(
        "secured",
        [f"127.0.0.1:{strict.port}"],
        scheme="https",
        tls_config={
            "ca_file": str(authority.certificate),
            "cert_file": str(certificate),
            "key_file": str(key),
            "server_name": "localhost",
        },
        basic_auth={"username": "prometheus", "password": PASSWORD},
    )
    prometheus = start(Prometheus, tmp_path, [job])
    prometheus.wait_for('up{job="secured"} == 1')
    prometheus.wait_for('workload_exporter_build_info{job="secured"}')
