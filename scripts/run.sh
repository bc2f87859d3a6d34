#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Starts the exporter with the privileges it needs: as it is for root, else through sudo. Without
# sudo it starts as it is too: the exporter itself tells which privileges it lacks.
set -eu
if [ "$(id -u)" -eq 0 ] || ! command -v sudo >/dev/null; then
	exec "$@"
fi
echo "run: loading BPF programs needs root: using sudo" >&2
exec sudo -- "$@"
