# SPDX-License-Identifier: Apache-2.0
"""Prometheus as a process of its own: configured, asked and stopped from outside."""

import http.client
import json
import subprocess
import sys
import time
import urllib.parse
from pathlib import Path

from exporter import BUILD, ROOT
from services import Process, free_port, wait_until

DASHBOARDS = ROOT / "dashboards"
TOOLS = BUILD / "dashboards"
READY_SECONDS = 30

# The same rules as an operator loads, with times that a test can wait for.
SHORT = {
    "rate": "10s", "stuck": "8s",
    "queue": "12s", "accept_queue": "3s", "threads": "5s",
    "exporter_down": "3s", "exporter_loss": "3s",
}  # fmt: skip
SHORT_STUCK_FOR = "2s"
RATE_INTERVAL = "10s"


def short_thresholds():
    """The text of dashboards/thresholds.toml with other times and nothing else changed."""
    lines, section = [], ""
    for line in (DASHBOARDS / "thresholds.toml").read_text().splitlines():
        if line.startswith("["):
            section = line.strip("[] ")
        name = line.split("=")[0].strip()
        if section in ("window", "for") and "=" in line and not line.startswith("#"):
            time_ = SHORT_STUCK_FOR if (section, name) == ("for", "stuck") else SHORT[name]
            line = f'{name} = "{time_}"'
        lines.append(line)
    return "\n".join(lines) + "\n"


def short_rules(directory):
    """Writes the rules with short times below @directory and returns their paths."""
    thresholds = directory / "thresholds.toml"
    thresholds.write_text(short_thresholds())
    subprocess.run(
        [sys.executable, ROOT / "scripts" / "dashboards"]
        + ["--thresholds", thresholds, "--output", directory],
        check=True,
    )
    return [directory / "rules" / "workload.yml", directory / "alerts" / "workload.yml"]


def scrape_config(job, targets, **more):
    return {"job_name": job, "static_configs": [{"targets": targets}], **more}


class Prometheus(Process):
    """Scrapes and evaluates once a second until stop()."""

    def __init__(self, directory, scrapes, rules=(), external_labels=None):
        self.port = free_port()
        self.log = directory / "prometheus.log"
        config = {
            "global": {
                "scrape_interval": "1s",
                "evaluation_interval": "1s",
                "external_labels": external_labels or {},
            },
            "rule_files": [str(path) for path in rules],
            "scrape_configs": scrapes,
        }
        path = directory / "prometheus.yml"
        path.write_text(json.dumps(config))  # JSON is YAML
        super().__init__(
            ["prometheus", f"--config.file={path}", f"--storage.tsdb.path={directory / 'data'}"]
            + [f"--web.listen-address=127.0.0.1:{self.port}"]
            + ["--enable-feature=exemplar-storage"],
            stdout=subprocess.DEVNULL,
            stderr=self.log.open("wb"),
        )
        wait_until(self._ready, READY_SECONDS, f"Prometheus did not start: see {self.log}")

    def _ready(self):
        try:
            return self._get("/-/ready")[0] == 200
        except OSError:
            return False

    def _get(self, path, **parameters):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("GET", f"{path}?{urllib.parse.urlencode(parameters)}")
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def api(self, what, **parameters):
        status, text = self._get(f"/api/v1/{what}", **parameters)
        answer = json.loads(text)
        assert answer["status"] == "success", f"{what} {parameters}: {status} {text}"
        return answer["data"]

    def query(self, expression, **parameters):
        """[(labels, value)] of an instant query."""
        result = self.api("query", query=expression, **parameters)["result"]
        return [(row["metric"], float(row["value"][1])) for row in result]

    def query_range(self, expression, start, end, step=1):
        return self.api("query_range", query=expression, start=start, end=end, step=step)["result"]

    def value(self, expression):
        """The one value of @expression; None if there is none."""
        rows = self.query(expression)
        assert len(rows) <= 1, rows
        return rows[0][1] if rows else None

    def wait_for(self, expression, holds=bool, seconds=60):
        """Asks until holds(rows) for the rows of @expression; returns them."""
        deadline = time.monotonic() + seconds
        while True:
            rows = self.query(expression)
            if holds(rows):
                return rows
            assert time.monotonic() < deadline, f"{expression}: never came true, last {rows}"
            time.sleep(0.25)

    def firing(self, **labels):
        """Names of the alerts that fire now, of series with these labels."""
        matchers = ", ".join(f'{name}="{value}"' for name, value in labels.items())
        rows = self.query(f'ALERTS{{alertstate="firing", {matchers}}}')
        return {row["alertname"] for row, _ in rows}

    def ever_fired(self, **labels):
        """Names of the alerts that have fired at any time of the last ten minutes."""
        matchers = ", ".join(f'{name}="{value}"' for name, value in labels.items())
        rows = self.query(f'max_over_time(ALERTS{{alertstate="firing", {matchers}}}[10m])')
        return {row["alertname"] for row, _ in rows}
