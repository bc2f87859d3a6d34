# SPDX-License-Identifier: Apache-2.0
"""Clients that ask for pages and do not read them, while one scrapes in earnest."""

import time

import pytest

from attackers import Flood, Scraper
from exporter import bound
from services import Service, unique_name

pytestmark = pytest.mark.bounds

SECONDS = 6
SCRAPE_SECONDS = bound(0.25, 5)
TIMES_ALONE = 6  # as long as a scrape takes without attackers, where that is more
SERVICES, PORTS = 20, 50
CLOSE = b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
STAY = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture(scope="module")
def big_page(start_for_module):
    """As much as an unprivileged user can add to the page in a second: some megabytes."""
    for _ in range(SERVICES):
        start_for_module(Service, "crowd", name=unique_name("crowd"), listeners=PORTS)


@pytest.mark.parametrize(
    "source, rate, request_bytes",
    [
        pytest.param("127.0.0.1", 45, CLOSE, id="same_address-close"),
        pytest.param("127.0.0.1", 45, STAY, id="same_address-stay", marks=pytest.mark.times),
        pytest.param("127.0.0.9", 200, CLOSE, id="other_address-close", marks=pytest.mark.times),
        pytest.param("127.0.0.9", 200, STAY, id="other_address-stay"),
    ],
)
def test_clients_that_do_not_read_starve_nobody_and_fill_no_memory(
    big_page, memory_limit, exporters, figures, rate, request_bytes, source
):
    exporter = exporters("--workloads.grace-period=1s", launcher=memory_limit.launcher)
    exporter.wait_until(lambda s: len(s.text) > 2 << 20)
    with Scraper(exporter.port) as alone:
        time.sleep(SECONDS / 3)
    with Flood(exporter.port, [request_bytes], rate, [source]) as flood, Scraper(
        exporter.port
    ) as scraper:
        time.sleep(SECONDS)
    figures(
        attackers=flood.made,
        longest_alone=f"{max(alone.seconds) * 1000:.0f} ms",
        **scraper.figures(),
        peak_memory=f"{memory_limit.peak_bytes() >> 20} MB",
    )
    assert exporter.process.poll() is None and memory_limit.kills() == 0
    assert scraper.failures == []
    assert max(scraper.seconds) < max(SCRAPE_SECONDS, TIMES_ALONE * max(alone.seconds))
    assert exporter.stop() == 0
