# SPDX-License-Identifier: Apache-2.0
"""What a dashboard asks, with Grafana's variables replaced as Grafana would."""

import json
import re
import urllib.parse
from collections import namedtuple

from shortened import DASHBOARDS, RATE_INTERVAL

NAMES = ("overview", "workload", "exporter")
FIELD = re.compile(r"\$\{__data\.fields\.(\w+)(?::(raw|percentencode))?\}")
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


def links(table, row):
    """Where the links of a table's columns lead to from a row with these labels, as Grafana says."""

    def value(match):
        return urllib.parse.quote(row[match[1]], safe="") if match[2] == "percentencode" else row[match[1]]

    properties = [each for over in table["fieldConfig"]["overrides"] for each in over["properties"]]
    found = [link["url"] for each in properties if each["id"] == "links" for link in each["value"]]
    return [FIELD.sub(value, url) for url in found]


def queries(**values):
    """Every query of every panel of every dashboard."""
    for name in NAMES:
        for panel in panels(load(name)):
            for target in panel["targets"]:
                expression = substitute(target["expr"], **values)
                yield Query(name, panel["title"], expression, target["instant"])
