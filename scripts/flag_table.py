#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the README's table of flags, and the man page, from the rows of base/flag.h."""

import argparse
import pathlib
import re
import sys

import definitions
from definitions import DefinitionError, rows, string

OPTIONS = "@OPTIONS@"
OF_FEATURES = "FLAGS_OF_FEATURES,"  # where those of features are among those of the exporter


class Flag:
    def __init__(self, option, metavariable, default, _sets, text, more='""'):
        self.option = string(option)
        self.metavariable = string(metavariable)
        self.default = string(default)
        self.meaning = f"{string(text)} {string(more)}".replace("\n", " ").strip()
        if not self.option or not self.meaning:
            raise DefinitionError(f"{option}: a flag without a name or a help text")


def all_flags():
    """The text of all rows in the order of --help."""
    before, found, after = definitions.read("exporter/config/flags.c").partition(OF_FEATURES)
    if not found:
        raise DefinitionError(f"exporter/config/flags.c: there is no {OF_FEATURES}")
    names = re.findall(r"&feature_(\w+)", definitions.read("exporter/features/features.c"))
    of_features = (definitions.read(f"exporter/features/{name}.c") for name in names)
    return "\n".join((before, *of_features, after))


def table(flags):
    lines = ["| flag | default | meaning |", "| --- | --- | --- |"]
    for flag in flags:
        value = f"={flag.metavariable}" if flag.metavariable else ""
        default = f"`{flag.default}`" if flag.default and " " not in flag.default else flag.default
        meaning = definitions.cell(flag.meaning)
        lines.append(f"| `--{flag.option}{value}` | {default} | {meaning} |")
    return "\n".join(lines) + "\n"


def roff(text):
    """A line of text as roff, what is between backticks in bold."""
    text = text.replace("\\", r"\e").replace("-", r"\-")
    text = re.sub(r"`([^`]*)`", r"\\fB\1\\fP", text)
    return rf"\&{text}" if text.startswith((".", "'")) else text


def roff_flag(flag):
    option = roff(f"--{flag.option}")
    head = f".BI {option}= {flag.metavariable}" if flag.metavariable else f".B {option}"
    default = ["Default:", rf"\fB{roff(flag.default)}\fP"] if flag.default else []
    return [".TP", head, roff(flag.meaning), *default]


def man_page(template, flags, version):
    text = pathlib.Path(template).read_text(encoding="utf-8")
    if text.count(OPTIONS) != 1:
        raise DefinitionError(f"{template}: {OPTIONS} must be there once")
    options = "\n".join(line for flag in flags for line in roff_flag(flag))
    return text.replace(OPTIONS, options).replace("@VERSION@", version)


def main():
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    what = parser.add_mutually_exclusive_group(required=True)
    definitions.add_file_options(what)
    what.add_argument("--man", metavar="TEMPLATE", help="print the man page")
    parser.add_argument("--version", default="unknown", help="named in the man page")
    options = parser.parse_args()
    flags = [Flag(*row) for row in rows(all_flags(), "FLAG")]
    if options.man:
        sys.stdout.write(man_page(options.man, flags, options.version))
        return 0
    return definitions.keep(options, "flags", table(flags))


if __name__ == "__main__":
    definitions.run(main)
