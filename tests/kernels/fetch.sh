#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fetches the newest cloud kernel of a Debian suite and unpacks it, without installing anything:
# fetch.sh DIRECTORY SUITE ARCHITECTURE. Afterwards DIRECTORY/vmlinuz is the kernel and
# DIRECTORY/modules its modules. The mirror is the one that apt is configured with, and apt checks
# the signatures. What was fetched stays: a day old index is asked for again, and without network
# the kernel of last time is used.
set -eu
directory=$1 suite=$2 architecture=$3
# shellcheck source=scripts/suite.sh
. "$(dirname "$0")/../../scripts/suite.sh"
mkdir -p "$directory"
directory=$(cd "$directory" && pwd)

if [ -e "$directory/vmlinuz" ] && [ -n "$(find "$directory/vmlinuz" -mtime -1)" ]; then
	exit 0
fi

suite_open "$directory" "$suite" "$architecture"

# A kernel is one package or several, which depend on each other by their exact version.
dependencies() {
	with_apt apt-cache show --no-all-versions "$1" | sed -n 's/^Depends: //p' | tr ',' '\n' |
		sed -n 's/^ *\(linux-[^ ]*\) (= .*/\1/p'
}
kernel_packages() {
	found=
	set -- "linux-image-cloud-$architecture"
	while [ $# -gt 0 ]; do
		package=$1
		shift
		case " $found " in
		*" $package "*) continue ;;
		esac
		found="$found $package"
		# shellcheck disable=SC2046 # a list of words
		set -- "$@" $(dependencies "$package")
	done
	echo "$found"
}

fetch() {
	with_apt apt-get update >"$directory/apt/log" 2>&1 || return
	packages=$(kernel_packages)
	rm -rf "$directory/new" "$directory/debs"
	mkdir -p "$directory/new" "$directory/debs"
	# shellcheck disable=SC2086 # a list of words
	(cd "$directory/debs" && with_apt apt-get download $packages) >>"$directory/apt/log" 2>&1 || return
	for package in "$directory"/debs/*.deb; do
		dpkg-deb -x "$package" "$directory/new" || return
	done
}

if ! fetch; then
	tail -n 5 "$directory/apt/log" >&2
	[ -e "$directory/vmlinuz" ] || {
		echo "kernels: no kernel of $suite ($architecture) could be fetched: see" \
			"the lines above; the rows of other suites run with KERNELS=..." >&2
		exit 1
	}
	echo "kernels: cannot ask for newer kernels of $suite: using the last one" >&2
	exit 0
fi

# /lib in older packages, /usr/lib in newer ones; the image is in /boot or among the modules.
rm -rf "$directory/modules" "$directory/debs"
for modules in "$directory"/new/lib/modules/* "$directory"/new/usr/lib/modules/*; do
	[ -d "$modules/kernel" ] || continue
	for image in "$directory"/new/boot/vmlinuz-* "$modules/vmlinuz"; do
		[ ! -e "$image" ] || cp "$image" "$directory/vmlinuz.new"
	done
	basename "$modules" >"$directory/release"
	echo "$architecture" >"$directory/architecture"
	mv "$modules" "$directory/modules"
done
rm -rf "$directory/new"
if [ ! -e "$directory/vmlinuz.new" ] || [ ! -d "$directory/modules" ]; then
	echo "kernels: the packages of $suite hold no kernel image or no modules" >&2
	exit 1
fi
touch "$directory/vmlinuz.new"
mv "$directory/vmlinuz.new" "$directory/vmlinuz"
echo "kernels: $suite has $(cat "$directory/release")"
