# SPDX-License-Identifier: Apache-2.0
"""Millions of descriptors: the exporter looks for services behind them while it serves."""

import time

import pytest

from attackers import Scraper
from clients import exchange
from exporter import Exporter, bound
from services import Service, unique_name

pytestmark = pytest.mark.bounds

PROCESSES, DESCRIPTORS = 300, 18_000
SECONDS = 4
START_SECONDS = bound(2, 10)
DELAY_SECONDS = bound(0.05, 2)
LONGEST_SECONDS = bound(0.25, 5)
FOUND_SECONDS = bound(40, 120)


@pytest.mark.parametrize(
    "shared", [pytest.param(1, id="one_table", marks=pytest.mark.times), pytest.param(0, id="own_tables")]
)
def test_they_delay_no_scrape_and_hide_no_service(start, connect, memory_limit, figures, shared):
    start(
        Service,
        "descriptors",
        name=unique_name("many"),
        processes=PROCESSES,
        descriptors=DESCRIPTORS,
        shared=shared,
    )
    service = start(Service, "talker", script="read:100,write:100,loop")
    client = connect(service.port)
    exchange(client)
    began = time.monotonic()
    exporter = Exporter(launcher=memory_limit.launcher)
    try:
        started = time.monotonic() - began
        with Scraper(exporter.port) as scraper:
            time.sleep(SECONDS)
        exporter.wait_for_endpoint(
            service.port, lambda e: e.get("workload_connections"), 1, FOUND_SECONDS
        )
        found = time.monotonic() - began
        with Scraper(exporter.port) as alone:
            time.sleep(SECONDS / 2)
        exchange(client)
        exporter.wait_until(
            lambda s: s.sum("workload_request_queue_seconds_count", port=service.port) == 1
        )
    finally:
        ended = exporter.stop()
    figures(
        start=f"{started * 1000:.0f} ms",
        longest_when_they_are_done=f"{max(alone.seconds) * 1000:.0f} ms",
        **scraper.figures(),
        open_connection_found_after=f"{found:.1f} s",
        peak_memory=f"{memory_limit.peak_bytes() >> 20} MB",
    )
    assert scraper.failures == []
    assert started < START_SECONDS
    assert scraper.longest_but_one() < max(alone.seconds) + DELAY_SECONDS
    assert max(scraper.seconds) < LONGEST_SECONDS
    assert ended == 0 and memory_limit.kills() == 0
