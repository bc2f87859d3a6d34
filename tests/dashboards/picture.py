# SPDX-License-Identifier: Apache-2.0
"""
Draws the dashboards as a browser shows them, from a real Prometheus that scrapes a real exporter:

    python3 tests/dashboards/picture.py DIRECTORY    (`make pictures`)

Some services are put under changing load for two minutes; what every panel asks is asked then, laid
out as in Grafana and drawn with uPlot in headless Chromium.
"""

import json
import math
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "live"))

import panels
from exporter import Exporter
from prometheus import Prometheus, scrape_config
from services import SCRATCH, Load, Service
from shortened import TOOLS, short_rules

WIDTH = 1592
CELL_HEIGHT = 32
HEAD_HEIGHT = 64
STEP_SECONDS = 1
# (seconds, clients of the service `shop`)
PHASES = ((35, 5), (45, 26), (35, 5))
SHOP = "shop"
LEFT_OUT = 12  # seconds at the start, until rates are whole


class Stage:
    """The services, and who watches them."""

    def __init__(self, directory):
        self.running = []
        self.names = []
        self.exporter = self._start(Exporter)
        self.prometheus = self._start(
            Prometheus,
            directory,
            [scrape_config("workload", [f"127.0.0.1:{self.exporter.port}"])],
            short_rules(directory),
        )

    def _start(self, kind, *arguments, **options):
        self.running.append(kind(*arguments, **options))
        return self.running[-1]

    def _serve(self, name, clients, program="pool_server", rate=0, prefix=(), **options):
        server = self._start(Service, program, name=name, prefix=prefix, **options)
        self.names.append(name)
        if clients:
            self._start(Load, server.port, clients=clients, rate=rate, keep_alive=1)
        return server

    def play(self):
        """Returns the time span to draw."""
        self._serve("catalog", 8, workers=12, service_us=3000, rate=300)
        bank = self._serve("bank", 0, workers=16, service_us=150000)
        self._serve("payments", 8, workers=12, upstream_port=bank.port)
        self._serve("inventory", 6, workers=8, lock_us=4000, service_us=2000)
        self._serve("thumbnails", 5, workers=6, busy_us=20000, prefix=["taskset", "-c", "0"])
        journal = self._serve("journal", 0, "syncer", threads=1, directory=SCRATCH)
        journal.ask("start")
        shop = self._serve(
            SHOP, 0, workers=8, mode="queue", service_us=30000, busy_us=200, lock_us=4500
        )
        time.sleep(2)
        begin = time.time()
        for seconds, clients in PHASES:
            load = self._start(Load, shop.port, clients=clients)
            time.sleep(seconds)
            load.stop()
        end = time.time() - 1
        self.stop(all_but=self.prometheus)
        return begin + LEFT_OUT, end

    def stop(self, all_but=None):
        for process in reversed(self.running):
            if process is not all_but:
                process.stop()
        self.running = [process for process in self.running if process is all_but]


def legend(target, labels):
    text = target["legendFormat"]
    if text == "__auto":
        return ", ".join(f"{k}={v}" for k, v in labels.items())
    for name, value in labels.items():
        text = text.replace(f"{{{{{name}}}}}", value)
    return text


def number(value):
    return None if math.isnan(value) else value


