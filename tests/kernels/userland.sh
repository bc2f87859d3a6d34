#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A file system of another architecture, from this machine's own Debian suite and mirror: the named
# packages and all they depend on, unpacked and not configured. userland.sh DIRECTORY ARCHITECTURE
# PACKAGE... It is both what cross compilers link with and what an emulated machine runs from.
set -eu
directory=$1 architecture=$2
shift 2
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
mkdir -p "$directory"
directory=$(cd "$directory" && pwd)
if [ "$(cat "$directory/packages" 2>/dev/null)" = "$*" ]; then
	exit 0
fi

# shellcheck disable=SC2016 # apt's own placeholders
mirror=$(apt-get indextargets --format '$(LABEL)|$(SITE)|$(CODENAME)' 'Created-By: Packages' |
	sed -n 's/^Debian|//p' | head -n 1)
[ -n "$mirror" ] || {
	echo "kernels: apt knows no Debian mirror here: configure one and run apt-get update" >&2
	exit 1
}
apt_state=$directory/apt
mkdir -p "$apt_state/lists/partial" "$apt_state/cache/archives/partial"
: >"$apt_state/status"
echo "deb [arch=$architecture signed-by=$keyring] ${mirror%|*} ${mirror#*|} main" \
	>"$apt_state/sources.list"
with_apt() {
	apt-get -q -y -o APT::Architecture="$architecture" -o APT::Architectures="$architecture" \
		-o Dir::Etc::SourceList="$apt_state/sources.list" -o Dir::Etc::SourceParts=- \
		-o Dir::State::Lists="$apt_state/lists" -o Dir::State::status="$apt_state/status" \
		-o Dir::Cache="$apt_state/cache" -o Acquire::Languages=none \
		-o Acquire::Retries=3 -o APT::Sandbox::User=root -o APT::Install-Recommends=false \
		-o Debug::NoLocking=1 "$@" >"$apt_state/log" 2>&1 || {
		tail -n 5 "$apt_state/log" >&2
		echo "kernels: the $architecture packages could not be fetched from ${mirror%|*}: see" \
			"the lines above" >&2
		exit 1
	}
}
with_apt update
with_apt --download-only install "$@"

rm -rf "$directory/root"
mkdir -p "$directory/root/usr/bin" "$directory/root/usr/sbin" "$directory/root/usr/lib"
for merged in bin sbin lib; do
	ln -s "usr/$merged" "$directory/root/$merged"
done
for package in "$apt_state"/cache/archives/*.deb; do
	dpkg-deb --fsys-tarfile "$package" |
		tar -x --keep-directory-symlink --no-same-owner -C "$directory/root"
done
mkdir -p "$directory/root/proc" "$directory/root/sys" "$directory/root/dev" \
	"$directory/root/run" "$directory/root/tmp" "$directory/root/etc"
# dash does so when it is configured.
[ -e "$directory/root/bin/sh" ] || ln -s dash "$directory/root/bin/sh"
cp /etc/passwd /etc/group /etc/nsswitch.conf "$directory/root/etc/"
rm -rf "$apt_state/cache"
echo "$*" >"$directory/packages"
