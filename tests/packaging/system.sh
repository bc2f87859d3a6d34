#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The smallest Debian 12 there is, below DIRECTORY/debian, to be copied and installed into: system.sh
# DIRECTORY PACKAGE. In its apt's cache is all that PACKAGE depends on, and systemd, so that tests need no
# network. What was fetched stays for a week, and longer if nothing newer can be had.
set -eu
mkdir -p "$1"
directory=$(cd "$1" && pwd) package=$2
# shellcheck source=scripts/suite.sh
. "$(dirname "$0")/../../scripts/suite.sh"
system=$directory/debian
log=$directory/log
rm -rf "$directory"/system_* # copies of a run that was killed

# Mounts of debootstrap's end with its namespace. What it asks for goes where apt's own requests go.
make_system() {
	suite_open "$directory" bookworm "$(dpkg --print-architecture)" || return 1
	rm -rf "$directory/new"
	eval "$(apt-config shell http_proxy Acquire::http::Proxy)"
	export http_proxy
	unshare --mount debootstrap --variant=minbase bookworm "$directory/new" \
		"${suite_mirror%|*}" >"$log" 2>&1 &&
		in_system "$directory/new" apt-get -q update >>"$log" 2>&1 &&
		in_system "$directory/new" apt-get clean || return 1
	rm -rf "$system"
	mv "$directory/new" "$system"
	touch "$system"
}
in_system() {
	root=$1
	shift
	# shellcheck disable=SC2016 # those of the inner shell
	env PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C DEBIAN_FRONTEND=noninteractive \
		unshare --mount sh -c 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"' "$root" "$@"
}

if [ -z "$(find "$system" -maxdepth 0 -mtime -7 2>/dev/null)" ] && ! make_system; then
	tail -n 5 "$log" >&2
	[ -d "$system" ] || exit 1
	echo "packaging: cannot fetch a newer system: using the last one" >&2
fi
cp "$package" "$system/var/tmp/package.deb"
in_system "$system" apt-get -q -y --no-install-recommends --download-only install \
	/var/tmp/package.deb systemd >"$log" 2>&1 || {
	tail -n 5 "$log" >&2
	exit 1
}
rm "$system/var/tmp/package.deb"
