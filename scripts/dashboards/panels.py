# SPDX-License-Identifier: Apache-2.0
"""Grafana's JSON for the kinds of panels that the dashboards use, and where panels lie."""

SCHEMA_VERSION = 41
COLUMNS = 24
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}

# A thread is coloured alike wherever its state is shown: grey where it waits for work.
STATE_COLORS = {
    "running": "green",
    "runnable": "orange",
    "lock": "red",
    "disk": "purple",
    "network": "blue",
    "wait": "light-blue",
    "sleep": "light-yellow",
    "idle": "#808080",
}


def target(expr, legend="__auto", instant=False, form="time_series", exemplar=False):
    """A query. @expr is PromQL; @form is how Grafana shapes the answer."""
    return {
        "datasource": DATASOURCE,
        "editorMode": "code",
        "expr": expr,
        "legendFormat": legend,
        "instant": instant,
        "range": not instant,
        "format": form,
        "exemplar": exemplar,
    }


def thresholds(*steps):
    """Colours from values on: thresholds(("green", None), ("red", 1))."""
    return {
        "mode": "absolute",
        "steps": [{"color": color, "value": value} for color, value in steps],
    }


def panel(kind, title, description, targets, unit, options, **defaults):
    """What all kinds have in common; @defaults go to the field configuration."""
    for ref, query in zip("ABCDEFGHIJKLMNOPQRSTUVWXYZ", targets):
        query["refId"] = ref
    return {
        "type": kind,
        "title": title,
        "description": description,
        "datasource": DATASOURCE,
        "targets": targets,
        "fieldConfig": {"defaults": {"unit": unit, **defaults}, "overrides": []},
        "options": options,
    }


def color_override(name, color):
    return {
        "matcher": {"id": "byName", "options": name},
        "properties": [{"id": "color", "value": {"mode": "fixed", "fixedColor": color}}],
    }


def timeseries(title, description, targets, unit, stacked=False, limit=None):
    """Lines over time. @stacked: areas that add up; @limit: the axis ends there."""
    custom = {
        "drawStyle": "line",
        "lineInterpolation": "linear",
        "lineWidth": 1,
        "fillOpacity": 60 if stacked else 8,
        "showPoints": "never",
        "spanNulls": False,
        "stacking": {"mode": "normal" if stacked else "none", "group": "A"},
    }
    made = panel(
        "timeseries",
        title,
        description,
        targets,
        unit,
        {
            "legend": {
                "displayMode": "table",
                "placement": "bottom",
                "showLegend": True,
                "calcs": ["lastNotNull", "max"],
            },
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        custom=custom,
        min=0,
        color={"mode": "palette-classic"},
    )
    if limit is not None:
        made["fieldConfig"]["defaults"]["max"] = limit
    return made


def states(title, description, targets, unit="short"):
    """Stacked thread states, each in its own colour."""
    made = timeseries(title, description, targets, unit, stacked=True)
    made["fieldConfig"]["overrides"] = [color_override(*row) for row in STATE_COLORS.items()]
    return made


def heatmap(title, description, expr, unit="s"):
    """How a distribution moves; @expr is a rate of buckets by (le)."""
    return panel(
        "heatmap",
        title,
        description,
        [target(expr, "{{le}}", form="heatmap", exemplar=True)],
        unit,
        {
            "calculate": False,
            "cellGap": 1,
            "color": {
                "mode": "scheme",
                "scheme": "Oranges",
                "scale": "exponential",
                "exponent": 0.5,
                "steps": 64,
                "reverse": False,
                "fill": "dark-orange",
            },
            "exemplars": {"color": "rgba(255,0,255,0.7)"},
            "filterValues": {"le": 1e-9},
            "legend": {"show": True},
            "rowsFrame": {"layout": "auto"},
            "tooltip": {"mode": "single", "yHistogram": True, "showColorScale": False},
            "yAxis": {"axisPlacement": "left", "reverse": False, "unit": unit},
        },
        custom={"hideFrom": {"legend": False, "tooltip": False, "viz": False}},
    )


def stat(title, description, expr, unit, steps):
    """One number, coloured by the thresholds @steps."""
    return panel(
        "stat",
        title,
        description,
        [target(expr, instant=True)],
        unit,
        {
            "colorMode": "value",
            "graphMode": "none",
            "justifyMode": "auto",
            "orientation": "auto",
            "textMode": "auto",
            "wideLayout": True,
            "showPercentChange": False,
            "percentChangeColorMode": "standard",
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        },
        thresholds=thresholds(*steps),
        color={"mode": "thresholds"},
    )


def column(name, title, unit=None, steps=None, links=(), width=None):
    """How the table shows the field @name: see table(). @links: (title, address) of each."""
    properties = [{"id": "displayName", "value": title}]
    if unit:
        properties.append({"id": "unit", "value": unit})
    if steps:
        properties.append({"id": "thresholds", "value": thresholds(*steps)})
        properties.append(
            {"id": "custom.cellOptions", "value": {"type": "color-background", "mode": "basic"}}
        )
    if links:
        value = [
            {"title": text, "url": url, "targetBlank": not url.startswith("/")} for text, url in links
        ]
        properties.append({"id": "links", "value": value})
    if width:
        properties.append({"id": "custom.width", "value": width})
    return {"matcher": {"id": "byName", "options": name}, "properties": properties}


def table(title, description, queries, key, columns, sort):
    """
    One row for each value of the label @key. @queries are instant queries, @columns are made with
    column() and say which fields are shown and in which order, @sort is the title of the column
    whose largest value comes first.
    """
    names = [entry["matcher"]["options"] for entry in columns]
    made = panel(
        "table",
        title,
        description,
        [target(expr, instant=True, form="table") for expr in queries],
        "short",
        {
            "cellHeight": "sm",
            "showHeader": True,
            "sortBy": [{"displayName": sort, "desc": True}],
        },
        custom={"align": "auto", "cellOptions": {"type": "auto"}, "inspect": False},
        decimals=2,
    )
    made["transformations"] = [
        {"id": "joinByField", "options": {"byField": key, "mode": "outer"}}
        if len(queries) > 1
        else {"id": "merge", "options": {}},
        {"id": "filterFieldsByName", "options": {"include": {"names": names}}},
        {
            "id": "organize",
            "options": {
                "indexByName": {name: index for index, name in enumerate(names)},
                "excludeByName": {},
                "renameByName": {},
            },
        },
    ]
    made["fieldConfig"]["overrides"] = columns
    return made


def repeated(made, variable, per_row):
    """The panel once for each value of @variable."""
    made.update(repeat=variable, repeatDirection="h", maxPerRow=per_row)
    return made


def _row(title, y):
    return {
        "type": "row",
        "title": title,
        "collapsed": False,
        "gridPos": {"h": 1, "w": COLUMNS, "x": 0, "y": y},
        "panels": [],
    }


def layout(sections):
    """
    The panels of a dashboard from [(title or None, [(height, [panels side by side]), ...]), ...].
    """
    placed, y = [], 0
    for title, lines in sections:
        if title:
            placed.append(_row(title, y))
            y += 1
        for height, line in lines:
            width = COLUMNS // len(line)
            for index, made in enumerate(line):
                made["gridPos"] = {"h": height, "w": width, "x": index * width, "y": y}
                placed.append(made)
            y += height
    for number, made in enumerate(placed, start=1):
        made["id"] = number
    return placed


def query_variable(name, label, query, all_value=".+"):
    """A variable with the values of a label; everything unless told otherwise."""
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": DATASOURCE,
        "query": {"query": query, "refId": f"variable-{name}"},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": all_value,
        "current": {"text": ["All"], "value": ["$__all"]},
        "options": [],
    }


