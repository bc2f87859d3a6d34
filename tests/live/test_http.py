# SPDX-License-Identifier: Apache-2.0
"""The exporter's own port: formats, routes, mistakes on its command line and hostile clients."""

import re
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from prometheus_client.parser import text_string_to_metric_families

from exporter import run_to_end
from services import Load, Service

HISTOGRAM_BUCKETS_MAX = 16


@pytest.fixture(scope="module")
def busy(exporter, start_for_module):
    """A scrape that has something to say."""
    server = start_for_module(Service, "pool_server", lock_us=1000)
    exporter.workload_of(server.port)
    start_for_module(Load, server.port, clients=8, requests=200).finish()
    return exporter.scrape()


def test_promtool_has_nothing_to_say_about_a_scrape(busy):
    lint = subprocess.run(
        ["promtool", "check", "metrics"],
        input=busy.text,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (lint.returncode, lint.stdout, lint.stderr) == (0, "", "")


def test_the_official_parser_reads_the_same_series(busy):
    samples = {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(busy.text)
        for sample in family.samples
    }
    assert samples == busy.series


def test_histograms_are_cumulative_and_end_with_their_count(busy):
    buckets = {}
    for (name, labels), value in busy.series.items():
        if name.endswith("_bucket"):
            rest = frozenset(label for label in labels if label[0] != "le")
            bound = float(dict(labels)["le"])
            buckets.setdefault((name.removesuffix("_bucket"), rest), {})[bound] = value
    assert buckets
    for (name, labels), values in buckets.items():
        in_order = [values[bound] for bound in sorted(values)]
        assert in_order == sorted(in_order), name
        assert values[float("inf")] == busy.series[(f"{name}_count", labels)]
        assert len(values) <= HISTOGRAM_BUCKETS_MAX


def test_every_probe_is_attached_and_every_collector_works(busy):
    for name in ("workload_exporter_probe_attached", "workload_scrape_collector_success"):
        rows = busy.rows(name)
        assert rows
        assert [labels for labels, value in rows if value != 1] == []


def test_it_describes_itself(busy):
    for name in (
        "workload_exporter_build_info",
        "process_cpu_seconds_total",
        "process_resident_memory_bytes",
        "process_open_fds",
        "process_start_time_seconds",
    ):
        assert busy.one(name) > 0
    assert busy.rows("workload_exporter_dropped_total")
    entries = {r[0]["map"]: r[1] for r in busy.rows("workload_exporter_map_entries")}
    capacity = {r[0]["map"]: r[1] for r in busy.rows("workload_exporter_map_capacity")}
    # Storage on sockets and threads has no capacity of its own.
    assert set() < capacity.keys() <= entries.keys()
    assert all(entries[name] <= capacity[name] for name in capacity)


def test_metrics_are_text_0_0_4(exporter):
    status, headers, body = exporter.request()
    assert status == 200
    assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert body.startswith("# HELP ")


@pytest.mark.parametrize("path, status", [("/", 200), ("/-/healthy", 200), ("/nothing", 404)])
def test_routes_answer(exporter, path, status):
    assert exporter.request(path)[0] == status


def test_landing_page_names_the_exporter_and_links_to_the_metrics(exporter):
    body = exporter.request("/")[2]
    assert "workload_exporter" in body
    assert "/metrics" in body


@pytest.mark.parametrize("path", ["/", "/metrics", "/-/healthy"])
def test_head_is_get_without_a_body(exporter, path):
    status, headers, body = exporter.request(path, "HEAD")
    assert (status, body) == (200, "")
    assert headers["Content-Type"] == exporter.request(path)[1]["Content-Type"]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_other_methods_are_not_allowed(exporter, method):
    status, headers, _ = exporter.request("/metrics", method)
    assert status == 405
    assert {word.strip() for word in headers["Allow"].split(",")} == {"GET", "HEAD"}


def test_telemetry_path_can_be_chosen(exporters):
    exporter = exporters("--web.telemetry-path=/values")
    assert exporter.request("/values")[0] == 200
    assert exporter.request("/metrics")[0] == 404
    assert "/values" in exporter.request("/")[2]


def check_one_clear_line(ended, *words):
    assert ended.returncode > 0
    lines = (ended.stdout + ended.stderr).strip().splitlines()
    assert len(lines) == 1, lines
    for word in words:
        assert word in lines[0]


def test_an_address_in_use_is_an_error_of_one_line(exporter):
    address = f"127.0.0.1:{exporter.port}"
    check_one_clear_line(run_to_end(f"--web.listen-address={address}"), address)


@pytest.mark.parametrize(
    "argument",
    [
        "--nonsense",
        "--web.listen",
        "--web.listen-address=127.0.0.1:99999",
        "--web.listen-address=nowhere.invalid:1",
        "--web.telemetry-path=metrics",
        "--log.level=loud",
        "--log.format=xml",
        "nonsense",
    ],
)
def test_a_wrong_argument_is_an_error_of_one_line(argument):
    check_one_clear_line(run_to_end(argument), argument.split("=")[-1])


def test_version_and_help_end_well():
    version = run_to_end("--version")
    assert version.returncode == 0
    assert re.match(
        r"workload_exporter, version \S+ \(branch: \S+, revision: \S+\)", version.stdout
    )
    usage = run_to_end("--help")
    assert usage.returncode == 0
    for flag in ("--web.listen-address", "--web.telemetry-path", "--log.level", "--log.format"):
        assert flag in usage.stdout
    for command in ("check [--json]", "profile [flags] WORKLOAD", "web-config check FILE"):
        assert re.search(rf" workload_exporter {re.escape(command)}\s", usage.stdout)
    assert max(map(len, usage.stdout.splitlines())) <= 90


def test_log_lines_can_be_json(exporters):
    exporter = exporters("--log.format=json")
    assert all(line.startswith("{") for line in exporter.log)


HOSTILE = {
    "garbage": b"\x00\xff\xfe garbage \r\n\r\n" * 10,
    "huge header": b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 1000000,
    "huge path": b"GET /" + b"a" * 1000000 + b" HTTP/1.1\r\n\r\n",
    "half a request": b"GET /metrics HT",
    "nothing": b"",
    "endless body": b"POST /metrics HTTP/1.1\r\nContent-Length: 999999999\r\n\r\n" + b"z" * 100000,
    "negative length": b"GET /metrics HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_client_does_not_disturb_a_scrape(exporter, kind):
    clients = [socket.create_connection(("127.0.0.1", exporter.port), 5) for _ in range(4)]
    try:
        for client in clients:
            client.setblocking(False)
            try:
                client.send(HOSTILE[kind])
            except OSError:
                pass  # refused: as good as ignored
        for _ in range(3):
            scrape = exporter.scrape()
            assert scrape.ended - scrape.began < 5
    finally:
        for client in clients:
            client.close()


def test_forty_silent_connections_do_not_starve_a_scrape(exporter):
    clients = [socket.create_connection(("127.0.0.1", exporter.port), 5) for _ in range(40)]
    try:
        scrape = exporter.scrape()
        assert scrape.ended - scrape.began < 5
    finally:
        for client in clients:
            client.close()


def test_many_scrapes_at_once_all_succeed(exporter):
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda _: exporter.scrape().series, range(40)))