class Dashboard:
    """A dashboard's panels with what Prometheus answers to their queries."""

    def __init__(self, prometheus, name, span, rows=None, **values):
        self.prometheus, self.values = prometheus, values
        self.begin, self.end = span
        self.times = [self.begin + i for i in range(int(self.end - self.begin))]
        made = panels.load(name)
        self.content = {
            "title": made["title"],
            "subtitle": made["description"],
            "panels": [self._filled(panel) for panel in self._repeated(made["panels"], rows)],
        }

    def _pools(self):
        query = panels.substitute(
            'group by (pool) (workload_threads{workload=~"$workload"})', **self.values
        )
        found = self.prometheus.query(query, time=self.end)
        return sorted(labels["pool"] for labels, _ in found)

    def _repeated(self, found, rows):
        """Repeated panels as Grafana repeats them; only the sections @rows, if given."""
        shown, down, keep = [], 0, True
        for panel in found:
            place = panel["gridPos"]
            if panel["type"] == "row":
                keep = rows is None or panel["title"] in rows
            if not keep:
                down -= place["h"] if place["x"] == 0 else 0
                continue
            place["y"] += down
            if "repeat" not in panel:
                shown.append((panel, self.values))
                continue
            for index, pool in enumerate(self._pools()[: panel["maxPerRow"]]):
                width = 24 // min(panel["maxPerRow"], len(self._pools()))
                copy = json.loads(json.dumps(panel))
                copy["title"] = panel["title"].replace("$pool", pool)
                copy["gridPos"].update(x=index * width, w=width)
                shown.append((copy, {**self.values, "pool": pool}))
        return shown

    def _filled(self, panel_and_values):
        panel, values = panel_and_values
        if panel["type"] == "table":
            self._fill_table(panel, values)
        elif panel["type"] != "row":
            panel["times"] = self.times
            panel["frames"] = [
                frame for target in panel["targets"] for frame in self._frames(target, values)
            ]
        if panel["type"] == "heatmap":
            panel["frames"].sort(key=lambda frame: float(frame["name"]))
        return panel

    def _frames(self, target, values):
        expression = panels.substitute(target["expr"], **values)
        if target["instant"]:
            found = self.prometheus.query(expression, time=self.end)
            return [{"name": legend(target, labels), "values": [number(value)]}
                    for labels, value in found]  # fmt: skip
        found = self.prometheus.query_range(expression, self.begin, self.end, STEP_SECONDS)
        return [self._frame(target, row) for row in found]

    def _frame(self, target, row):
        known = {round(at): number(float(value)) for at, value in row["values"]}
        values = [known.get(round(at)) for at in self.times]
        return {"name": legend(target, row["metric"]), "values": values}

    def _fill_table(self, panel, values):
        """Joins the answers by their common label, as the panel's transformations say."""
        joined = {}
        transformation = panel["transformations"][0]
        several = transformation["id"] == "joinByField"
        for target in panel["targets"]:
            expression = panels.substitute(target["expr"], **values)
            for labels, value in self.prometheus.query(expression, time=self.end):
                key = labels[transformation["options"]["byField"]] if several else len(joined)
                name = f"Value #{target['refId']}" if several else "Value"
                joined.setdefault(key, {}).update({**labels, name: number(value)})
        panel["columns"] = [_column(override) for override in panel["fieldConfig"]["overrides"]]
        rows = [[row.get(column["name"]) for column in panel["columns"]] for row in joined.values()]
        titles = [column["title"] for column in panel["columns"]]
        first = titles.index(panel["options"]["sortBy"][0]["displayName"])
        panel["rows"] = sorted(rows, key=lambda row: row[first] or 0, reverse=True)

    def height(self):
        places = [panel["gridPos"] for panel in self.content["panels"]]
        return HEAD_HEIGHT + CELL_HEIGHT * max(place["y"] + place["h"] for place in places)


def _column(override):
    properties = {entry["id"]: entry["value"] for entry in override["properties"]}
    return {
        "name": override["matcher"]["options"],
        "title": properties["displayName"],
        "unit": properties.get("unit", "short"),
        "steps": properties.get("thresholds", {}).get("steps"),
    }


def draw(dashboard, path):
    """Writes the picture, as small as a palette makes it."""
    plot = TOOLS / "node_modules" / "uplot" / "dist"
    parts = [
        "<!DOCTYPE html><meta charset=utf-8>",
        f"<style>{(plot / 'uPlot.min.css').read_text()}{(HERE / 'picture.css').read_text()}</style>",
        f"<body><script>{(plot / 'uPlot.iife.min.js').read_text()}</script>",
        f"<script>const dashboard = {json.dumps(dashboard.content)};</script>",
        f"<script>{(HERE / 'picture.js').read_text()}</script>",
    ]
    page = path.with_suffix(".html")
    page.write_text("\n".join(parts))
    subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        + [f"--window-size={WIDTH},{dashboard.height()}", "--virtual-time-budget=5000"]
        + [f"--user-data-dir={path.parent / 'chromium'}", f"--screenshot={path}", page.as_uri()],
        check=True,
        capture_output=True,
    )
    subprocess.run(
        ["pngquant", "--force", "--speed=1", "--strip", "--output", path, "64", path], check=True
    )


def main():
    output = Path(sys.argv[1]).resolve()
    output.mkdir(parents=True, exist_ok=True)
    directory = Path(tempfile.mkdtemp())
    stage = Stage(directory)
    try:
        span = stage.play()
        ask = stage.prometheus
        busy = (span[0], span[0] - LEFT_OUT + sum(seconds for seconds, _ in PHASES[:2]) - 1)
        own = "|".join(stage.names)
        draw(Dashboard(ask, "overview", busy, workload=own), output / "overview.png")
        draw(
            Dashboard(ask, "workload", span, ("Requests", "Threads"), workload=SHOP),
            output / "workload.png",
        )
        draw(Dashboard(ask, "workload", span, workload=own), output / "workload-all.png")
        draw(Dashboard(ask, "exporter", span), output / "exporter.png")
    finally:
        stage.stop()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
