# SPDX-License-Identifier: Apache-2.0
"""From the installation to the purge, and what an operator did in between."""

import os
from pathlib import Path

import pytest

from sockets import listening
from system import NAME, Service
from test_contents import CONFFILES, UNITS

USER = "workload_exporter"
SERVICE, SOCKET = f"{USER}.service", f"{USER}.socket"
LINKS = (
    f"/etc/systemd/system/multi-user.target.wants/{SERVICE}",
    f"/etc/systemd/system/sockets.target.wants/{SOCKET}",
)
# What any installation writes: dpkg's and apt's own, and copies of the lists of users.
WRITTEN = ("/var/lib/dpkg/", "/var/lib/apt/", "/var/cache/", "/var/log/", "/etc/shadow-", "/etc/gshadow-")
NEXT_VERSION = "v999.0.0"


def version_of(scrape):
    ((labels, _),) = scrape.rows("workload_exporter_build_info")
    return labels["version"]


@pytest.fixture
def listener():
    with listening() as made:
        yield made


@pytest.fixture
def edited(own):
    """An operator's edits of both files: another path, a header, and a comment each."""
    default, web = (own / path for path in CONFFILES)
    default.write_text(
        "# mine\nOPTIONS=--web.config.file=/etc/workload_exporter/web.yml --web.telemetry-path=/mine\n"
    )
    web.write_text("# mine\nhttp_server_config:\n  headers:\n    X-Frame-Options: deny\n")
    return own, [path.read_text() for path in (default, web)]


def check_user(system):
    row = system.run("getent", "passwd", USER).strip().split(":")
    assert 0 < int(row[2]) < 1000
    assert row[5:] == ["/", "/usr/sbin/nologin"]
    shadow = system.run("getent", "shadow", USER).split(":")
    assert shadow[1].startswith("!")
    assert system.run("id", "-Gn", USER).split() == [USER]


def test_the_user_is_made_without_systemd(installed):
    assert not (installed / "usr/bin/systemd-sysusers").exists()
    check_user(installed)


def test_a_user_that_is_there_is_taken(bare, deb):
    bare.run("useradd", "--system", "--user-group", "--uid", "777", USER)
    bare.install(deb)
    assert bare.run("id", "-u", USER).strip() == "777"


def test_the_service_serves(installed, listener):
    with Service(installed, listener) as service:
        assert service.port == listener.getsockname()[1]
        assert service.scrape().rows("workload_exporter_build_info")
        assert os.stat(f"/proc/{service.pid}").st_uid == int(installed.run("id", "-u", USER))
        assert Path(f"/proc/{service.pid}/exe").samefile(installed / "usr/bin/workload_exporter")
        assert service.stop() == 0


def test_an_upgrade_leaves_edits_alone_and_the_new_version_takes_over(edited, next_deb, listener):
    """One socket for both, as with systemd: what asks in between waits."""
    own, before = edited
    with Service(own, listener) as old:
        status, headers, _ = old.request("/mine")
        assert (status, headers["X-Frame-Options"]) == (200, "deny")
        own.install(next_deb)
        assert old.request("/mine")[0] == 200
        assert old.stop() == 0
    assert [(own / path).read_text() for path in CONFFILES] == before
    assert own.run("dpkg-query", "-W", "-f", "${Version}", NAME) == f"{NEXT_VERSION[1:]}-1"
    with Service(own, listener) as new:
        status, headers, page = new.request("/mine")
        assert (status, headers["X-Frame-Options"]) == (200, "deny")
        assert f'version="{NEXT_VERSION}"' in page
        assert new.stop() == 0


def test_an_upgrade_leaves_modes_of_the_configuration_alone(own, next_deb):
    own.run("chmod", "0700", "/etc/workload_exporter")
    own.run("chmod", "0600", CONFFILES[1])
    own.run("chgrp", USER, CONFFILES[1])
    own.install(next_deb)
    assert own.status_of("/etc/workload_exporter", "%a") == "700"
    assert own.status_of(CONFFILES[1], "%a %G") == f"600 {USER}"


def test_a_configuration_that_was_deleted_stays_away(own, next_deb):
    (own / CONFFILES[1]).unlink()
    own.install(next_deb)
    assert not (own / CONFFILES[1]).exists()


def test_removal_keeps_the_configuration_and_a_purge_does_not(bare, deb):
    before = bare.files()
    bare.install(deb)
    listed = bare.run("dpkg", "-L", NAME).split()
    assert all((bare / path).exists() for path in listed)
    assert all(os.path.lexists(bare / link) for link in LINKS)
    (bare / CONFFILES[1]).write_text("# mine\n")

    bare.apt("remove", NAME)
    assert bare.state() == "rc"
    assert {path for path in listed if (bare / path).is_file()} == set(CONFFILES)
    assert (bare / CONFFILES[1]).read_text() == "# mine\n"

    bare.apt("purge", NAME)
    bare.apt("--purge", "autoremove")
    assert bare.state() == ""
    assert [path for path in bare.files() - before if not path.startswith(WRITTEN)] == []
    check_user(bare)


def test_a_purge_leaves_what_the_operator_has_made(own):
    (own / "etc/workload_exporter/server.key").write_text("mine")
    drop_in = own / f"etc/systemd/system/{SOCKET}.d/override.conf"
    drop_in.parent.mkdir(parents=True)
    drop_in.write_text("[Socket]\n")
    own.apt("purge", NAME)
    assert [path.name for path in (own / "etc/workload_exporter").iterdir()] == ["server.key"]
    assert drop_in.exists()


def test_a_package_that_was_removed_comes_back_as_it_was(edited, deb):
    own, before = edited
    own.apt("remove", NAME)
    own.install(deb)
    assert own.state() == "ii"
    assert [(own / path).read_text() for path in CONFFILES] == before


def test_systemd_where_it_runs_makes_the_user_and_is_asked_for_the_units(booted, deb, next_deb):
    system, systemctl = booted
    (system / "usr/sbin/useradd").unlink()
    begin = ["daemon-reload", f"start {SOCKET}", f"restart {SERVICE}"]
    system.install(deb)
    check_user(system)
    assert systemctl.asked() == begin
    assert all(os.path.lexists(system / link) for link in LINKS)
    system.run("systemd-analyze", "verify", "--man=no", f"{UNITS}/{SERVICE}", f"{UNITS}/{SOCKET}")
    system.install(next_deb)
    assert systemctl.asked() == begin
    system.apt("remove", NAME)
    assert systemctl.asked() == [f"stop {SOCKET} {SERVICE}", "daemon-reload"]
    system.apt("purge", NAME)
    assert not any(os.path.lexists(system / link) for link in LINKS)


def test_a_unit_that_an_operator_has_disabled_stays_so(booted, deb, next_deb):
    system, systemctl = booted
    system.install(deb)
    system.run("systemctl", "disable", SERVICE)
    systemctl.asked()
    system.install(next_deb)
    assert [os.path.lexists(system / link) for link in LINKS] == [False, True]
    assert systemctl.asked() == ["daemon-reload", f"start {SOCKET}"]
