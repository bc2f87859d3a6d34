# SPDX-License-Identifier: Apache-2.0
"""Formats on the wire: who gets which, what official parsers and real Prometheus servers make of it."""

import gzip
import http.client
import subprocess
from types import SimpleNamespace

import pytest
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from bpf_maps import map_shown
from clients import exchange
from exposition import Scrape
from scraper import SUITES, Scraper, Unavailable, Wire
from services import Load, Service

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
PROTOBUF = (
    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
)
PROMETHEUS_2 = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
REQUESTS = 300
SERVICE_US = 28000
# The native bucket that requests of 28 ms are in, with up to 3 ms of overhead: schema 2.
BUCKET = (2 ** (-21 / 4), 2 ** (-20 / 4))


def ask(exporter, path="/metrics", method="GET", **headers):
    """(headers, body as bytes)"""
    connection = http.client.HTTPConnection("127.0.0.1", exporter.port, timeout=10)
    try:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, headers=names)
        response = connection.getresponse()
        body = response.read()
        assert response.status == 200, body
        return response.headers, body
    finally:
        connection.close()


@pytest.fixture(scope="module")
def served(exporter, start_for_module):
    """A service that has answered requests of a known time, and rests: its port."""
    server = start_for_module(Service, "pool_server", workers=4, service_us=SERVICE_US)
    exporter.workload_of(server.port)
    assert start_for_module(Load, server.port, clients=8, requests=REQUESTS).finish()["errors"] == 0
    exporter.wait_for_endpoint(server.port, lambda e: e.counts(), (REQUESTS,) * 3)
    return server.port


@pytest.mark.parametrize(
    "accept, content_type",
    [
        (PROMETHEUS_2, OPENMETRICS),
        (PROTOBUF.replace(" ", "") + "," + PROMETHEUS_2.replace("1.0.0,", "1.0.0;q=0.8,"), PROTOBUF),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8", TEXT),
        ("*/*", TEXT),
        ("application/json", TEXT),
    ],
    ids=["prometheus", "prometheus-native", "firefox", "python-requests", "unknown"],
)
def test_each_client_gets_the_format_that_it_prefers(exporter, accept, content_type):
    headers, _ = ask(exporter, Accept=accept)
    assert headers["Content-Type"] == content_type
    assert headers["Vary"] == "Accept, Accept-Encoding"


def test_curl_gets_text_compressed_if_it_asks_for_that(exporter):
    address = f"http://127.0.0.1:{exporter.port}/metrics"
    run = lambda *flags: subprocess.run(
        ["curl", "-sSf", "-D", "/dev/stderr", *flags, address], capture_output=True, check=True
    )
    plain, packed = run(), run("--compressed")
    for answer in (plain, packed):
        assert f"Content-Type: {TEXT}\r\n".encode() in answer.stderr
        assert answer.stdout.startswith(b"# HELP ")
    assert b"Content-Encoding" not in plain.stderr
    assert b"Content-Encoding: gzip\r\n" in packed.stderr


def is_between(found, before, after):
    """Of a machine on which other tests run, too: they come and go, and so does what they lose."""
    return before & after <= found <= before | after


@pytest.mark.parametrize("accept", [TEXT, OPENMETRICS, PROTOBUF])
def test_compression_changes_nothing_but_the_size(exporter, accept):
    plain = lambda: ask(exporter, Accept=accept, Accept_Encoding="gzip;q=0")[1]
    before = plain()
    headers, packed = ask(exporter, Accept=accept, Accept_Encoding="gzip")
    assert headers["Content-Encoding"] == "gzip"
    assert len(packed) < len(before) / 2
    families = lambda text: {line for line in text.splitlines() if line.startswith(b"# HELP")}
    assert is_between(families(gzip.decompress(packed)), families(before), families(plain()))


@pytest.mark.parametrize("accept", [TEXT, OPENMETRICS, PROTOBUF])
def test_head_has_the_headers_of_get(exporter, accept):
    headers, body = ask(exporter, method="HEAD", Accept=accept)
    assert (headers["Content-Type"], body) == (accept, b"")
    assert int(headers["Content-Length"]) > 1000


def check_exemplars(families):
    """Beyond what the parser checks: an exemplar of a bucket is a value inside that bucket."""
    for family in families:
        below = float("-inf")
        for sample in family.samples:
            bound = float(sample.labels.get("le", "inf"))
            if sample.exemplar and sample.name.endswith("_bucket"):
                assert below < sample.exemplar.value <= bound, sample
            below = bound if bound < float("inf") else float("-inf")


