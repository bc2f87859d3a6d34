# SPDX-License-Identifier: Apache-2.0
"""What a dashboard asks, with Grafana's variables replaced as Grafana would."""

import json
import re
from collections import namedtuple

from shortened import DASHBOARDS, RATE_INTERVAL

NAMES = ("overview", "workload", "exporter")
VARIABLE = re.compile(r"\$(\w+)|\$\{(\w+)\}")

Query = namedtuple("Query", "dashboard panel expression instant")


def load(name):
    return json.loads((DASHBOARDS / f"{name}.json").read_text())


def panels(dashboard):
    """All panels but rows."""
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def substitute(expression, **values):
    """@expression with every variable replaced; those without a value here are All."""
    known = {"__rate_interval": RATE_INTERVAL, "cluster": ".*", **values}
    return VARIABLE.sub(lambda match: known.get(match[1] or match[2], ".+"), expression)


def queries(**values):
    """Every query of every panel of every dashboard."""
    for name in NAMES:
        for panel in panels(load(name)):
            for target in panel["targets"]:
                expression = substitute(target["expr"], **values)
                yield Query(name, panel["title"], expression, target["instant"])
