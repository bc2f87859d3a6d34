# SPDX-License-Identifier: Apache-2.0
"""Prometheus as a process of its own: configured, asked and stopped from outside."""

import http.client
import json
import subprocess
import time
import urllib.parse

from services import Process, free_port, wait_until

READY_SECONDS = 60


def scrape_config(job, targets, **more):
    return {"job_name": job, "static_configs": [{"targets": targets}], **more}


class Prometheus(Process):
    """
    Scrapes and evaluates once a second until stop(). @program is its path, @flags are more of its
    flags.
    """

    def __init__(
        self,
        directory,
        scrapes,
        rules=(),
        external_labels=None,
        program="prometheus",
        flags=("--enable-feature=exemplar-storage",),
    ):
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
        with self.log.open("wb") as log:
            super().__init__(
                [program, f"--config.file={path}", f"--storage.tsdb.path={directory / 'data'}"]
                + [f"--web.listen-address=127.0.0.1:{self.port}", *flags],
                stdout=subprocess.DEVNULL,
                stderr=log,
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

    def why_down(self):
        """What it says about its last scrape of the only target; empty if that was good."""
        (target,) = self.api("targets")["activeTargets"]
        return target["lastError"]
