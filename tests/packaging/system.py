# SPDX-License-Identifier: Apache-2.0
"""A Debian system of its own, into which the package is installed, and its service without systemd."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from exporter import BEHIND_A_FILTER, BUILD, Exporter
from services import unique_name
from sockets import passing

NAME = "workload-exporter"
PACKAGING = BUILD / "packaging"
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL": "C",
    "HOME": "/root",
    "DEBIAN_FRONTEND": "noninteractive",
}
# In a mount namespace of its own, so that no mount outlives the command.
ENTER = 'mount --rbind /proc "$0/proc" && mount --rbind /sys "$0/sys" && exec chroot "$0" "$@"'
COMMAND_SECONDS = 120


def package(folder):
    """The one that was built there."""
    (found,) = (folder / "deb").glob("*.deb")
    return found


class System:
    """A copy of another one, removed with close()."""

    def __init__(self, source=PACKAGING / "debian"):
        self.path = PACKAGING / unique_name("system")
        subprocess.run(["cp", "-a", "--reflink=auto", str(source), str(self.path)], check=True)

    def close(self):
        shutil.rmtree(self.path)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __truediv__(self, path):
        return self.path / str(path).lstrip("/")

    def command(self, *words, namespaces=("--mount",)):
        return [shutil.which("unshare"), *namespaces, "sh", "-c", ENTER, str(self.path), *map(str, words)]

    def try_run(self, *words, **options):
        """Nothing can be asked: standard input has ended."""
        return subprocess.run(
            self.command(*words, **options), env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, umask=0o022, timeout=COMMAND_SECONDS, check=False,
        )  # fmt: skip

    def run(self, *words):
        """What it says."""
        done = self.try_run(*words)
        assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def apt(self, *words):
        """Without a network: all that is wanted is in its cache."""
        options = ["-y", "--no-install-recommends", "-o", "APT::Sandbox::User=root"]
        done = self.try_run("apt-get", *options, *words, namespaces=("--mount", "--net"))
        assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"

    def install(self, deb):
        """With what it depends on."""
        inside = Path("/var/tmp/package.deb")
        shutil.copy(deb, self / inside)
        self.apt("install", inside)
        (self / inside).unlink()

    def state(self):
        """Of the package, as `dpkg -l` has it ("ii"), or "" of one that dpkg does not know."""
        done = self.try_run("dpkg-query", "-W", "-f", "${db:Status-Abbrev}", NAME)
        return done.stdout.strip()

    def status_of(self, path, form):
        return self.run("stat", "-c", form, path).strip()

    def files(self):
        """All there are; what is mounted for a command is not."""
        found = set()
        for folder, folders, names in os.walk(self.path):
            inside = Path("/") / Path(folder).relative_to(self.path)
            found.update(str(inside / name) for name in (*folders, *names))
        return found


def _unit_values(text):
    """{key: value} of a unit; of a key that is there twice the last."""
    return dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))


class Service(Exporter):
    """
    The exporter as the installed unit starts it: its command, options, user, capabilities, a filter of
    system calls (which allows all), and a socket that listens already.
    """

    def __init__(self, system, listener):
        unit = _unit_values((system / "usr/lib/systemd/system/workload_exporter.service").read_text())
        options = _unit_values((system / unit["EnvironmentFile"].lstrip("-")).read_text())
        program, *flags = unit["ExecStart"].replace("$OPTIONS", options.get("OPTIONS", "")).split()
        kept = unit["AmbientCapabilities"].lower().replace("cap_", "+").replace(" ", ",")
        passed = passing(listener)
        super().__init__(
            *flags,
            binary=program,
            launcher=passed.pop("launcher")
            + BEHIND_A_FILTER
            + system.command(
                *("setpriv", f"--reuid={unit['User']}", f"--regid={unit['User']}", "--clear-groups"),
                *(f"--{kind}=-all,{kept}" for kind in ("bounding-set", "inh-caps", "ambient-caps")),
                "--no-new-privs",
            ),
            env=ENVIRONMENT,
            **passed,
        )


class Systemctl:
    """
    Lets the package's scripts in @system find a systemd that runs, and records what they ask of it.
    What is only a matter of files the real systemctl does; a unit is active if it is enabled.
    """

    SCRIPT = """#!/bin/sh
export SYSTEMD_OFFLINE=1
case " $* " in
*" preset "* | *" disable "* | *" is-enabled "*) exec systemctl.real "$@" ;;
*" is-active "*) exec systemctl.real is-enabled --quiet "${*##* }" ;;
esac
echo "$*" >>/systemctl.log
"""

    def __init__(self, system):
        self.log = system / "systemctl.log"
        script = system / "usr/bin/systemctl"
        script.rename(script.with_suffix(".real"))
        script.write_text(self.SCRIPT)
        script.chmod(0o755)
        (system / "run/systemd/system").mkdir(parents=True)

    def asked(self):
        """What it was asked since this was called last, in order and without options."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        self.log.write_text("")
        words = [[word for word in line.split() if not word.startswith("-")] for line in lines]
        return [" ".join(each) for each in words]
