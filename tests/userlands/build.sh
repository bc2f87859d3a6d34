#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the programs of this directory for the userlands below DIRECTORY, each by the tools of its
# own suite where it is the tools that matter: build.sh DIRECTORY. A program goes to DIRECTORY/bin or,
# where it needs a root, to that root's /work.
set -eu
sources=$(cd "$(dirname "$0")" && pwd)
cd "$1"
mkdir -p bin
log=$PWD/build.log

newer() { # newer PROGRAM SOURCE: whether the program is newer than its source and its userland
	[ -e "$1" ] && [ "$1" -nt "$sources/$2" ] && [ "$1" -nt "$root/../packages" ]
}
in_root() {
	env -i PATH=/usr/bin HOME=/tmp TMPDIR=/tmp GOCACHE=/tmp/go GOTOOLCHAIN=local \
		GOTELEMETRY=off GOFLAGS=-buildvcs=false GO111MODULE=off CGO_ENABLED=0 \
		unshare --mount sh -c 'mount -t proc proc "$0/proc" && exec /usr/sbin/chroot "$0" "$@"' \
		"$root" "$@" >"$log" 2>&1 || {
		cat "$log" >&2
		exit 1
	}
}

# The oldest C library of all, so that the others run it too.
root=$PWD/bullseye/root
if ! newer bin/pool pool.c; then
	libraries=$(dirname "$(find "$root/usr/lib" -name crt1.o)")
	gcc --sysroot="$root" -B"$libraries/" -L"$libraries" -std=gnu11 -D_GNU_SOURCE -O2 -pthread \
		"$sources/pool.c" -o bin/pool "$libraries/libpthread.so.0"
fi
root=$PWD/trixie/root
newer bin/pool_musl pool.c ||
	musl-gcc -std=gnu11 -D_GNU_SOURCE -O2 -pthread "$sources/pool.c" -o bin/pool_musl
newer bin/pool_cpp pool.cpp ||
	g++ -std=c++20 -O2 -pthread -static-libstdc++ -static-libgcc "$sources/pool.cpp" -o bin/pool_cpp

for suite in bookworm trixie sid; do
	root=$PWD/$suite/root
	go=$(cd "$root" && echo usr/lib/go-1.*)
	newer "$root/work/pool_go" pool.go && continue
	cp "$sources/pool.go" "$root/work"
	in_root /usr/bin/env GOROOT="/$go" "/$go/bin/go" build -o /work/pool_go /work/pool.go
done

root=$PWD/sid/root
if ! newer "$root/work/pool_cpp" pool.cpp; then
	cp "$sources/pool.cpp" "$root/work"
	in_root /usr/bin/x86_64-linux-gnu-g++ -std=c++20 -O2 -pthread /work/pool.cpp -o /work/pool_cpp
fi

for suite in trixie sid; do
	root=$PWD/$suite/root
	newer "$root/work/pool_rs" pool.rs && continue
	cp "$sources/pool.rs" "$root/work"
	in_root /usr/bin/rustc -O --edition=2021 -C linker=x86_64-linux-gnu-gcc /work/pool.rs \
		-o /work/pool_rs
done

# parking_lot and what it needs, from Debian's sources of crates.
root=$PWD/trixie/root
crate() { # crate NAME DIRECTORY-PATTERN OPTION...
	name=$1
	source=$(cd "$root" && echo usr/share/cargo/registry/$2)
	shift 2
	in_root /usr/bin/rustc --edition=2021 --crate-type=rlib --crate-name="$name" -O \
		--cap-lints=allow -L /work --out-dir /work "/$source/src/lib.rs" "$@"
}
if ! newer "$root/work/pool_parking_lot" pool.rs; then
	crate cfg_if 'cfg-if-1*'
	crate scopeguard 'scopeguard-*'
	crate smallvec 'smallvec-1*'
	crate libc 'libc-0*' --cfg 'feature="std"'
	crate lock_api 'lock_api-*' --cfg 'feature="atomic_usize"' --cfg has_const_fn_trait_bound \
		--extern scopeguard=/work/libscopeguard.rlib
	crate parking_lot_core 'parking_lot_core-*' --extern cfg_if=/work/libcfg_if.rlib \
		--extern libc=/work/liblibc.rlib --extern smallvec=/work/libsmallvec.rlib
	crate parking_lot 'parking_lot-*' --extern lock_api=/work/liblock_api.rlib \
		--extern parking_lot_core=/work/libparking_lot_core.rlib
	in_root /usr/bin/rustc -O --edition=2021 -C linker=x86_64-linux-gnu-gcc --cfg parking_lot \
		-L /work --extern parking_lot=/work/libparking_lot.rlib /work/pool.rs \
		-o /work/pool_parking_lot
fi

[ JavaPool.class -nt "$sources/../workloads/JavaPool.java" ] ||
	javac --release 17 -d . "$sources/../workloads/JavaPool.java"
