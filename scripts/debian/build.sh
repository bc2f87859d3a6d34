#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes a Debian package in DIRECTORY of what `make install` has put into
# DIRECTORY/debian/workload-exporter: build.sh DIRECTORY VERSION. VERSION is that of `git describe`. The
# same files give the same package, byte for byte: SOURCE_DATE_EPOCH is the only time in it.
#
# debhelper would write much the same scripts, but wants debian/ at the top of the sources, and a dozen
# packages more.
set -eu
umask 022
export LC_ALL=C SOURCE_DATE_EPOCH
sources=$(cd "$(dirname "$0")" && pwd)
top=$sources/../..
version=$2
cd "$1"
tree=debian/workload-exporter
documents=$tree/usr/share/doc/workload-exporter

# v0.1.0-rc1 < v0.1.0 < v0.1.0-5-g0123456 (five commits later). Without a tag: by the time, below any tag.
case $version in
v[0-9]*) version=$(echo "${version#v}" | sed 's/-rc/~rc/; s/-/+/g') ;;
*) version=0~$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y%m%d%H%M%S)+$(echo "$version" | tr -- - +) ;;
esac
version=$version-1

strip --strip-unneeded --remove-section=.comment --remove-section=.note "$tree/usr/bin/workload_exporter"
gzip -9n "$tree/usr/share/man/man8/workload_exporter.8"
install -D -m 0644 "$sources/default" "$tree/etc/default/workload_exporter"
install -D -m 0644 "$sources/web.yml" "$tree/etc/workload_exporter/web.yml"

mkdir -p "$documents"
{
	cat "$sources/copyright"
	sed 's/^$/./; s/^/ /' "$top/LICENSE.BSD-2-Clause"
} >"$documents/copyright"
gzip -9nc "$top/scripts/CHANGELOG.md" >"$documents/changelog.gz"
gzip -9nc >"$documents/changelog.Debian.gz" <<EOF
workload-exporter ($version) unstable; urgency=medium

  * What has changed is in changelog.gz.

 -- $DEB_MAINTAINER  $(date -u -R -d "@$SOURCE_DATE_EPOCH")
EOF

# dpkg-shlibdeps looks for the source package of what it looks at.
printf 'Source: workload-exporter\n\nPackage: workload-exporter\nArchitecture: any\n' >debian/control
mkdir "$tree/DEBIAN"
depends=$(dpkg-shlibdeps -O "$tree/usr/bin/workload_exporter")
depends=${depends#shlibs:Depends=}
[ -n "$depends" ]

(cd "$tree" && find . \( -path ./DEBIAN -o -path ./etc \) -prune -o -type f -printf '%P\0' | sort -z | xargs -0 md5sum) \
	>debian/md5sums
# As dpkg-gencontrol counts: each file in whole KiB.
size=$(find "$tree" -printf '%y %s\n' |
	awk '{ sum += $1 == "f" ? int(($2 + 1023) / 1024) : 1 } END { print sum }')
quoted() { # for the right side of sed's s###
	printf '%s' "$1" | sed 's/[&\\#]/\\&/g'
}
sed -e "s#@VERSION@#$version#; s#@ARCHITECTURE@#$(dpkg --print-architecture)#; s#@SIZE@#$size#" \
	-e "s#@DEPENDS@#$(quoted "$depends")#; s#@MAINTAINER@#$(quoted "$DEB_MAINTAINER")#" \
	"$sources/control.in" >"$tree/DEBIAN/control"
install -m 0644 debian/md5sums "$sources/conffiles" "$tree/DEBIAN"
install -m 0755 "$sources/postinst" "$sources/prerm" "$sources/postrm" "$tree/DEBIAN"

find "$tree" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group --threads-max=1 -Zxz --build "$tree" . >/dev/null
rm -r debian