def test_openmetrics_is_what_the_official_parser_expects(exporter, served):
    text = ask(exporter, Accept=OPENMETRICS)[1].decode()
    families = list(openmetrics.text_string_to_metric_families(text))
    names = [family.name for family in families]
    assert len(names) == len(set(names)) > 30
    series = [(s.name, *sorted(s.labels.items())) for f in families for s in f.samples]
    assert len(series) == len(set(series)) > 100
    check_exemplars(families)
    assert {family.unit for family in families} == {"", "seconds", "bytes"}


def test_both_text_formats_have_the_same_series(exporter, served):
    as_text = ask(exporter)[1].decode()
    as_openmetrics = ask(exporter, Accept=OPENMETRICS)[1].decode()
    as_text_again = ask(exporter)[1].decode()
    of_port = lambda text: Scrape(text).rows("workload_request_service_seconds_bucket", port=served)
    assert of_port(as_openmetrics) == of_port(as_text)
    names = lambda families: {sample.name for family in families for sample in family.samples}
    assert is_between(
        names(openmetrics.text_string_to_metric_families(as_openmetrics)),
        names(text_string_to_metric_families(as_text)),
        names(text_string_to_metric_families(as_text_again)),
    )


# --- which parts ---------------------------------------------------------------------------------


def collectors(scrape):
    return {labels["collector"] for labels, _ in scrape.rows("workload_scrape_collector_success")}


def test_collect_and_exclude_choose_families(exporter, served):
    only = Scrape(exporter.request("/metrics?collect[]=threads")[2])
    rest = Scrape(exporter.request("/metrics?exclude[]=threads")[2])
    assert collectors(only) == {"threads"}
    assert collectors(rest) == {"discovery", "requests"}
    assert only.rows("workload_threads") and not only.rows("workload_connections")
    assert rest.rows("workload_connections", port=served) and not rest.rows("workload_threads")
    assert not only.rows("workload_info") and rest.rows("workload_info")
    assert only.rows("process_open_fds") and only.rows("workload_exporter_build_info")


def test_counters_go_on_after_scrapes_that_did_not_ask_for_them(exporter, served):
    counts = exporter.endpoint(served).counts()
    for _ in range(3):
        exporter.request("/metrics?exclude[]=requests")
    assert exporter.endpoint(served).counts() == counts


@pytest.mark.parametrize(
    "query, words",
    [
        ("collect[]=requests&exclude[]=threads", ["combined"]),
        ("collect[]=cpu", ["cpu", "discovery, requests, threads"]),
        ("exclude[]=cpu", ["cpu", "discovery, requests, threads"]),
        ("&".join(["collect[]=requests"] * 100), ["Too many"]),
    ],
)
def test_a_wrong_filter_is_a_bad_request_that_says_why(exporter, query, words):
    status, _, body = exporter.request(f"/metrics?{query}")
    assert status == 400
    assert all(word in body for word in words), body


@pytest.mark.parametrize("off", ["requests", "threads"])
def test_a_collector_that_is_switched_off_is_not_attached(exporters, off):
    exporter = exporters(f"--no-collector.{off}")
    rest = {"discovery", "requests", "threads"} - {off}
    scrape = exporter.scrape()
    assert collectors(scrape) == rest
    features = {labels["feature"] for labels, _ in scrape.rows("workload_exporter_probe_attached")}
    assert features == rest
    status, _, body = exporter.request(f"/metrics?collect[]={off}")
    assert (status, "disabled" in body) == (400, True)


def test_without_requests_their_table_takes_no_memory(exporter, exporters):
    """Discovery needs it."""
    without = exporters("--no-collector.requests")
    whole, small = (map_shown(each, "endpoints")["bytes_memlock"] for each in (exporter, without))
    assert small < whole / 50


def test_the_exporters_own_metrics_can_be_left_out(exporters):
    scrape = exporters("--web.disable-exporter-metrics").scrape()
    own = {name for name, _ in scrape.series if name.startswith(("process_", "workload_exporter_"))}
    assert own == {"workload_exporter_build_info"}


# --- how long, and how often ---------------------------------------------------------------------


def test_what_does_not_fit_into_the_timeout_is_left_out_in_public(exporter, served):
    status, _, text = exporter.request(**{"X-Prometheus-Scrape-Timeout-Seconds": "0.000001"})
    assert status == 200
    scrape = Scrape(text)
    assert {value for _, value in scrape.rows("workload_scrape_collector_success")} == {0}
    assert not scrape.rows("workload_connections") and not scrape.rows("workload_threads")
    assert exporter.scrape().rows("workload_connections", port=served)


@pytest.mark.parametrize("timeout", ["10", "9.5", "0", "-1", "x" * 1000, "1e-9", "nan"])
def test_any_other_timeout_changes_nothing(exporter, timeout):
    status, _, text = exporter.request(**{"X-Prometheus-Scrape-Timeout-Seconds": timeout})
    assert status == 200
    assert {value for _, value in Scrape(text).rows("workload_scrape_collector_success")} == {1}


