# SPDX-License-Identifier: Apache-2.0
"""
Writes the dashboards, recording rules and alerts under dashboards/, or tells whether they are up
to date. Tests write the rules elsewhere, with shorter times.
"""

import argparse
import json
import sys
from pathlib import Path

sys.dont_write_bytecode = True

import exporter
import overview
import rules
import workload

ROOT = Path(__file__).resolve().parents[2]
DASHBOARDS = ROOT / "dashboards"


def as_json(dashboard):
    return json.dumps(dashboard, indent=2) + "\n"


def outputs(thresholds):
    """Path below dashboards/ -> text."""
    return {
        "overview.json": as_json(overview.make()),
        "workload.json": as_json(workload.make(rules.values(thresholds)["scheme"])),
        "exporter.json": as_json(exporter.make()),
        "rules/workload.yml": rules.recording(thresholds),
        "alerts/workload.yml": rules.alerts(thresholds),
    }


def stale(made, directory):
    for name, text in made.items():
        path = directory / name
        if not path.exists() or path.read_text() != text:
            yield path


def main():
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--check", action="store_true", help="write nothing, fail if it is stale")
    parser.add_argument("--thresholds", type=Path, default=DASHBOARDS / "thresholds.toml")
    parser.add_argument("--output", type=Path, default=DASHBOARDS)
    options = parser.parse_args()
    made = outputs(options.thresholds.read_text())
    if options.check:
        found = list(stale(made, options.output))
        for path in found:
            print(f"{path} is stale: run `make dashboards`", file=sys.stderr)
        return 1 if found else 0
    for name, text in made.items():
        path = options.output / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