def variables(*names):
    """The variables in the order that dashboards of this kind have, down to the last of @names."""
    scope = 'cluster=~"$cluster", job=~"$job"'
    known = {
        # Without a `cluster` label ".+" would match nothing.
        "cluster": ("label_values(workload_exporter_build_info, cluster)", ".*"),
        "job": ('label_values(workload_exporter_build_info{cluster=~"$cluster"}, job)', ".+"),
        "instance": (f"label_values(workload_exporter_build_info{{{scope}}}, instance)", ".+"),
        "workload": (
            f'label_values(workload_processes{{{scope}, instance=~"$instance"}}, workload)',
            ".+",
        ),
        "pool": (
            f'label_values(workload_threads{{{scope}, instance=~"$instance", '
            'workload=~"$workload"}, pool)',
            ".+",
        ),
        "role": (
            f'label_values(workload_threads{{{scope}, instance=~"$instance", '
            'workload=~"$workload"}, role)',
            ".+",
        ),
    }
    datasource = {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
        "refresh": 1,
        "regex": "",
        "multi": False,
        "includeAll": False,
        "options": [],
    }
    return [datasource] + [
        query_variable(name, name.capitalize(), *known[name]) for name in names
    ]


def dashboard(uid, title, description, names, sections):
    """A whole dashboard, linked with the others of this project by their tag."""
    return {
        "uid": uid,
        "title": title,
        "description": description,
        "tags": ["workload_exporter"],
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "editable": False,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": variables(*names)},
        "annotations": {"list": []},
        "links": [
            {
                "type": "dashboards",
                "title": "Dashboards",
                "tooltip": "",
                "icon": "external link",
                "url": "",
                "tags": ["workload_exporter"],
                "asDropdown": False,
                "includeVars": True,
                "keepTime": True,
                "targetBlank": False,
            }
        ],
        "panels": layout(sections),
    }
