# SPDX-License-Identifier: Apache-2.0
"""The rules of dashboards/ as an operator loads them, with times that a test can wait for."""

import subprocess
import sys

from exporter import BUILD, ROOT

DASHBOARDS = ROOT / "dashboards"
TOOLS = BUILD / "dashboards"

SHORT = {
    "rate": "10s", "stuck": "8s", "hung": "20s", "usual": "5m",
    "queue": "12s", "accept_queue": "3s", "threads": "5s",
    "exporter_down": "3s", "exporter_loss": "3s",
}  # fmt: skip
SHORT_FOR = {"stuck": "2s", "hung": "3s"}
RATE_INTERVAL = "10s"


def short_thresholds():
    """The text of dashboards/thresholds.toml with other times and nothing else changed."""
    lines, section = [], ""
    for line in (DASHBOARDS / "thresholds.toml").read_text().splitlines():
        if line.startswith("["):
            section = line.strip("[] ")
        name = line.split("=")[0].strip()
        if section in ("window", "for") and "=" in line and not line.startswith("#"):
            short = SHORT_FOR if section == "for" else SHORT
            line = f'{name} = "{short.get(name) or SHORT[name]}"'
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
