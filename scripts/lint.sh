#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# lint.sh [CHECK...]: checks what a compiler does not: these, or all that are quick. Prints only what
# is wrong and a last line; exit 1 on anything.
# Needs `make all` to have run (skeletons under build/bpf); `make lint` sees to it.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

JOBS=$(nproc)
PYTHON=${PYTHON:-/usr/bin/python3}
INCLUDES=(-Iexporter -Ibpf -Ibuild -Ibuild/bpf)
C_FLAGS=(-std=gnu11 -fms-extensions -D_GNU_SOURCE "${INCLUDES[@]}" -Ibuild/proto) # cppcheck cannot read protoc's
BPF_FLAGS=(-std=gnu11 -fms-extensions -Wno-microsoft-anon-tag -target bpf -mcpu=v3 -D__TARGET_ARCH_x86 -DWORKLOAD_BPF -Ibpf)
STRICT=(-Wall -Wextra -Wmissing-prototypes -Wstrict-prototypes -Wundef -Werror -fsyntax-only)
BANNED='(^|[^a-zA-Z0-9_])(sprintf|vsprintf|strcpy|strcat|strncpy|strncat|atoi|atol|atoll|gets)[[:space:]]*\('

SUBJECTS_SINCE=8dc40bfcb51ba896c4e69f213ef9d5c508ed296e

sources() { # sources FOLDER PATTERN...: files below FOLDER whose names match, sorted
	local folder=$1 names=() pattern
	shift
	for pattern in "$@"; do
		names+=(-o -name "$pattern")
	done
	[ -d "$folder" ] || return 0
	find "$folder" -type f \( "${names[@]:1}" \) | LC_ALL=C sort
}

mapfile -t C_ALL < <(sources bpf '*.[ch]'; sources exporter '*.[ch]'; sources tests '*.[ch]')
mapfile -t C_EXPORTER < <(sources exporter '*.c')
mapfile -t C_BPF < <(sources bpf '*.[ch]')
mapfile -t HEADERS < <(sources exporter '*.h'; sources bpf/abi '*.h'; sources bpf/machine '*.h')
mapfile -t BPF_HEADERS < <(sources bpf '*.h')
mapfile -t SHELL_ALL < <(sources scripts '*.sh'; sources scripts/debian postinst prerm postrm; sources .ci run)
mapfile -t PYTHON_ALL < <(sources scripts '*.py'; sources tests '*.py')
mapfile -t TABLES < <(sources exporter '*.def')
mapfile -t READMES < <(echo README.md; sources .github '*.md'; sources bpf '*.md'; sources dashboards '*.md'
	sources exporter '*.md'; sources scripts '*.md'; sources tests '*.md')

format() { # of its three lines per fault the first tells all
	clang-format --dry-run -Werror --ferror-limit=1 "${C_ALL[@]}" 2>&1 | sed -n '/: error: /p'
}

# -isystem: skeletons are generated; a fault in a header is told once for all includers. Of a function
# the analyzer looks at 225 000 states unless it is told otherwise: at uthash it goes through all of
# them, which takes most of the time. With few it takes functions apart from their callers.
ANALYZER=(-Xclang -analyzer-config -Xclang max-nodes=80000)

tidied() { # tidied CHECKS: clang-tidy's, beside those of .clang-tidy
	printf '%s\0' "${C_EXPORTER[@]}" |
		timeout 1500 xargs -0 -r -P "$JOBS" -I '{}' \
			clang-tidy -quiet -checks="$1" '{}' -- -isystem build/bpf -isystem build/proto "${C_FLAGS[@]}" \
			"${ANALYZER[@]}" 2>&1 |
		sed -n 's/^[^ ]*: error: /&/p' | sort -u
}

tidy() { # the paths through functions take ten times as long as all the rest
	tidied '-clang-analyzer-*'
}

paths() {
	tidied ''
}

cpp_check() { # it reads no system headers, except those whose macros we use
	local macros
	mapfile -t macros < <(
		printf '#include <%s>\n' sys/queue.h bpf/libbpf_common.h uthash.h | gcc -M -x c - |
			grep -oE '/[^ ]*/(sys/queue|bpf/libbpf_common|uthash)\.h')
	timeout 600 cppcheck --quiet --error-exitcode=1 --std=c11 --inline-suppr \
		--enable=warning,performance,portability --suppress=missingIncludeSystem \
		-D_GNU_SOURCE -j "$JOBS" "${macros[@]/#/--include=}" "${INCLUDES[@]}" exporter
}

shell() {
	shellcheck "${SHELL_ALL[@]}"
}

python() { # tests/bench/paths.py is imported for what it does
	local found
	found=$("$PYTHON" -m pyflakes "${PYTHON_ALL[@]}" 2>&1 |
		grep -v "'paths' imported but unused")
	[ -z "$found" ] || { echo "$found" && false; }
}

