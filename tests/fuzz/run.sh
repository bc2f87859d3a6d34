#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh BUILD SECONDS RUNS TARGET...: fuzz targets for so long and so many executions each at most
# (-1: any), from the committed corpus, from the seeds made beside it (seeds.sh) and from what
# earlier runs have found (both under BUILD). An input that fails stays in BUILD/fuzz/failed.
set -euo pipefail

build=$1 seconds=$2 runs=$3
here=$(dirname "$0")
mkdir -p "$build/fuzz/failed"
failed=()
for name in "${@:4}"; do
	found=$build/fuzz/found/$name
	seeds=("$here/corpus/$name")
	[ "$name" != elf ] || seeds+=("$here/../unit/fixtures/elf")
	[ ! -d "$build/fuzz/seeds/$name" ] || seeds+=("$build/fuzz/seeds/$name")
	mkdir -p "$found"
	log=$build/fuzz/$name.log
	if "$build/fuzz/$name" -max_total_time="$seconds" -runs="$runs" -timeout=10 -rss_limit_mb=1024 \
		-max_len=8192 -print_final_stats=1 -artifact_prefix="$build/fuzz/failed/$name-" \
		"$found" "${seeds[@]}" > "$log" 2>&1; then
		echo "$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs," \
			"$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -1) edges"
	else
		failed+=("$name")
		tail -40 "$log"
	fi
done
[ ${#failed[@]} -eq 0 ] || echo "fuzz: ${failed[*]}: the inputs are in $build/fuzz/failed"
echo "fuzz: $(($# - 3 - ${#failed[@]})) passed, ${#failed[@]} failed"
[ ${#failed[@]} -eq 0 ]
