# SPDX-License-Identifier: Apache-2.0
"""Reads tables of macros, and keeps what is made of them between two markers of a file."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[(){}\[\],]|[^"(){}\[\],]+')
STRING = re.compile(r'"((?:\\.|[^"\\])*)"')
ESCAPES = {"n": "\n"}


class DefinitionError(Exception):
    """A table, or a file with markers, does not say what its reader expects."""


def read(path):
    """The text of a table without its comments."""
    text = (ROOT / path).read_text(encoding="utf-8")
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


def rows(text, *macros):
    """The arguments of each use of one of `macros` that a line begins with."""
    for match in re.finditer(rf"^\s*(?:{'|'.join(macros)})\(", text, flags=re.MULTILINE):
        yield arguments(text, match.end())


def string(literals):
    """The value of adjacent C string literals."""
    return "".join(
        re.sub(r"\\(.)", lambda found: ESCAPES.get(found[1], found[1]), part)
        for part in STRING.findall(literals)
    )


def cell(text):
    """As a cell of a table of Markdown."""
    return text.replace("|", r"\|")


def replaced(text, name, new):
    """`text` with `new` between the markers of `name`."""
    marks = list(re.finditer(rf"<!-- {name}:(begin|end) -->", text))
    if [mark[1] for mark in marks] != ["begin", "end"]:
        raise DefinitionError(
            f"the markers <!-- {name}:begin --> and <!-- {name}:end --> must be there once, "
            "in this order"
        )
    return f"{text[: marks[0].end()]}\n{new}{text[marks[1].start() :]}"


def add_file_options(group):
    group.add_argument("--write", metavar="FILE", help="replace the table between the markers")
    group.add_argument("--check", metavar="FILE", help="fail if the table in FILE is stale")


def keep(options, name, new):
    """Does what --write or --check asks for; the exit code."""
    path = pathlib.Path(options.write or options.check)
    text = path.read_text(encoding="utf-8")
    wanted = replaced(text, name, new)
    if options.write:
        path.write_text(wanted, encoding="utf-8")
    elif wanted != text:
        print(f"{path}: the table of {name} is stale: run `make readme`", file=sys.stderr)
        return 1
    return 0


def run(main):
    """Ends with what `main` returns, or with 1 and one line."""
    try:
        sys.exit(main())
    except (DefinitionError, OSError) as error:
        sys.exit(f"{pathlib.Path(sys.argv[0]).stem}: {error}")