headers_alone() { # BPF programs include lib/kernel.h before everything else: it brings __u64.
	# What the verifier shall see by itself (VERIFIED_ALONE) is not static there.
	local header failed=0
	for header in "${HEADERS[@]}"; do
		printf '#include "%s"\n' "$PWD/$header" |
			gcc -fmax-errors=1 "${STRICT[@]}" "${C_FLAGS[@]}" -x c - || failed=1
	done
	for header in "${BPF_HEADERS[@]}"; do
		printf '#include "lib/kernel.h"\n#include "%s"\n' "$PWD/$header" |
			clang -ferror-limit=1 "${STRICT[@]}" -Wno-unused-parameter -Wno-unused-function \
				-Wno-missing-prototypes "${BPF_FLAGS[@]}" -x c - || failed=1
	done
	return "$failed"
}

found() { # found MESSAGE GREP_ARGUMENTS...: a match is a fault
	local message=$1
	shift
	if grep -nE "$@"; then
		echo "$message"
		return 1
	fi
}

banned() {
	found "banned: use snprintf, memcpy, strtol and their kind" -- "$BANNED" "${C_ALL[@]}" /dev/null
}

no_printk() {
	found "bpf_printk has no place in a hot path" 'bpf_(trace_)?printk' "${C_BPF[@]}" /dev/null
}

rooms() {
	"$PYTHON" -B scripts/rooms.py
}

length() {
	local failed=0 file
	for file in "${C_ALL[@]}" "${SHELL_ALL[@]}" "${PYTHON_ALL[@]}" "${TABLES[@]}"; do
		[ "$(wc -l < "$file")" -le 500 ] || {
			echo "$file: over 500 lines"
			failed=1
		}
	done
	return "$failed"
}

licence() { # the identifier is in one of the first two lines (a script begins with #!)
	local failed=0 file want
	for file in "${C_ALL[@]}" "${SHELL_ALL[@]}" "${PYTHON_ALL[@]}" "${TABLES[@]}" Makefile; do
		want='SPDX-License-Identifier: Apache-2.0'
		[[ $file != bpf/* ]] || want='SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause'
		head -n 2 "$file" | grep -qF "$want" || {
			echo "$file: lacks \"$want\" at its top"
			failed=1
		}
	done
	return "$failed"
}

metric_table() {
	"$PYTHON" scripts/metric_table.py --check dashboards/README.md
}

flag_table() {
	"$PYTHON" -B scripts/flag_table.py --check exporter/README.md
}

man_page() { # groff warns, but ends with 0
	local found
	found=$(groff -man -Tutf8 -ww -z build/workload_exporter.8 2>&1)
	[ -z "$found" ] || { echo "$found" && false; }
}

dashboards() {
	"$PYTHON" scripts/dashboards --check
}

placeholders() {
	found "a README is not finished" '\{\{' "${READMES[@]}"
}

readme_links() {
	"$PYTHON" -B scripts/readme_links.py
}

folder_readmes() { # folders of fixtures and of what programs make are below these
	local failed=0 folder
	for folder in bpf dashboards exporter scripts tests bpf/*/ exporter/*/ tests/*/; do
		[[ $folder != *__pycache__* ]] || continue
		[ -f "$folder/README.md" ] || {
			echo "${folder%/}: has no README.md"
			failed=1
		}
	done
	return "$failed"
}

comments() { # what they name is there, and what they mean is named
	"$PYTHON" -B scripts/comments.py
}

subjects() { # of commits since the rule; a copy without their history has none
	git rev-parse --quiet --verify "$SUBJECTS_SINCE^{commit}" >/dev/null 2>&1 || return 0
	git log --format='%h %s' "$SUBJECTS_SINCE.." |
		awk '{ subject = substr($0, index($0, " ") + 1) }
			length(subject) > 72 { print $1 ": over 72 characters: " subject; failed = 1 }
			END { exit failed }'
}

CHECKS=("$@")
[ $# -gt 0 ] ||
	CHECKS=(format shell python headers_alone banned no_printk rooms length licence metric_table
		flag_table man_page dashboards placeholders readme_links folder_readmes comments subjects tidy)
bad=()
for check in "${CHECKS[@]}"; do
	output=$("$check" 2>&1) && continue
	bad+=("$check")
	printf '%s: %s\n' "$check" "$output"
done
if [ ${#bad[@]} -gt 0 ]; then
	echo "lint: $((${#CHECKS[@]} - ${#bad[@]})) passed, ${#bad[@]} failed: ${bad[*]}"
	exit 1
fi
echo "lint: ${#CHECKS[@]} passed, 0 failed, on $((${#C_ALL[@]} + ${#SHELL_ALL[@]} + ${#PYTHON_ALL[@]})) files"
