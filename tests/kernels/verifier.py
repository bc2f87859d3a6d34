# SPDX-License-Identifier: Apache-2.0
"""
How many instructions the verifier of each kernel looked at per program, beside what it was when the
file was written: a program whose verification grows a lot is on the way to being refused.
"""

import os
from pathlib import Path

RECORD = Path(__file__).resolve().parent / "verifier.txt"
GROWTH = 1.2
UPDATE = os.environ.get("UPDATE") == "1"
HEAD = """\
# Instructions that the verifier processed, by row of the matrix and program. The kernel
# matrix fails if one of them grows by more than 20 %; `UPDATE=1 make test-kernels` writes it anew.
"""


def _read(path):
    """{(row, program): instructions}"""
    rows = (line.split() for line in path.read_text().splitlines() if line[:1] not in ("", "#"))
    return {(row, program): int(count) for row, program, count in rows}


def _write(record):
    lines = (f"{row} {program} {count}\n" for (row, program), count in sorted(record.items()))
    RECORD.write_text(HEAD + "".join(lines))


def _complaint(program, before, now):
    if before is None:
        return f"{program} is not recorded: it takes {now} instructions"
    if now > before * GROWTH:
        return f"{program} grew from {before} to {now} instructions"
    return None


def check(row, measured):
    """What is wrong with @measured, a file of lines `program count`: a list of sentences."""
    record = _read(RECORD) if RECORD.exists() else {}
    rows = (line.split() for line in measured.read_text().splitlines())
    now = {program: int(count) for program, count in rows}
    if UPDATE:
        kept = {key: count for key, count in record.items() if key[0] != row}
        _write({**kept, **{(row, program): count for program, count in now.items()}})
        return []
    complaints = (_complaint(name, record.get((row, name)), now[name]) for name in sorted(now))
    return [text for text in complaints if text]
