#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A file system of another architecture, from this machine's own Debian suite and mirror: the named
# packages and all they depend on, unpacked and not configured. userland.sh DIRECTORY ARCHITECTURE
# PACKAGE... It is both what cross compilers link with and what an emulated machine runs from.
set -eu
directory=$1 architecture=$2
shift 2
# shellcheck source=scripts/suite.sh
. "$(dirname "$0")/../../scripts/suite.sh"
mkdir -p "$directory"
directory=$(cd "$directory" && pwd)
if [ "$(cat "$directory/packages" 2>/dev/null)" = "$*" ]; then
	exit 0
fi

suite_open "$directory" "" "$architecture"
fetch() {
	with_apt apt-get -y -o APT::Install-Recommends=false -o Debug::NoLocking=1 "$@" \
		>"$directory/apt/log" 2>&1 || {
		tail -n 5 "$directory/apt/log" >&2
		echo "kernels: the $architecture packages could not be fetched: see the lines above" >&2
		exit 1
	}
}
fetch update
fetch --download-only install "$@"

rm -rf "$directory/root"
mkdir -p "$directory/root/usr/bin" "$directory/root/usr/sbin" "$directory/root/usr/lib"
for merged in bin sbin lib; do
	ln -s "usr/$merged" "$directory/root/$merged"
done
for package in "$directory/apt"/cache/archives/*.deb; do
	dpkg-deb --fsys-tarfile "$package" |
		tar -x --keep-directory-symlink --no-same-owner -C "$directory/root"
done
mkdir -p "$directory/root/proc" "$directory/root/sys" "$directory/root/dev" \
	"$directory/root/run" "$directory/root/tmp" "$directory/root/etc"
# dash does so when it is configured.
[ -e "$directory/root/bin/sh" ] || ln -s dash "$directory/root/bin/sh"
cp /etc/passwd /etc/group /etc/nsswitch.conf "$directory/root/etc/"
rm -rf "$directory/apt/cache"
echo "$*" >"$directory/packages"
