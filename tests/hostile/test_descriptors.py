# SPDX-License-Identifier: Apache-2.0
"""Millions of descriptors: the exporter looks for services behind them while it serves."""

import time

import pytest

from attackers import Scraper
from clients import exchange
from exporter import Exporter
from services import Service, unique_name

pytestmark = pytest.mark.times

PROCESSES, DESCRIPTORS = 300, 18_000
TABLES = {"one_table": 1, "own_tables": 0}
SECONDS = 4
START_SECONDS = 2
DELAY_SECONDS = 0.05
LONGEST_SECONDS = 0.25
FOUND_SECONDS = 40


@pytest.mark.parametrize("shared", TABLES.values(), ids=TABLES.keys())
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
