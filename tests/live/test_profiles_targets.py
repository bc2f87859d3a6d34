# SPDX-License-Identifier: Apache-2.0
"""
The page of targets, as service discovery reads it: by Prometheus, whose code for it others share.
"""

import json
from urllib.parse import parse_qs, urlsplit

from profiles import ask, take_pprof
from prometheus import Prometheus
from services import Service, wait_until

PATH = "/debug/targets"
SECONDS = 30


def test_prometheus_finds_each_service_and_would_take_its_profile(profiling, start, tmp_path):
    burner, other = (start(Service, "burner") for _ in range(2))
    for service in burner, other:
        profiling.workload_of(service.port)
    discovery = {
        "job_name": "profiles",
        "scrape_interval": "1h",
        "http_sd_configs": [
            {"url": f"http://127.0.0.1:{profiling.port}{PATH}", "refresh_interval": "1s"}
        ],
        "metrics_path": "/debug/pprof/profile",
        "params": {"seconds": ["1"]},
    }
    prometheus = start(Prometheus, tmp_path, [discovery])

    def found():
        active = prometheus.api("targets")["activeTargets"]
        return {target["labels"]["service_name"]: target["scrapeUrl"] for target in active}

    wait_until(lambda: {burner.name, other.name} <= found().keys(), SECONDS, "it finds neither")
    url = urlsplit(found()[burner.name])
    assert url.netloc == f"127.0.0.1:{profiling.port}"
    assert parse_qs(url.query) == {"seconds": ["1"], "workload": [burner.name]}
    arguments = {name: value for name, (value,) in parse_qs(url.query).items()}
    assert take_pprof(profiling, path=url.path, **arguments).workloads == {burner.name}
    other.stop()
    wait_until(lambda: other.name not in found(), SECONDS, "it is found although it has ended")


def test_the_address_is_that_by_which_it_was_asked(profiling, start):
    burner = start(Service, "burner")
    profiling.workload_of(burner.port)
    status, headers, body = ask(profiling.port, PATH)
    assert (status, headers["Content-Type"]) == (200, "application/json")
    (mine,) = (row for row in json.loads(body) if row["labels"]["service_name"] == burner.name)
    assert mine["targets"] == [f"127.0.0.1:{profiling.port}"]
    assert mine["labels"]["__param_workload"] == burner.name
    status, _, body = profiling.request(PATH, Host="a b")
    assert status == 400, body
