# SPDX-License-Identifier: Apache-2.0
"""What is in the package, and what is there once it is installed."""

import gzip
import json
import os
import re
import subprocess

import pytest

from exporter import BINARY, ROOT
from system import NAME

DOCUMENTS = f"/usr/share/doc/{NAME}"
CONFFILES = ("/etc/default/workload_exporter", "/etc/workload_exporter/web.yml")
UNITS = "/usr/lib/systemd/system"
# All files, with their modes.
FILES = {
    **{path: "644" for path in CONFFILES},
    "/usr/bin/workload_exporter": "755",
    f"{UNITS}/workload_exporter.service": "644",
    f"{UNITS}/workload_exporter.socket": "644",
    "/usr/lib/sysusers.d/workload_exporter.conf": "644",
    f"{DOCUMENTS}/changelog.Debian.gz": "644",
    f"{DOCUMENTS}/changelog.gz": "644",
    f"{DOCUMENTS}/copyright": "644",
    "/usr/share/man/man8/workload_exporter.8.gz": "644",
}
# For a package that does not go into Debian there is no report of an intended one to close.
SUPPRESSED = "initial-upload-closes-no-bugs"


def fields(deb, name):
    done = subprocess.run(["dpkg-deb", "-f", deb, name], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def said_by_git(*words):
    done = subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def rebuild(deb, tmp_path):
    """rebuild(VERSION) makes the package anew of what is built, with another umask; its path."""

    def build(version):
        folder = tmp_path / "deb"
        tree = folder / "debian" / NAME
        environment = {"SOURCE_DATE_EPOCH": said_by_git("log", "-1", "--format=%ct"), **os.environ}
        environment["DEB_MAINTAINER"] = fields(deb, "Maintainer")
        make = ["make", "-s", "-C", ROOT, "install", f"DESTDIR={tree}", "prefix=/usr"]
        for command in (make, [ROOT / "scripts/debian/build.sh", folder, version]):
            subprocess.run(
                [str(word) for word in command], env=environment, umask=0o027, check=True,
                capture_output=True,
            )  # fmt: skip
        (built,) = folder.iterdir()
        return built

    return build


def test_the_same_sources_make_the_same_package(deb, rebuild):
    version = said_by_git("describe", "--tags", "--always", "--dirty")
    assert rebuild(version).read_bytes() == deb.read_bytes()


def test_the_folder_in_which_it_was_built_is_not_in_it(installed):
    """Else another folder would make another package."""
    program = (installed / "usr/bin/workload_exporter").read_bytes()
    assert b"bpf/threads.bpf.c" in program
    assert str(ROOT).encode() not in program


def test_versions_follow_those_of_git(rebuild):
    tags = ("1c68a2f", "v0.1.0-rc1", "v0.1.0", "v0.1.0-9-g0123456", "v0.1.0-10-g0123456", "v0.1.1")
    versions = []
    for tag in tags:
        built = rebuild(tag)
        versions.append(fields(built, "Version"))
        built.unlink()
    for lower, higher in zip(versions, versions[1:]):
        assert subprocess.run(["dpkg", "--compare-versions", lower, "lt", higher], check=False).returncode == 0


def test_lintian_finds_no_fault(deb):
    command = ["lintian", "--allow-root", "--fail-on=error,warning", f"--suppress-tags={SUPPRESSED}", deb]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_these_files_are_in_it(installed):
    listed = installed.run("dpkg", "-L", NAME).split()
    files = {path: installed.status_of(path, "%a %U %G") for path in listed if (installed / path).is_file()}
    assert files == {path: f"{mode} root root" for path, mode in FILES.items()}
    assert installed.state() == "ii"
    assert installed.run("dpkg", "--verify", NAME) == ""


def test_folders_are_open_but_for_that_of_the_configuration(installed, deb):
    listed = subprocess.run(["dpkg-deb", "-c", deb], capture_output=True, text=True, check=True).stdout
    folders = [line.split() for line in listed.splitlines() if line.startswith("d")]
    assert {(words[0], words[1]) for words in folders} == {("drwxr-xr-x", "root/root")}
    assert installed.status_of("/etc/workload_exporter", "%a %U %G") == "750 root workload_exporter"


def test_what_operators_edit_are_conffiles(installed):
    listed = installed.run("dpkg-query", "-W", "-f", "${Conffiles}", NAME)
    assert sorted(line.split()[0] for line in listed.strip().splitlines()) == sorted(CONFFILES)


def test_documents_can_be_read(installed):
    changes = gzip.decompress((installed / DOCUMENTS / "changelog.gz").read_bytes()).decode()
    assert changes == (ROOT / "scripts/CHANGELOG.md").read_text()
    licence = (installed / DOCUMENTS / "copyright").read_text()
    assert all(text in licence for text in ("Apache-2.0", "GPL-2.0-only", "Redistribution and use in source"))
    page = gzip.decompress((installed / "usr/share/man/man8/workload_exporter.8.gz").read_bytes())
    assert page == (ROOT / "build/workload_exporter.8").read_bytes()


def test_the_units_name_what_is_there(installed):
    text = (installed / UNITS / "workload_exporter.service").read_text()
    started = re.search(r"^ExecStart=(\S+)", text, re.MULTILINE)[1]
    assert started in FILES
    assert f"EnvironmentFile=-{CONFFILES[0]}" in text


def test_the_configuration_as_it_comes_is_good(installed):
    said = installed.run("workload_exporter", "web-config", "check", CONFFILES[1])
    assert "is good: without TLS" in said


def test_the_example_of_the_configuration_is_good_as_well(own):
    """With the marks of comments taken away, that is; certificates are the operator's."""
    example = (own / CONFFILES[1]).read_text()
    users = example[example.index("#basic_auth_users") :].replace("#", "")
    (own / CONFFILES[1]).write_text(users.replace("$2y$10$...", "$2y$10$" + 53 * "a"))
    assert "is good" in own.run("workload_exporter", "web-config", "check", CONFFILES[1])


def test_the_program_says_its_version(installed):
    assert installed.run("workload_exporter", "--version").startswith("workload_exporter, version ")


def test_check_says_in_it_what_it_says_outside(installed):
    """The kernel is the same: what is missing here would be a library, or a file of the system."""
    inside = installed.try_run("workload_exporter", "check", "--json")
    outside = subprocess.run([BINARY, "check", "--json"], capture_output=True, text=True, check=False)
    assert inside.returncode == outside.returncode
    features = [
        {row["name"]: row["ok"] for row in json.loads(said.stdout)["features"]} for said in (inside, outside)
    ]
    assert features[0] == features[1]
    assert any(features[0].values())
