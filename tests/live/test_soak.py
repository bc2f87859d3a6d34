# SPDX-License-Identifier: Apache-2.0
"""A short version of `make soak`: services in trouble, slow scrapers, an exporter that is killed."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "bench"))

from soak import soak

SECONDS = 20


@pytest.mark.times
def test_under_all_kinds_of_trouble_it_tells_the_truth_and_stays_small():
    assert soak(SECONDS) == []
