#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the metric table of dashboards/README.md from metrics.def, the one list of metrics."""

import argparse
import re

import definitions
from definitions import DefinitionError, rows, string


def row_labels(text):
    """Row set -> names of its labels."""
    return {
        row[0]: [re.match(r"LABEL\(\s*\w+\s*,\s*(\w+)\s*\)$", label).group(1) for label in row[2:]]
        for row in rows(text, "ROWS", "ROW")
    }


def view_label(text):
    """View -> the label it adds, or None."""
    labels = {}
    for view, _type, *settings in rows(text, "VIEW"):
        found = [s for s in settings if re.match(r"\.label\s*=", s)]
        labels[view] = string(found[0]) if found else None
    return labels


def families(text):
    """(name, type, labels, help) of each family, in order."""
    labels, extra = row_labels(text), view_label(text)
    for name, kind, row_set, _member, view, meaning in rows(text, "METRIC"):
        if row_set not in labels or view not in extra:
            raise DefinitionError(f"{name}: unknown rows {row_set} or view {view}")
        own = labels[row_set] + ([extra[view]] if extra[view] else [])
        yield name, kind.lower(), own, string(meaning)


def table(found):
    lines = ["| metric | type | labels | meaning |", "| --- | --- | --- | --- |"]
    for name, kind, labels, meaning in found:
        shown = ", ".join(f"`{label}`" for label in labels)
        lines.append(f"| `{name}` | {kind} | {shown} | {definitions.cell(meaning)} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    what = parser.add_mutually_exclusive_group(required=True)
    definitions.add_file_options(what)
    what.add_argument("--names", action="store_true", help="print the names of all families")
    options = parser.parse_args()
    found = list(families(definitions.read("exporter/model/metrics.def")))
    if options.names:
        print("\n".join(name for name, *_ in found))
        return 0
    return definitions.keep(options, "metrics", table(found))


if __name__ == "__main__":
    definitions.run(main)
