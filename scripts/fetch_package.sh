#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fetches the newest version of a package of a Debian suite and unpacks it, without installing it:
# fetch_package.sh DIRECTORY SUITE PACKAGE. Afterwards its files are below DIRECTORY/root. What was
# fetched stays for a day, and longer if nothing newer can be had.
set -eu
directory=$1 suite=$2 package=$3
# shellcheck source=scripts/suite.sh
. "$(dirname "$0")/suite.sh"
mkdir -p "$directory"
directory=$(cd "$directory" && pwd)

if [ -n "$(find "$directory/root" -maxdepth 0 -mtime -1 2>/dev/null)" ]; then
	exit 0
fi

suite_open "$directory" "$suite" "$(dpkg --print-architecture)"

fetch() {
	rm -rf "$directory/new" && mkdir -p "$directory/new/root" &&
		with_apt apt-get update >"$directory/apt/log" 2>&1 &&
		(cd "$directory/new" && with_apt apt-get download "$package") >>"$directory/apt/log" 2>&1 &&
		dpkg-deb -x "$directory/new/$package"_*.deb "$directory/new/root"
}

if fetch; then
	rm -rf "$directory/root"
	mv "$directory/new/root" "$directory/root"
	touch "$directory/root"
elif [ ! -d "$directory/root" ]; then
	tail -n 3 "$directory/apt/log" >&2
	echo "$package of $suite cannot be fetched" >&2
	exit 1
fi
rm -rf "$directory/new"
