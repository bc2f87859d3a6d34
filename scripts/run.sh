#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Starts the exporter with the privileges it needs: as it is for root, else through sudo.
set -eu
if [ "$(id -u)" -eq 0 ]; then
	exec "$@"
fi
echo "run: the exporter loads BPF programs, which needs root here: using sudo" >&2
exec sudo -- "$@"
