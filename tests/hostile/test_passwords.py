# SPDX-License-Identifier: Apache-2.0
"""Floods of wrong passwords from other addresses, before the scraper has been seen once."""

import base64
import time

import pytest

from attackers import Flood, Scraper
from exporter import bound
from web import basic, bcrypt

pytestmark = pytest.mark.bounds

COST = 8
SECONDS = 3
FIRST_SECONDS = bound(2, 15)  # a few comparisons of 17 ms, on a machine that has other work
REST_SECONDS = bound(1, 5)
SOURCES = [f"127.0.1.{number}" for number in range(1, 20)]


def wrong(number):
    token = base64.b64encode(f"prometheus:wrong {number}".encode()).decode()
    return f"GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {token}\r\n\r\n".encode()


@pytest.mark.parametrize(
    "sources",
    [
        pytest.param(SOURCES[:1], id="one_address", marks=pytest.mark.times),
        pytest.param(SOURCES, id="many_addresses"),
    ],
)
def test_the_first_scrape_waits_for_few_of_them(tmp_path, exporters, figures, sources):
    path = tmp_path / "web.yml"
    path.write_text(f"basic_auth_users: {{prometheus: {bcrypt('right', cost=COST)}}}\n")
    exporter = exporters(f"--web.config.file={path}")
    requests = [wrong(number) for number in range(5000)]
    with Flood(exporter.port, requests, 100, sources) as flood:
        time.sleep(2 * SECONDS)
        with Scraper(exporter.port, headers=basic("prometheus", "right")) as scraper:
            time.sleep(SECONDS)
    first, *rest = scraper.seconds
    figures(attackers=flood.made, first_scrape=f"{first * 1000:.0f} ms", **scraper.figures())
    assert scraper.failures == []
    assert first < FIRST_SECONDS
    assert max(rest) < REST_SECONDS
