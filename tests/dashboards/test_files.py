# SPDX-License-Identifier: Apache-2.0
"""What is committed is up to date, valid by the schemas of those who read it, and complete."""

import json
import re
import subprocess
import sys

import pytest
import yaml

import panels
from exporter import ROOT
from shortened import DASHBOARDS, TOOLS

KUBERNETES = ROOT / "scripts" / "kubernetes"
METRIC = re.compile(r"\b(?:workload|process)_\w+")
SUFFIX = re.compile(r"_(bucket|sum|count)$")
WINDOW = re.compile(r"\[([^]]+)\]")
# Of whom the panels tell something else already.
VARIABLES = ["datasource", "cluster", "job", "instance", "workload"]
# Prometheus' own, about a scrape.
FOREIGN = {"workload_exporter"}


def run(*command, text=None, **options):
    """What a tool answers; a failure shows what it said."""
    done = subprocess.run(
        [str(word) for word in command],
        input=text,
        capture_output=True,
        text=True,
        check=False,
        **options,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def alerts():
    groups = yaml.safe_load((DASHBOARDS / "alerts" / "workload.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def recording_rules():
    groups = yaml.safe_load((DASHBOARDS / "rules" / "workload.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def families():
    return set(run(sys.executable, ROOT / "scripts" / "metric_table.py", "--names").split())


def all_expressions():
    found = [query.expression for query in panels.queries()]
    return found + [rule["expr"] for rule in alerts() + recording_rules()]


def family_of(name):
    return SUFFIX.sub("", name)


def metrics_in(expression):
    """The metrics of this project that an expression reads."""
    without_labels = re.sub(r'"[^"]*"', "", expression)
    recorded = re.compile(r"\b\w+:\w+:\w+")
    return {
        name
        for name in METRIC.findall(recorded.sub("", without_labels))
        if name not in FOREIGN
    }


def test_generated_files_are_up_to_date():
    run(sys.executable, ROOT / "scripts" / "dashboards", "--check")


@pytest.mark.parametrize("name", panels.NAMES)
def test_dashboard_is_what_grafana_expects(name, tmp_path):
    source = TOOLS / f"{name}.checked.ts"
    source.write_text(
        'import type { Checked } from "./types";\n'
        f"export const dashboard: Checked = {json.dumps(panels.load(name))};\n"
    )
    run(
        TOOLS / "node_modules" / ".bin" / "tsc",
        *("--noEmit", "--strict", "--skipLibCheck", "--module", "esnext"),
        *("--moduleResolution", "bundler", "--target", "esnext", source),
    )


def test_every_expression_is_promql():
    answer = run("node", TOOLS / "parse.mjs", text=json.dumps(all_expressions()))
    assert json.loads(answer) == []
    broken = ["sum by (", "rate(x[5m]"]
    assert json.loads(run("node", TOOLS / "parse.mjs", text=json.dumps(broken))) == broken


def test_every_metric_that_is_used_exists():
    known = families()
    unknown = {
        (name, expression)
        for expression in all_expressions()
        for name in metrics_in(expression)
        if family_of(name) not in known and name not in known
    }
    assert not unknown


def test_every_metric_is_shown_somewhere():
    shown = {
        family_of(name) for query in panels.queries() for name in metrics_in(query.expression)
    }
    assert families() - shown == set()


@pytest.mark.parametrize("name", panels.NAMES)
def test_dashboard_keeps_the_conventions(name):
    dashboard = panels.load(name)
    assert dashboard["uid"] and dashboard["tags"] and dashboard["editable"] is False
    assert 39 <= dashboard["schemaVersion"] <= 42
    assert dashboard["graphTooltip"] == 1 and dashboard["refresh"] == "30s"
    variables = [variable["name"] for variable in dashboard["templating"]["list"]]
    assert variables[: len(VARIABLES)] == VARIABLES[: len(variables)]


@pytest.mark.parametrize("name", panels.NAMES)
def test_every_panel_explains_itself(name):
    for panel in panels.panels(panels.load(name)):
        assert panel["title"] and panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert panel["datasource"]["uid"] == "${datasource}"


def test_windows_follow_the_scrape_interval():
    for name in panels.NAMES:
        for panel in panels.panels(panels.load(name)):
            for target in panel["targets"]:
                assert set(WINDOW.findall(target["expr"])) <= {"$__rate_interval"}, target["expr"]


def test_where_latency_is_shown_exemplars_are_on():
    for name in panels.NAMES:
        for panel in panels.panels(panels.load(name)):
            for target in panel["targets"]:
                if "_seconds_bucket" in target["expr"] and panel["type"] != "table":
                    assert target["exemplar"], panel["title"]


@pytest.mark.parametrize("name", panels.NAMES)
def test_panels_do_not_overlap(name):
    taken, ids = set(), []
    for panel in panels.load(name)["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24 and not cells & taken, panel["title"]
        taken |= cells
        ids.append(panel["id"])
    assert len(ids) == len(set(ids))


def test_rules_are_accepted_by_prometheus():
    run("promtool", "check", "rules", DASHBOARDS / "rules/workload.yml",
        DASHBOARDS / "alerts/workload.yml")  # fmt: skip
    run("promtool", "check", "config", DASHBOARDS / "prometheus.yml")
    run("promtool", "check", "config", DASHBOARDS / "prometheus-global.yml")


def test_alerts_fire_on_the_series_that_they_are_about():
    run("promtool", "test", "rules", ROOT / "tests" / "dashboards" / "alerts.test.yml")


def test_every_alert_has_a_unit_test():
    text = (ROOT / "tests" / "dashboards" / "alerts.test.yml").read_text()
    tested = {
        case["alertname"]
        for test in yaml.safe_load(text)["tests"]
        for case in test["alert_rule_test"]
        if case.get("exp_alerts")
    }
    assert {rule["alert"] for rule in alerts()} - tested == set()


def test_every_alert_says_what_to_do():
    runbook = (DASHBOARDS / "RUNBOOK.md").read_text()
    for rule in alerts():
        name = rule["alert"]
        assert re.fullmatch(r"Workload([A-Z][a-z]+)+", name)
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert rule["for"] and rule["annotations"]["summary"] and rule["annotations"]["description"]
        assert rule["annotations"]["runbook_url"].endswith(f"/RUNBOOK.md#{name.lower()}")
        section = runbook.split(f"\n## {name}\n")[1].split("\n## ")[0]
        for part in ("**Means.**", "**Confirm.**", "**Do.**"):
            assert part in section, (name, part)


def test_runbook_explains_every_way_to_lose_a_measurement():
    text = (ROOT / "bpf" / "abi" / "drops.h").read_text()
    reasons = re.findall(r"DROP\(\w+,\s*\"(\w+)\"", text)
    runbook = (DASHBOARDS / "RUNBOOK.md").read_text()
    assert len(reasons) > 10
    assert [reason for reason in reasons if f"`{reason}`" not in runbook] == []


def test_recorded_names_say_level_metric_and_operation():
    for rule in recording_rules():
        level, metric, operation = rule["record"].split(":")
        assert level in ("workload", "workload_port", "workload_pool")
        assert metric.startswith("workload_") and operation


def kubernetes_objects():
    for path in sorted(KUBERNETES.glob("*.yml")):
        yield from yaml.safe_load_all(path.read_text())


def faults_of(objects):
    return json.loads(run("node", TOOLS / "kubernetes.mjs", text=json.dumps(objects)))


def test_kubernetes_objects_are_valid():
    objects = list(kubernetes_objects())
    assert {o["kind"] for o in objects} >= {"DaemonSet", "Service", "ServiceMonitor"}
    assert faults_of(objects) == []


def test_a_wrong_kubernetes_object_is_noticed():
    for made in kubernetes_objects():
        if made["kind"] in ("DaemonSet", "ServiceMonitor"):
            made["spec"]["selector"] = "none"
            assert faults_of([made])


def test_the_daemon_has_the_least_privileges():
    (made,) = [o for o in kubernetes_objects() if o["kind"] == "DaemonSet"]
    pod = made["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    rights = container["securityContext"]
    assert pod["hostPID"] and not pod["automountServiceAccountToken"]
    assert "hostNetwork" not in pod and "volumes" not in pod
    assert rights["capabilities"] == {"drop": ["ALL"], "add": ["BPF", "PERFMON", "SYS_PTRACE"]}
    assert rights["readOnlyRootFilesystem"] and not rights["privileged"]


def test_provisioning_names_what_there_is():
    (source,) = yaml.safe_load((DASHBOARDS / "grafana/datasource.yml").read_text())["datasources"]
    (provider,) = yaml.safe_load((DASHBOARDS / "grafana/dashboards.yml").read_text())["providers"]
    assert source["type"] == "prometheus" and source["url"]
    assert provider["type"] == "file" and provider["options"]["path"]
