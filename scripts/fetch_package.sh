#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fetches the newest version of a package of a Debian suite and unpacks it, without installing it:
# fetch_package.sh DIRECTORY SUITE PACKAGE. Afterwards its files are below DIRECTORY/root. The mirror
# is the one that apt is configured with, and apt checks the signatures. What was fetched stays for a
# day, and longer if nothing newer can be had.
set -eu
directory=$1 suite=$2 package=$3
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
architecture=$(dpkg --print-architecture)
mkdir -p "$directory"
directory=$(cd "$directory" && pwd)

if [ -n "$(find "$directory/root" -maxdepth 0 -mtime -1 2>/dev/null)" ]; then
	exit 0
fi

# shellcheck disable=SC2016 # apt's own placeholders
mirror=$(apt-get indextargets --format '$(LABEL)|$(SITE)' 'Created-By: Packages' |
	sed -n 's/^Debian|//p' | head -n 1)
[ -n "$mirror" ] || {
	echo "apt knows no Debian mirror here: configure one and run apt-get update" >&2
	exit 1
}

# apt with indexes of its own, so that this machine's package lists stay as they are.
state=$directory/apt
mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
: >"$state/status"
echo "deb [arch=$architecture signed-by=$keyring] $mirror $suite main" >"$state/sources.list"
with_apt() {
	apt-get -q -o Dir::Etc::SourceList="$state/sources.list" -o Dir::Etc::SourceParts=- \
		-o Dir::State::Lists="$state/lists" -o Dir::State::status="$state/status" \
		-o Dir::Cache="$state/cache" -o Acquire::Languages=none -o APT::Sandbox::User=root "$@"
}

fetch() {
	rm -rf "$directory/new" && mkdir -p "$directory/new/root" &&
		with_apt update >"$state/log" 2>&1 &&
		(cd "$directory/new" && with_apt download "$package") >>"$state/log" 2>&1 &&
		dpkg-deb -x "$directory/new/$package"_*.deb "$directory/new/root"
}

if fetch; then
	rm -rf "$directory/root"
	mv "$directory/new/root" "$directory/root"
	touch "$directory/root"
elif [ ! -d "$directory/root" ]; then
	tail -n 3 "$state/log" >&2
	echo "$package of $suite cannot be fetched" >&2
	exit 1
fi
rm -rf "$directory/new"
