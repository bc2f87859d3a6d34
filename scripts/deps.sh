#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the named Debian packages that this machine lacks, quietly, and nothing else. Servers
# among them are installed but not started. Says what it installs.
set -eu

# A package counts as installed in any architecture, and also when it is held.
installed=" $(dpkg-query -W -f='${db:Status-Status}:${Package} ' "$@" 2>/dev/null || true)"
missing=
for package in "$@"; do
	case "$installed" in
	*" installed:$package "*) ;;
	*) missing="$missing $package" ;;
	esac
done
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null; then
	echo "deps: no apt-get here. Install what corresponds to these Debian packages, then build" \
		"with \`make all\`:$missing" >&2
	exit 1
fi
sudo=
if [ "$(id -u)" -ne 0 ]; then
	sudo="sudo"
	command -v sudo >/dev/null || {
		echo "deps: not root, and no sudo. As root: apt-get install$missing" >&2
		exit 1
	}
fi

log=$(mktemp)
policy=/usr/sbin/policy-rc.d
made_policy=
cleanup() {
	rm -f "$log"
	[ -z "$made_policy" ] || $sudo rm -f "$policy"
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP

echo "deps: installing$missing"

# A package that brings a server must not start it here (see invoke-rc.d(8)).
if [ ! -e "$policy" ]; then
	made_policy=1
	printf '#!/bin/sh\nexit 101\n' | $sudo tee "$policy" >/dev/null
	$sudo chmod 0755 "$policy"
fi

# A machine that has just booted may be installing its own updates: wait for them.
install() {
	# shellcheck disable=SC2086 # a list of words
	$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
		-o DPkg::Lock::Timeout=120 $missing >"$log" 2>&1 </dev/null
}
if ! install; then
	$sudo apt-get update -q >/dev/null 2>&1 || true
	install || {
		tail -n 20 "$log" >&2
		echo "deps: apt-get could not install:$missing" >&2
		exit 1
	}
fi
