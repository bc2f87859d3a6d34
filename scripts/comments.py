#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Comments that name what is not there any more: a file, a function written as name(), a constant.
What belongs to others is told by the first folder of a file (the kernel's, glibc's, ...), by the
headers of this machine, or by ELSEWHERE. And comments that do not name what they mean: "who" and
"nobody", where it is a process, a thread or a client. Prints each, and ends with 1.
"""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("bpf", "dashboards", "exporter", "scripts", "tests")
CODE = (".c", ".h", ".def", ".in", ".py", ".sh", ".proto")
# A text or a character of the code, which may look like a comment inside, or a comment.
TOKEN = re.compile(
    r""""(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|(?P<comment>/\*.*?\*/|//[^\n]*)""", re.DOTALL
)
FUNCTION = re.compile(r"\b([a-z_][a-z0-9_]*)\(\)")
CONSTANT = re.compile(r"\b([A-Z][A-Z0-9]*_[A-Z0-9_]+)\b")
# Words for persons. In backquotes they are names, as that of the user `nobody`.
PERSON = re.compile(
    r"\b(?:[Ww]ho(?:m|ever|mever)?|(?:[Nn]o|[Ss]ome|[Aa]ny|[Ee]very)body|"
    r"(?:[Ss]ome|[Aa]ny|[Ee]very)one)\b"
)
BACKQUOTED = re.compile(r"`[^`]*`")
# Names of files that others have, without a folder.
OTHER_FILES = ("UIDS-GIDS.md",)
FILE = re.compile(r"\b([\w/.-]+\.(?:c|h|py|sh|def|md|txt|in))\b")

# Folders at the top of the kernel's, glibc's, musl's and other sources, which comments cite.
OTHER_SOURCES = (
    *("arch", "fs", "include", "kernel", "linux", "mm", "net"),
    *("nptl", "sysdeps", "src", "doc", "docs"),
)
# A part of a name that stands for any, as in bpf/NAME.bpf.c.
PLACEHOLDER = re.compile(r"\b(NAME|OBJECT)\b|^_")
# Names inside the kernel and other programs, which no header on a machine has.
ELSEWHERE = {
    *("__bpf_trace_run", "bpf_local_storage_alloc", "bpf_seq_read", "do_exit", "elf_strptr"),
    *("parse_pem_cert_mem", "sk_stream_memory_free", "tcp_data_queue", "tcp_data_ready"),
    *("tcp_mstamp_refresh", "tcp_rcv_established", "tcp_rcv_state_process", "tcp_sendmsg_locked"),
    *("tcp_write_xmit", "CONFIG_NR_CPUS", "CONFIG_UPROBE_EVENTS", "DEFINE_BPF_ITER_FUNC"),
    *("LINUX_MIB_", "MAX_SOFTIRQ_TIME", "PID_MAX_LIMIT", "PREEMPT_RT", "PROC_LIBRARY_"),
    *("PROC_TIME_INIT_INO", "PTRACE_MODE_READ", "SYS_UID_MAX", "TASK_INTERRUPTIBLE"),
    *("UNIT_NAME_MAX", "PID_NS_INIT_INO", "USER_NS_INIT_INO", "BPF_TRACE_UPROBE_MULTI"),
}


def own_files():
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file()]
    return [path.relative_to(ROOT).as_posix() for path in (*found, *ROOT.glob("*")) if path.is_file()]


def code_of(name):
    """The text of a file without its comments, which are what is checked."""
    text = (ROOT / name).read_text(errors="replace")
    if not name.endswith((".c", ".h")):
        return text
    return TOKEN.sub(lambda token: " " if token["comment"] else token[0], text)


def comments_of(name):
    """Each comment of a file, and its line."""
    text = (ROOT / name).read_text()
    for token in TOKEN.finditer(text):
        if token["comment"]:
            yield text.count("\n", 0, token.start()) + 1, token["comment"]


@cache
def in_headers(word):
    command = ["grep", "-rlqw", "--include=*.h", word, "/usr/include"]
    return subprocess.run(command, check=False).returncode == 0


def unknown(comment, files, words):
    for name in FILE.findall(comment):
        if name.split("/")[0] in (*OTHER_SOURCES, *OTHER_FILES) or PLACEHOLDER.search(name):
            continue
        if not any(each == name or each.endswith(f"/{name}") for each in files):
            yield f"the file {name}"
    for kind, pattern in (("function", FUNCTION), ("constant", CONSTANT)):
        for name in pattern.findall(comment):
            if name not in words and name not in ELSEWHERE and not in_headers(name):
                yield f"the {kind} {name}"


def persons(comment):
    """The words for persons, and how many lines behind the first of the comment."""
    plain = BACKQUOTED.sub(lambda quoted: "`" * len(quoted[0]), comment)
    for word in PERSON.finditer(plain):
        yield comment.count("\n", 0, word.start()), word[0]


def main():
    files = own_files()
    sources = [name for name in files if name.endswith((".c", ".h"))]
    words = set()
    for name in files:
        if name.endswith(CODE) or name == "Makefile":
            words.update(re.findall(r"\w+", code_of(name)))
    failed = 0
    for name in sources:
        for line, comment in comments_of(name):
            for what in unknown(comment, files, words):
                print(f"{name}:{line}: names {what}, which is not there")
                failed = 1
            for behind, word in persons(comment):
                print(f'{name}:{line + behind}: says "{word}": name what is meant')
                failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
