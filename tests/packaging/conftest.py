# SPDX-License-Identifier: Apache-2.0
"""Systems in which the package is installed, made once; what changes one gets a copy."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "live"))
pytest.register_assert_rewrite("system", "exporter", "services")

from exporter import BUILD  # pylint: disable=wrong-import-position
from system import PACKAGING, System, Systemctl, package  # pylint: disable=wrong-import-position


@pytest.fixture(scope="session")
def deb():
    return package(BUILD)


@pytest.fixture(scope="session")
def next_deb():
    """Of a higher version."""
    return package(PACKAGING / "next")


@pytest.fixture(scope="session")
def installed(deb):
    """To be looked at."""
    with System() as system:
        system.install(deb)
        yield system


@pytest.fixture
def bare():
    """Without the package; to be changed."""
    with System() as system:
        yield system


@pytest.fixture(scope="session")
def systemd():
    """Without the package, but with systemd."""
    with System() as system:
        system.apt("install", "systemd")
        yield system


@pytest.fixture
def booted(systemd):
    """The same, to be changed; where systemd runs, as far as scripts see."""
    with System(systemd.path) as system:
        yield system, Systemctl(system)


@pytest.fixture
def own(installed):
    """With the package; to be changed."""
    with System(installed.path) as system:
        yield system
