#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the README's metric table from exporter/metrics.def, the one list of metrics."""

import argparse
import pathlib
import re
import sys

DEFINITIONS = pathlib.Path(__file__).resolve().parent.parent / "exporter" / "metrics.def"
BEGIN = "<!-- metrics:begin -->"
END = "<!-- metrics:end -->"
TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[(){}\[\],]|[^"(){}\[\],]+')
STRING = re.compile(r'"((?:\\.|[^"\\])*)"')


class DefinitionError(Exception):
    """metrics.def does not say what this script expects."""


def without_comments(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)


def arguments(text, start):
    """Splits the macro arguments that begin behind the parenthesis at `start`."""
    depth, current, found = 0, "", []
    for match in TOKEN.finditer(text, start):
        token = match.group()
        if token == ")" and depth == 0:
            return found + [current.strip()]
        if token == "," and depth == 0:
            found.append(current.strip())
            current = ""
            continue
        depth += (token in "({[") - (token in ")}]")
        current += token
    raise DefinitionError("a parenthesis is not closed")


def rows(text, macro):
    """The arguments of each use of `macro` at the beginning of a line."""
    for match in re.finditer(rf"^{macro}\(", text, flags=re.MULTILINE):
        yield arguments(text, match.end())


def string(literals):
    """The value of adjacent C string literals."""
    return "".join(re.sub(r"\\(.)", r"\1", part) for part in STRING.findall(literals))


def row_labels(text):
    """Row set -> names of its labels."""
    return {
        row[0]: [re.match(r"LABEL\(\s*\w+\s*,\s*(\w+)\s*\)$", label).group(1) for label in row[2:]]
        for macro in ("ROWS", "ROW")
        for row in rows(text, macro)
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


def cell(text):
    return text.replace("|", r"\|")


def table(found):
    lines = ["| metric | type | labels | meaning |", "| --- | --- | --- | --- |"]
    for name, kind, labels, meaning in found:
        shown = ", ".join(f"`{label}`" for label in labels)
        lines.append(f"| `{name}` | {kind} | {shown} | {cell(meaning)} |")
    return "\n".join(lines) + "\n"


def replaced(readme, new_table):
    """The text of the README with the table between the markers replaced."""
    if readme.count(BEGIN) != 1 or readme.count(END) != 1 or readme.find(BEGIN) > readme.find(END):
        raise DefinitionError(f"the markers {BEGIN} and {END} must be there once, in this order")
    head, rest = readme.split(BEGIN)
    return f"{head}{BEGIN}\n{new_table}{END}{rest.split(END)[1]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", metavar="FILE", help="replace the table between the markers")
    what.add_argument("--check", metavar="FILE", help="fail if the table in FILE is stale")
    what.add_argument("--names", action="store_true", help="print the names of all families")
    options = parser.parse_args()
    found = list(families(without_comments(DEFINITIONS.read_text(encoding="utf-8"))))
    if options.names:
        print("\n".join(name for name, *_ in found))
        return 0
    path = pathlib.Path(options.write or options.check)
    readme = path.read_text(encoding="utf-8")
    wanted = replaced(readme, table(found))
    if options.write:
        path.write_text(wanted, encoding="utf-8")
    elif wanted != readme:
        print(f"{path}: the metric table is stale: run `make readme`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (DefinitionError, OSError) as error:
        print(f"metric_table: {error}", file=sys.stderr)
        sys.exit(1)
