#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Every link of a README, or of another page beside it, leads somewhere: a relative one to a file or
folder, and an #anchor to a heading there. Prints each that does not, and ends with 1. Addresses
elsewhere (https:) are not asked for.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = (".github", "bpf", "dashboards", "exporter", "scripts", "tests")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
LINK = re.compile(r"\]\(([^()\s]+)\)")
CODE = re.compile(r"`[^`\n]*`")


def text_of(page):
    return FENCED.sub("", page.read_text(encoding="utf-8"))


def anchors(page):
    """The anchors that GitHub makes of the headings, which have one name each."""
    titles = (re.sub(r"[^\w\- ]", "", title.lower()) for title in HEADING.findall(text_of(page)))
    return {title.replace(" ", "-") for title in titles}


def faults(page):
    for link in LINK.findall(CODE.sub("", text_of(page))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            yield f"{page.relative_to(ROOT)}: {link}: there is no such file"
        elif anchor and (target.suffix != ".md" or anchor not in anchors(target)):
            yield f"{page.relative_to(ROOT)}: {link}: there is no such heading"


def main():
    pages = [*ROOT.glob("*.md")]
    pages += [page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md")]
    found = [fault for page in sorted(pages) for fault in faults(page)]
    print(*found, sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
