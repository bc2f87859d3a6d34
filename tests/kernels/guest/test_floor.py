# SPDX-License-Identifier: Apache-2.0
"""Below the oldest kernel that is supported the exporter says what is missing, and ends."""

import re

from exporter import run_to_end


def test_a_kernel_that_is_too_old_is_said_to_be_in_a_few_clear_lines():
    ended = run_to_end("--web.listen-address=127.0.0.1:0", seconds=60)
    assert ended.returncode == 1
    assert re.search(r"is off: .*Linux 5\.15 or later", ended.stderr), ended.stderr
    assert "nothing can be measured on this machine" in ended.stderr
    assert len(ended.stderr.splitlines()) <= 6, ended.stderr
    assert "listening" not in ended.stderr


def test_the_check_says_that_nothing_works_and_why():
    ended = run_to_end("check", seconds=60)
    assert ended.returncode == 2
    assert "Linux 5.15 or later" in ended.stdout
    assert ended.stderr == ""
