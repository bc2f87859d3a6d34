#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the README's table of flags, and the man page, from the rows of base/flag.h."""

import argparse
import pathlib
import re
import sys

import definitions
from definitions import DefinitionError, rows, string

OF_FEATURES = "FLAGS_OF_FEATURES,"  # where those of features are among those of the exporter


class Flag:
    def __init__(self, option, metavariable, default, _sets, text, more='""'):
        self.option = string(option)
        self.metavariable = string(metavariable)
        self.default = string(default)
        self.meaning = f"{string(text)} {string(more)}".replace("\n", " ").strip()
        if not self.option or not self.meaning:
            raise DefinitionError(f"{option}: a flag without a name or a help text")


class Feature:
    """What is said of a feature beside its flags: by members of its struct, see feature.h."""

    def __init__(self, name):
        self.name = name
        self.text = definitions.read(f"exporter/features/{name}.c")
        hint = self.value("hint")
        self.in_words = f"{name} ({hint})" if hint else name
        self.collector = self.has("collector = true")
        self.always = self.has("always = true")
        self.measures = not self.has("supports = true")
        self.keeps = self.value("off") and self.has("capabilities_len = ")
        self.asked_by = f"--{name}.backend={self.value('label')}"
        self.pages = self.all_pages()

    def has(self, member):
        return re.search(rf"\.{member}", self.text) is not None

    def all_pages(self):
        """(path, what it shows) of each."""
        paths = re.findall(r"\.path\s*=", self.text)
        pages = re.findall(r'\.path = ("[^"]*"),\s+\.about = ("[^"]*"),', self.text)
        if len(paths) != len(pages):
            raise DefinitionError(f"exporter/features/{self.name}.c: a page without .about behind .path")
        if pages and not self.collector:
            raise DefinitionError(f"exporter/features/{self.name}.c: no flag turns its pages on")
        return [(string(path), string(about)) for path, about in pages]

    def value(self, member):
        found = re.search(rf'\.{member} = ("[^"]*")', self.text)
        return string(found[1]) if found else None


def all_features():
    """In the order of the table."""
    names = re.findall(r"&feature_(\w+)", definitions.read("exporter/features/features.c"))
    return [Feature(name) for name in names]


def quoted(names):
    """As `a`, `b` and `c`."""
    *first, last = (f"`{name}`" for name in names)
    return f"{', '.join(first)} and {last}" if first else last


def collectors_named(text, features):
    """`text` with the names of features in place of the words that stand for some of them."""
    collectors = [feature for feature in features if feature.collector]
    lists = {
        "@COLLECTORS@": ", ".join(feature.in_words for feature in collectors),
        "@MEASURING@": quoted(feature.name for feature in collectors if feature.measures),
        "@ALWAYS@": quoted(feature.name for feature in collectors if feature.always),
    }
    for word, names in lists.items():
        if text.count(word) != 1:
            raise DefinitionError(f"exporter/config/flags.c: {word} must be there once")
        text = text.replace(word, names)
    return text


def all_flags(features):
    """The text of all rows in the order of --help."""
    before, found, after = definitions.read("exporter/config/flags.c").partition(OF_FEATURES)
    if not found:
        raise DefinitionError(f"exporter/config/flags.c: there is no {OF_FEATURES}")
    of_features = (feature.text for feature in features)
    return "\n".join((collectors_named(before, features), *of_features, after))


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


def roff_keeping(features):
    """Those that are off unless asked for, and keep the capabilities of the start."""
    return "".join(
        f", and with\n.B {roff(feature.asked_by)}\nall of them do"
        for feature in features
        if feature.keeps
    )


def roff_pages(features):
    """Those that features bring, each with the flag that turns its feature on."""
    return "".join(
        f"\nWith\n.B {roff('--collector.' + feature.name)}\nit also serves, on\n.BR {roff(path)} ,\n{roff(about)}."
        for feature in features
        for path, about in feature.pages
    )


def man_page(template, features, flags, version):
    text = pathlib.Path(template).read_text(encoding="utf-8")
    made = {
        "@OPTIONS@": "\n".join(line for flag in flags for line in roff_flag(flag)),
        "@KEEPING@": roff_keeping(features),
        "@PAGES@": roff_pages(features),
        "@VERSION@": version,
    }
    for word, said in made.items():
        if text.count(word) != 1:
            raise DefinitionError(f"{template}: {word} must be there once")
        text = text.replace(word, said)
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    what = parser.add_mutually_exclusive_group(required=True)
    definitions.add_file_options(what)
    what.add_argument("--man", metavar="TEMPLATE", help="print the man page")
    parser.add_argument("--version", default="unknown", help="named in the man page")
    options = parser.parse_args()
    features = all_features()
    flags = [Flag(*row) for row in rows(all_flags(features), "FLAG")]
    if options.man:
        sys.stdout.write(man_page(options.man, features, flags, options.version))
        return 0
    return definitions.keep(options, "flags", table(flags))


if __name__ == "__main__":
    definitions.run(main)
