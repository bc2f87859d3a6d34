#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A file system of another Debian suite, to change root into: fetch.sh DIRECTORY SUITE PACKAGE...
# The named packages and all they depend on, unpacked below DIRECTORY/root and not configured. What
# was fetched stays for a week, and longer if nothing newer can be had.
set -eu
directory=$1 suite=$2
shift 2
# shellcheck source=scripts/suite.sh
. "$(dirname "$0")/../../scripts/suite.sh"
mkdir -p "$directory"
directory=$(cd "$directory" && pwd)
if [ "$(cat "$directory/packages" 2>/dev/null)" = "$*" ] &&
	[ -n "$(find "$directory/packages" -mtime -7)" ]; then
	exit 0
fi

suite_open "$directory" "$suite" "$(dpkg --print-architecture)"
fetch() {
	with_apt apt-get -y -o APT::Install-Recommends=false -o Debug::NoLocking=1 "$@" \
		>"$directory/apt/log" 2>&1
}
if ! { fetch update && fetch --download-only install "$@"; }; then
	tail -n 5 "$directory/apt/log" >&2
	[ "$(cat "$directory/packages" 2>/dev/null)" = "$*" ] || exit 1
	echo "userlands: cannot ask for newer packages of $suite: using the last ones" >&2
	exit 0
fi

rm -rf "$directory/root" "$directory/packages"
mkdir -p "$directory/root/usr/bin" "$directory/root/usr/sbin" "$directory/root/usr/lib" \
	"$directory/root/usr/lib64"
for merged in bin sbin lib lib64; do
	ln -s "usr/$merged" "$directory/root/$merged"
done
for package in "$directory"/apt/cache/archives/*.deb; do
	dpkg-deb --fsys-tarfile "$package" |
		tar -x --keep-directory-symlink --no-same-owner -C "$directory/root"
done
mkdir -p "$directory/root/proc" "$directory/root/dev" "$directory/root/tmp" "$directory/root/work"
[ -e "$directory/root/dev/null" ] || mknod -m 0666 "$directory/root/dev/null" c 1 3
# An absolute link to the loader leads out of the root when a linker follows it.
loader=$directory/root/usr/lib64/ld-linux-x86-64.so.2
case $(readlink "$loader" || true) in
/*) ln -sfn "../..$(readlink "$loader")" "$loader" ;;
esac
rm -rf "$directory/apt/cache"
echo "$*" >"$directory/packages"
