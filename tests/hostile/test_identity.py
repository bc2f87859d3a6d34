# SPDX-License-Identifier: Apache-2.0
"""Processes that keep whoever looks at them waiting: the exporter goes on without them."""

import contextlib
import os
import signal
import time
from pathlib import Path

import pytest

from attackers import Scraper
from exporter import Exporter, bound
from services import Service, unique_name

pytestmark = pytest.mark.bounds

HOLDERS = 100
START_SECONDS = bound(2, 10)
SCRAPE_SECONDS = bound(0.1, 2)
LONGEST_SECONDS = bound(0.25, 5)
SECONDS = 5
SHOWN_SECONDS = bound(5, 30)  # by what every user may know
NAMED_SECONDS = bound(20, 60)  # after all others were tried once, for a tenth of a second each


def seconds_to_read_maps(pid):
    """In a process of its own: it may hang, and is ended with SIGKILL."""
    began = time.monotonic()
    child = os.fork()
    if not child:
        with contextlib.suppress(OSError):
            Path(f"/proc/{pid}/maps").read_bytes()
        os._exit(0)
    while time.monotonic() - began < 1 and os.waitpid(child, os.WNOHANG) == (0, 0):
        time.sleep(0.01)
    with contextlib.suppress(ProcessLookupError, ChildProcessError):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return time.monotonic() - began


@pytest.fixture(
    params=[
        pytest.param(20, id="a_while", marks=pytest.mark.times),
        pytest.param(1500, id="nearly_for_ever"),
    ]
)
def holders(start, request):
    """They hold it for so many ms at a time; a reader needs it some times."""
    service = start(
        Service,
        "memory_holder",
        name=unique_name("holder"),
        processes=HOLDERS,
        hold_ms=request.param,
    )
    children = Path(f"/proc/{service.pid}/task/{service.pid}/children").read_text().split()
    assert max(map(seconds_to_read_maps, children[1:5])) > 0.2, "nobody holds anything"
    return service


def info(scrape, name):
    return [labels for labels, _ in scrape.rows("workload_info", workload=name)]


def test_who_holds_the_lock_of_its_memory_delays_nobody(holders, start, memory_limit, figures):
    began = time.monotonic()
    exporter = Exporter(launcher=memory_limit.launcher)
    try:
        started = time.monotonic() - began
        service = start(Service, "talker", script="read:1,write:1,loop")
        with Scraper(exporter.port) as scraper:
            time.sleep(SECONDS)
        # By their threads' names, until they answer: and none is missing.
        exporter.wait_until(
            lambda s: s.sum("workload_processes", workload=holders.name) > HOLDERS, SHOWN_SECONDS
        )
        exporter.wait_until(
            lambda s: [row["exe"] for row in info(s, service.name)] == [str(service.path)],
            NAMED_SECONDS,
        )
        named = time.monotonic() - began
        late = exporter.scrape().sum("workload_exporter_dropped_total", reason="identity_late")
        figures(
            start=f"{started * 1000:.0f} ms",
            **scraper.figures(),
            answers_late=int(late),
            another_service_named_after=f"{named:.1f} s",
            peak_memory=f"{memory_limit.peak_bytes() >> 20} MB",
        )
    finally:
        ended = exporter.stop()
    assert scraper.failures == []
    assert started < START_SECONDS
    assert scraper.longest_but_one() < SCRAPE_SECONDS
    assert max(scraper.seconds) < LONGEST_SECONDS
    assert late > 0
    assert ended == 0 and memory_limit.kills() == 0