def test_each_scrape_sees_what_happened_before_it(exporter, start, connect):
    server = start(Service, "pool_server")
    exporter.workload_of(server.port)
    for count in range(1, 21):
        client = connect(server.port)
        exchange(client)
        client.close()
        accepted = exporter.scrape().sum("workload_connections_accepted_total", port=server.port)
        assert accepted == count


def test_clients_that_ask_at_once_share_a_rendering(exporter, served, connect):
    clients = [connect(exporter.port) for _ in range(40)]
    exporter.scrape()  # by now all of them are accepted
    for client in clients:
        client.sendall(
            b"GET /metrics HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n"
        )
    answers = [b"".join(iter(lambda: client.recv(1 << 16), b"")) for client in clients]
    bodies = [answer.split(b"\r\n\r\n", 1)[1] for answer in answers]
    assert all(body.startswith(b"\x1f\x8b") for body in bodies)
    # Each rendering tells another duration of its own collectors. Those that come while others are
    # answered wait for the next.
    assert len(set(bodies)) <= 20, f"{len(set(bodies))} renderings for 40 requests"


# --- real servers --------------------------------------------------------------------------------


# What each Prometheus asks for in place of its own, and what it is told to be able to.
KINDS = {
    "text": (TEXT,),
    "openmetrics": (None,),
    "native": (None, "--enable-feature=native-histograms"),
}


@pytest.fixture(scope="module")
def scrapers(exporter, served, start_for_module, tmp_path_factory, request):
    """{(suite, kind): a Prometheus and its wire, or why not}. Each takes 5 s until it scrapes."""
    found = {}
    for suite in SUITES:
        for kind, (accept, *flags) in KINDS.items():
            wire = Wire(exporter.port, accept)
            request.addfinalizer(wire.stop)
            directory = tmp_path_factory.mktemp(f"{suite}-{kind}")
            try:
                prometheus = start_for_module(Scraper, directory, suite, wire.port, *flags)
                found[suite, kind] = SimpleNamespace(wire=wire, prometheus=prometheus)
            except Unavailable as why:
                found[suite, kind] = why
    return found


@pytest.fixture(params=SUITES)
def scraped(scrapers, request):
    """scraped(kind) is a Prometheus of the suite that scrapes the exporter over a wire."""

    def function(kind):
        found = scrapers[request.param, kind]
        if isinstance(found, Unavailable):
            pytest.skip(f"Prometheus of Debian's {request.param}: {found}")
        found.prometheus.wait_for_value("up == 1")
        return found

    return function


def check_classic(prometheus, served, exporter):
    """Counts and buckets are those of the exporter's own text."""
    rows = exporter.scrape().rows("workload_request_service_seconds_bucket", port=served)
    expected = {labels["le"]: value for labels, value in rows}
    prometheus.wait_for(
        f'workload_request_service_seconds_bucket{{port="{served}"}}',
        lambda stored: {labels["le"]: value for labels, value in stored} == expected,
    )


@pytest.mark.parametrize("kind, content_type", [("text", TEXT), ("openmetrics", OPENMETRICS)])
def test_prometheus_scrapes_both_text_formats(scraped, served, exporter, kind, content_type):
    at = scraped(kind)
    assert {sent for _, sent in at.wire.exchanges} == {content_type}
    check_classic(at.prometheus, served, exporter)
    at.prometheus.wait_for("scrape_samples_scraped > 100")


def test_prometheus_scrapes_native_histograms(scraped, served, exporter):
    at = scraped("native")
    assert {sent for _, sent in at.wire.exchanges} == {PROTOBUF}
    series = f'workload_request_service_seconds{{port="{served}"}}'
    value = at.prometheus.wait_for_value
    assert value(f"histogram_count({series})") == REQUESTS
    scrape = exporter.scrape()
    seconds = scrape.one("workload_request_service_seconds_sum", port=served)
    assert value(f"histogram_sum({series})") == seconds
    # At the bounds of the classic buckets, which are some of its own, it is exactly the same.
    for labels, count in scrape.rows("workload_request_service_seconds_bucket", port=served):
        if labels["le"] != "+Inf":
            share = value(f"histogram_fraction(0, {labels['le']}, {series})")
            assert share * REQUESTS == pytest.approx(count, abs=1e-6), labels["le"]
    median = value(f"histogram_quantile(0.5, {series})")
    assert BUCKET[0] < median <= BUCKET[1], "28 ms were served as a rule"


def test_histograms_without_observations_are_native_too(scraped, served):
    at = scraped("native")
    at.prometheus.wait_for_value(f'workload_connections{{port="{served}"}}')
    at.prometheus.wait_for("histogram_count(workload_mutex_wait_seconds) == 0")
