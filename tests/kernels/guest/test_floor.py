# SPDX-License-Identifier: Apache-2.0
"""Below the oldest kernel that is supported the exporter says what is missing, and ends."""

import json
import re

from exporter import run_to_end

SECONDS = 60


def test_a_kernel_that_is_too_old_is_said_to_be_in_a_few_clear_lines():
    ended = run_to_end("--web.listen-address=127.0.0.1:0", seconds=SECONDS)
    assert ended.returncode == 1
    assert re.search(r"is off: .*Linux 5\.15 or later", ended.stderr), ended.stderr
    assert "nothing can be measured on this machine" in ended.stderr
    assert len(ended.stderr.splitlines()) <= 6, ended.stderr
    assert "listening" not in ended.stderr


def test_the_check_says_that_nothing_works_and_why():
    ended = run_to_end("check", seconds=SECONDS)
    assert ended.returncode == 2
    assert "this kernel has no map type task_storage" in ended.stdout
    assert "do: use Linux 5.15 or later" in ended.stdout
    assert ended.stdout.endswith("Nothing can be measured.\n")
    assert ended.stderr == ""


def test_the_check_says_what_there_is_all_the_same():
    answer = json.loads(run_to_end("check", "--json", seconds=SECONDS).stdout)
    assert answer["result"] == "none"
    rows = answer["privileges"] + answer["kernel"] + answer["processes"]
    missing = [row["name"] for row in rows if not row["ok"]]
    assert missing == ["Linux version"]
    assert {"CAP_BPF", "CAP_PERFMON", "CAP_SYS_PTRACE"} <= {row["name"] for row in rows}
