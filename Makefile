# SPDX-License-Identifier: Apache-2.0
# workload_exporter: everything is built under build/; `make help` lists the targets.

MAKEFLAGS += --no-builtin-rules
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY:
Q := $(if $(V),,@)

BUILD   := build
DESTDIR ?=
prefix  ?= /usr/local
CC      := gcc
CXX     := g++
CLANG   ?= clang
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool /sbin/bpftool) bpftool)
PYTHON  ?= /usr/bin/python3
CLANG_FORMAT ?= clang-format

# What the build needs, and what the tests need beside it.
DEPS      := gcc libc6-dev make clang llvm bpftool pkgconf git libbpf-dev libelf-dev zlib1g-dev \
             libmicrohttpd-dev libgnutls28-dev libyaml-dev libcrypt-dev uthash-dev libcap-dev \
             libseccomp-dev libdeflate-dev libiberty-dev libzydis-dev libprotobuf-c-dev protobuf-c-compiler python3
DEPS_TEST := g++ libcriterion-dev libclang-rt-dev python3 python3-pytest python3-pytest-xdist python3-prometheus-client prometheus nginx-light \
             redis-server redis-tools apache2-utils iproute2 curl procps openjdk-17-jdk-headless \
             openssl systemd musl-tools golang-go postgresql mariadb-server mariadb-client \
             gunicorn php-fpm php-curl apache2-bin libtomcat10-embed-java libtomcat10-java memcached \
             varnish erlang-base nghttp2-client haproxy rsyslog python3-pyftpdlib python3-websockets \
             python3-grpcio libdw-dev ripgrep chromium-driver python3-selenium
DEPS_BENCH := bpftrace libbpf-tools bpfcc-tools linux-perf util-linux
# npm may have come with another nodejs than Debian's.
DEPS_DASHBOARDS := python3-yaml $(if $(shell command -v npm),,nodejs npm)
DEPS_PICTURES := chromium fonts-dejavu-core pngquant
DEPS_DEB  := dpkg-dev
# What the tests of the package make a system of, and what judges the package.
DEPS_DEB_TEST := debootstrap debian-archive-keyring lintian
DEPS_LINT := clang-format clang-tidy cppcheck shellcheck python3-pyflakes groff-base

# What the kernel matrix needs, and what its emulated arm64 machine runs from and is linked with.
DEPS_KERNELS := qemu-system-x86 qemu-system-arm busybox-static cpio zstd debian-archive-keyring \
                gcc-aarch64-linux-gnu
ARM64_USERLAND := $(filter %-dev,$(DEPS)) dash bash coreutils grep sed mount util-linux procps \
                  busybox-static bpftool llvm python3 python3-pytest python3-prometheus-client \
                  nginx-light redis-server redis-tools apache2-utils iproute2 curl openssl

NATIVE_ARCH := $(patsubst aarch64,arm64,$(patsubst x86_64,x86,$(shell uname -m)))
ARCH := $(NATIVE_ARCH)
CPUS := $(shell nproc)

VERSION  := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
REVISION := $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
BRANCH   := $(shell git rev-parse --abbrev-ref HEAD 2>/dev/null || echo unknown)

WARNINGS := -Wall -Wextra -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes -Wshadow \
            -Wvla -Wundef -Wwrite-strings -Wformat=2 -Werror
INCLUDES := -Iexporter -Ibpf -I$(BUILD)/bpf -I$(BUILD)/proto
CFLAGS   ?= -O2 -g
# A program, and what it carries of BPF, is the same whatever folder it was built in.
# Compilers take the folder from PWD, which may lead there by a symbolic link.
export PWD := $(CURDIR)
ANYWHERE := -ffile-prefix-map='$(CURDIR)'=.
HARDEN   := -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fPIE
ALL_CFLAGS := -std=gnu11 -fms-extensions -D_GNU_SOURCE $(WARNINGS) $(INCLUDES) $(CFLAGS) $(ANYWHERE)
# What the part that needs no kernel is linked with, and what else the exporter is.
LIBS_PURE := -lelf -lmicrohttpd -lgnutls -lyaml -lcrypt -lprotobuf-c -ldeflate -liberty -lZydis -lcap -lseccomp -lm
LIBS     := -lbpf -lz $(LIBS_PURE) -pthread
ASAN     := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -fno-pie -no-pie -O1

PROGRAMS := $(patsubst bpf/%.bpf.c,%,$(wildcard bpf/*.bpf.c))
SKELETONS := $(PROGRAMS:%=$(BUILD)/bpf/%.skel.h) $(BUILD)/bpf/skeletons.h

SOURCES := $(wildcard exporter/*/*.c)
PROTOS  := $(wildcard exporter/*/*.proto)
PROTO   := $(patsubst %.proto,$(BUILD)/proto/%.pb-c,$(notdir $(PROTOS)))
OBJECTS := $(SOURCES:%.c=$(BUILD)/%.o) $(PROTO:=.o)
# What the unit tests are linked with: all that makes no system call of BPF. In place of the rest
# is tests/unit/plain_kernel.c, and of the tables of features and commands their own.
PURE    := $(filter-out $(patsubst %,exporter/app/%.c,main measuring profile say) exporter/commands/check.c \
             exporter/commands/table.c exporter/features/mutexes.c exporter/features/features.c \
             exporter/kernel/%,$(SOURCES)) $(patsubst %,exporter/kernel/%.c,kernel quotas trees refusal)
UNIT    := $(wildcard tests/unit/*.c)
UNIT_OBJECTS := $(PURE:%.c=$(BUILD)/asan/%.o) $(UNIT:%.c=$(BUILD)/asan/%.o) $(PROTO:=.o)
WORKLOADS := $(patsubst tests/workloads/%.c,$(BUILD)/workloads/%,$(wildcard tests/workloads/*.c))
# The same program with another C library, and with none of its own to be mapped; those in C++.
ifeq ($(ARCH),$(NATIVE_ARCH))
WORKLOADS += $(patsubst %,$(BUILD)/workloads/%_musl,locker waiter burner) $(patsubst %,$(BUILD)/workloads/%_static,locker breeder burner)
WORKLOADS += $(patsubst tests/workloads/%.cpp,$(BUILD)/workloads/%,$(wildcard tests/workloads/*.cpp))
endif

# Stacks of programs that run, by the exporter's code and by libdwfl: for a live test.
STACKS := $(BUILD)/unwind_stacks
STACKS_OBJECTS := $(patsubst %,$(BUILD)/tests/unwind/%.o,stacks sampling ours theirs)

# A suite fails as well if it leaves something behind.
GUARD  := $(PYTHON) -B tests/guard.py
CACHED := env -u PYTHONDONTWRITEBYTECODE PYTHONPYCACHEPREFIX=$(abspath $(BUILD))/pycache
PYTEST := $(GUARD) $(CACHED) $(PYTHON) -m pytest -q -o cache_dir=$(abspath $(BUILD))/pytest
# What compares times (marked so) runs one after the other and on a quiet machine (test-times). All
# others judge what a busy machine keeps, side by side, and have failed when they fail. Attacks fill
# the tables of every exporter of the machine: one after the other.
TIMES  := $(GUARD) $(PYTHON) -B tests/times/run.py
SIDES  := $(shell expr 5 '*' $(CPUS) / 2)
beside = $(PYTEST) -m 'not times' --numprocesses $(SIDES) --dist loadgroup $(1)
serial = $(PYTEST) -m 'not times' $(1)

# What requests are about is tested with both backends.
LIVE_REQUESTS := $(patsubst %,tests/live/test_%.py,requests edges lifecycle handover network \
                   progress goodbyes fast_open waits turns uploads places interim_answers preambles \
                   one_way upgrades openings http2 little)

C_FILES := $(wildcard bpf/*.[ch] bpf/*/*.h exporter/*/*.[ch] tests/*/*.[ch])

.PHONY: help deps deps-test deps-bench deps-lint deps-kernels deps-deb all bpf-all run demo test gate test-all test-built \
        test-unit test-bpf test-live test-live-syscall test-services test-kernels workloads bench bench-render bench-scrape lint analysis format clean install readme

help: ## show the targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 22

deps: ## install what the build needs and this machine lacks
	$(Q)scripts/deps.sh $(DEPS)

deps-test:
	$(Q)scripts/deps.sh $(DEPS) $(DEPS_TEST) $(DEPS_DASHBOARDS)

deps-bench:
	$(Q)scripts/deps.sh $(DEPS) $(DEPS_TEST) $(DEPS_BENCH)

deps-lint:
	$(Q)scripts/deps.sh $(DEPS) $(DEPS_TEST) $(DEPS_LINT)

deps-kernels:
	$(Q)scripts/deps.sh $(DEPS) $(DEPS_TEST) $(DEPS_KERNELS)

deps-deb:
	$(Q)scripts/deps.sh $(DEPS) $(DEPS_TEST) $(DEPS_DEB) $(DEPS_DEB_TEST)

all: $(BUILD)/workload_exporter $(BUILD)/workload_exporter.8 ## build the exporter and its man page

# `run`, `demo` and `test` install first and then build in a second make, because which compiler
# and which libraries there are is only known afterwards.
run: deps ## install what is missing, build, and start on http://localhost:10070/metrics
	$(Q)$(MAKE) --no-print-directory all
	$(Q)scripts/run.sh $(BUILD)/workload_exporter $(ARGS)

demo: ## a thread-pool service under load, watched live in this terminal
	$(Q)scripts/deps.sh $(DEPS)
	$(Q)$(MAKE) --no-print-directory all $(BUILD)/workloads/pool_server $(BUILD)/workloads/pool_client
	$(Q)$(PYTHON) scripts/demo.py --build $(BUILD)

# What starts no exporter runs beside what does; all of it runs whatever fails, and ends with a table.
# Attacks mostly wait, and come first: beside what computes most.
TESTS_PURE := test-unit test-unwind test-fuzz
TESTS_REAL := test-hostile test-bpf test-services test-live-syscall

test: deps-test ## unit, machine, live and dashboard tests: what a change has to pass
	$(Q)$(PYTHON) -B tests/run.py test-built -- $(TESTS_PURE) -- $(TESTS_REAL)

gate: deps-test deps-lint deps-kernels ## what .ci/run runs: lint, test, and each kernel of the matrix for a minute
	$(Q)$(PYTHON) -B tests/run.py test-built -- lint $(TESTS_PURE) -- $(TESTS_REAL) -- test-kernels-load

test-all: deps-test deps-lint deps-kernels deps-deb ## everything; takes two hours
	$(Q)$(PYTHON) -B tests/run.py test-built -- lint $(TESTS_PURE) -- $(TESTS_REAL) \
		-- $(TIMED) analysis test-deb hostile test-mutants test-userlands test-kernels

# What two tests that run beside each other may need. The rest is built by the tests that need it.
test-built:
	$(Q)$(MAKE) --no-print-directory --jobs=$(CPUS) all asan bpf-all tools $(WORKLOADS) $(STACKS)

# --- BPF programs ---------------------------------------------------------------------------------

BPF_CFLAGS := -std=gnu11 -fms-extensions -Wno-microsoft-anon-tag -target bpf -mcpu=v3 -O2 -g \
              -Wall -Wextra -Werror -Wno-unused-parameter \
              -DWORKLOAD_BPF -Ibpf $(ANYWHERE)

define bpf_object # architecture of this machine's skeletons, or another that must compile as well
$(BUILD)/bpf/$(1)/%.bpf.o: bpf/%.bpf.c Makefile
	$$(if $$(Q),@echo "  BPF    $$@")
	@mkdir -p $$(@D)
	$$(Q)$$(CLANG) $$(BPF_CFLAGS) -D__TARGET_ARCH_$(1) -MMD -MP -c $$< -o $$@
endef
$(eval $(call bpf_object,x86))
$(eval $(call bpf_object,arm64))

$(BUILD)/bpf/%.skel.h: $(BUILD)/bpf/$(ARCH)/%.bpf.o
	$(if $(Q),@echo "  SKEL   $@")
	$(Q)$(BPFTOOL) gen skeleton $< name $*_bpf > $@

# SKELETON_LIST(X): X(name) for each of them.
$(BUILD)/bpf/skeletons.h: $(PROGRAMS:%=$(BUILD)/bpf/%.skel.h)
	$(Q)printf '%s\n' $(PROGRAMS:%='#include "%.skel.h"') \
		'#define SKELETON_LIST(X) ${PROGRAMS:%=X(%)}' > $@

bpf-all: $(foreach a,x86 arm64,$(PROGRAMS:%=$(BUILD)/bpf/$(a)/%.bpf.o)) ## compile the BPF programs for every architecture

# --- exporter -------------------------------------------------------------------------------------

$(BUILD)/version.h: FORCE
	@mkdir -p $(@D)
	@printf '#define VERSION "%s"\n#define REVISION "%s"\n#define BRANCH "%s"\n' \
		'$(VERSION)' '$(REVISION)' '$(BRANCH)' > $@.$$$$ && \
		{ cmp -s $@.$$$$ $@ && rm $@.$$$$ || mv $@.$$$$ $@; }
.PHONY: FORCE

vpath %.proto $(sort $(dir $(PROTOS)))
$(BUILD)/proto/%.pb-c.c $(BUILD)/proto/%.pb-c.h: %.proto
	$(if $(Q),@echo "  PROTO  $(BUILD)/proto/$*.pb-c.c")
	@mkdir -p $(@D)
	$(Q)protoc-c --c_out=$(BUILD)/proto --proto_path=$(<D) $<

$(BUILD)/proto/%.o: $(BUILD)/proto/%.c Makefile
	$(if $(Q),@echo "  CC     $@")
	$(Q)$(CC) -std=gnu11 -I$(BUILD)/proto $(CFLAGS) $(ANYWHERE) $(HARDEN) -MMD -MP -c $< -o $@

$(BUILD)/exporter/%.o: exporter/%.c Makefile | $(BUILD)/version.h $(SKELETONS) $(PROTO:=.h)
	$(if $(Q),@echo "  CC     $@")
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(HARDEN) -I$(BUILD) -MMD -MP -c $< -o $@

$(BUILD)/workload_exporter: $(OBJECTS)
	$(if $(Q),@echo "  LINK   $@")
	$(Q)$(CC) -pie -Wl,-z,relro,-z,now $^ $(LIBS) -o $@

$(BUILD)/workload_exporter.8: scripts/flag_table.py scripts/definitions.py \
		exporter/config/workload_exporter.8.in exporter/config/flags.c $(wildcard exporter/features/*.c) $(BUILD)/version.h
	$(if $(Q),@echo "  MAN    $@")
	$(Q)$(PYTHON) -B $< --man exporter/config/workload_exporter.8.in --version '$(VERSION)' > $@

# --- tests ----------------------------------------------------------------------------------------

$(BUILD)/asan/%.o: %.c Makefile | $(BUILD)/version.h $(PROTO:=.h)
	$(if $(Q),@echo "  CC     $@")
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(ASAN) -I$(BUILD) -Itests/unit -MMD -MP -c $< -o $@

# Nothing in them takes long but to compile them. Their texts would be most of the globals that ASan
# registers at each of a thousand starts, and LSan looks through at each end.
$(UNIT:%.c=$(BUILD)/asan/%.o): ASAN += -O0 -Wno-format-truncation --param asan-globals=0

# What is made of further files: pages for browsers.
$(addsuffix exporter/profiles/flame.o,$(BUILD)/ $(BUILD)/asan/ $(BUILD)/fuzz/obj/): $(wildcard exporter/profiles/flame.*)

$(BUILD)/unit_tests: $(UNIT_OBJECTS)
	$(if $(Q),@echo "  LINK   $@")
	$(Q)$(CC) $(ASAN) $^ -lcriterion $(LIBS_PURE) -o $@

# The whole exporter under the sanitizers; libraries are as they are.
$(SOURCES:%.c=$(BUILD)/asan/%.o): | $(SKELETONS)

$(BUILD)/asan/workload_exporter: $(SOURCES:%.c=$(BUILD)/asan/%.o) $(PROTO:=.o)
	$(if $(Q),@echo "  LINK   $@")
	$(Q)$(CC) $(ASAN) $^ $(LIBS) -o $@

.PHONY: asan
asan: $(BUILD)/asan/workload_exporter ## build the exporter under ASan and UBSan

# libFuzzer is clang's. What is fuzzed is an archive, so that a target takes from it what it needs.
FUZZ_SECONDS ?= 600
FUZZ_RUNS ?= -1
FUZZED    := $(filter-out exporter/app/main.c,$(SOURCES))
FUZZ_FLAGS := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -O1 \
              -Wno-gnu-variable-sized-type-not-at-end -Wno-microsoft-anon-tag
FUZZERS   := $(patsubst tests/fuzz/fuzz_%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ      ?= $(notdir $(FUZZERS))
FUZZ_OBJECTS := $(FUZZED:%.c=$(BUILD)/fuzz/obj/%.o) $(PROTO:$(BUILD)/%=$(BUILD)/fuzz/obj/%.o)

$(BUILD)/fuzz/obj/proto/%.o: $(BUILD)/proto/%.c Makefile
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link -g -w -I$(BUILD) -c $< -o $@

$(BUILD)/fuzz/obj/%.o: %.c Makefile | $(BUILD)/version.h $(PROTO:=.h)
	$(if $(Q),@echo "  FUZZ   $@")
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(ALL_CFLAGS) $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link -I$(BUILD) -MMD -MP -c $< -o $@

$(FUZZED:%.c=$(BUILD)/fuzz/obj/%.o): | $(SKELETONS)

$(BUILD)/fuzz/fuzzed.a: $(FUZZ_OBJECTS)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

$(BUILD)/fuzz/%: $(BUILD)/fuzz/obj/tests/fuzz/fuzz_%.o $(BUILD)/fuzz/fuzzed.a
	$(if $(Q),@echo "  LINK   $@")
	$(Q)$(CLANG) $(FUZZ_FLAGS) -fsanitize=fuzzer $^ $(LIBS) -o $@

$(BUILD)/fuzz/seeds: tests/fuzz/seeds.sh
	$(Q)rm -rf $@
	$(Q)CC=$(CC) $< $@

$(BUILD)/workloads/%: tests/workloads/%.c Makefile
	$(if $(Q),@echo "  CC     $@")
	@mkdir -p $(@D)
	$(Q)$(CC) $(WARNINGS) $(WORKLOAD_FLAGS) -MMD -MP -MF $@.d $< -o $@ -lm

WORKLOAD_FLAGS := -std=gnu11 -D_GNU_SOURCE -O2 -g -pthread

$(BUILD)/workloads/%: tests/workloads/%.cpp Makefile
	$(if $(Q),@echo "  CXX    $@")
	@mkdir -p $(@D)
	$(Q)$(CXX) -Wall -Wextra -Wno-missing-field-initializers -Wshadow -Werror \
		$(subst gnu11,gnu++20,$(WORKLOAD_FLAGS)) -MMD -MP -MF $@.d $< -o $@

$(BUILD)/workloads/%_musl: tests/workloads/%.c Makefile
	$(if $(Q),@echo "  CC     $@")
	@mkdir -p $(@D)
	$(Q)musl-gcc $(WORKLOAD_FLAGS) -MMD -MP -MF $@.d $< -o $@

$(BUILD)/workloads/%_static: tests/workloads/%.c Makefile
	$(if $(Q),@echo "  CC     $@")
	@mkdir -p $(@D)
	$(Q)$(CC) $(WORKLOAD_FLAGS) -static -MMD -MP -MF $@.d $< -o $@ 2> $@.log || { cat $@.log; false; }

test-unit: $(BUILD)/unit_tests ## unit tests under ASan and UBSan
	$(Q)$(GUARD) --processes $(BUILD)/unit_tests --jobs $(CPUS)

# Tables against libdw, which the exporter does not use.
$(BUILD)/unwind_oracle: tests/unwind/oracle.c $(patsubst %.c,$(BUILD)/%.o,$(wildcard exporter/unwind/*.c))
	$(if $(Q),@echo "  CC     $@")
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -MF $@.d $^ -ldw -lelf -ldeflate -lZydis -o $@

# What instructions tell beside what frame information tells.
$(BUILD)/unwind_code: tests/unwind/code.c $(patsubst %.c,$(BUILD)/%.o,$(wildcard exporter/unwind/*.c))
	$(if $(Q),@echo "  CC     $@")
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -MF $@.d $^ -lelf -ldeflate -lZydis -o $@

# It takes of the exporter what it uses.
$(BUILD)/tests/unwind/%.o: tests/unwind/%.c Makefile | $(BUILD)/version.h $(SKELETONS) $(PROTO:=.h)
	$(if $(Q),@echo "  CC     $@")
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -I$(BUILD) -Itests/unwind -MMD -MP -c $< -o $@

$(BUILD)/exporter.a: $(filter-out $(BUILD)/exporter/app/main.o,$(OBJECTS))
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

$(STACKS): $(STACKS_OBJECTS) $(BUILD)/exporter.a
	$(if $(Q),@echo "  LINK   $@")
	$(Q)$(CC) $^ -ldw $(LIBS) -o $@

.PHONY: test-unwind
test-unwind: UNWIND_FILES := $(wildcard /usr/bin /usr/sbin /usr/lib /usr/libexec)
test-unwind: UNWIND_CODE := $(wildcard $(patsubst %,/usr/lib/x86_64-linux-gnu/%,libc.so.6 libcrypto.so.3 libstdc++.so.6.*)) /usr/sbin/nginx
test-unwind: $(BUILD)/unwind_oracle $(BUILD)/unwind_code ## unwind tables of every program and library of this machine, by libdw's word
	$(Q)$(GUARD) --processes $(BUILD)/unwind_oracle $(UNWIND_FILES)
	$(Q)$(if $(filter x86,$(ARCH)),$(GUARD) --processes $(BUILD)/unwind_code $(UNWIND_CODE))

.PHONY: mutants test-mutants
test-mutants: MUTANTS := --every 10
test-mutants: mutants

# Without sanitizers, whose builds take longer: what they would find is found by `test-unit`.
mutants: all $(BUILD)/unit_tests ## do the unit tests notice a changed comparison or constant? (MUTANTS="--every 10")
	$(Q)$(PYTHON) -B tests/mutants/run.py $(BUILD)/mutants $(MUTANTS) \
		--compiler='$(CC) $(ALL_CFLAGS) -w -O0 -I$(BUILD) -Itests/unit' \
		--libraries='$(PROTO:=.o) -lcriterion $(LIBS_PURE)' --sources='$(PURE) $(UNIT)'

.PHONY: test-fuzz fuzz
test-fuzz: $(FUZZERS) $(BUILD)/fuzz/seeds ## every fuzz target for a few seconds, and what they write through parsers of others
	$(Q)$(GUARD) --processes tests/fuzz/run.sh $(BUILD) 2 -1 $(notdir $(FUZZERS))
	$(Q)$(PYTHON) -B tests/fuzz/parse.py $(BUILD)/fuzz/exposition tests/fuzz/corpus/exposition

fuzz: deps-test ## the same for longer (FUZZ_SECONDS=600 for each target, FUZZ_RUNS=N at most, FUZZ="elf proc")
	$(Q)$(MAKE) --no-print-directory $(FUZZERS) $(BUILD)/fuzz/seeds
	$(Q)tests/fuzz/run.sh $(BUILD) $(FUZZ_SECONDS) $(FUZZ_RUNS) $(FUZZ)
	$(if $(filter exposition,$(FUZZ)),$(Q)$(PYTHON) -B tests/fuzz/parse.py $(BUILD)/fuzz/exposition tests/fuzz/corpus/exposition --inputs 1000)

test-bpf: bpf-all all ## machine tests: every program through the kernel's verifier
	$(Q)$(PYTEST) tests/bpf

test-live: all asan $(WORKLOADS) $(STACKS) ## live tests against real servers on this kernel
	$(Q)$(call beside,tests/live)

test-live-syscall: export WORKLOAD_EXPORTER_FLAGS = --requests.backend=syscall
test-live-syscall: all $(WORKLOADS) ## those of requests, with the other backend
	$(Q)$(call beside,$(LIVE_REQUESTS))

TIMED := $(addprefix test-times-,live live-syscall hostile dashboards)
.PHONY: test-times $(TIMED)
test-times: deps-test ## tests that compare times, on a machine that does nothing else
	$(Q)$(PYTHON) -B tests/run.py test-built $(TIMED)

test-times-live: all $(WORKLOADS)
	$(Q)$(TIMES) live tests/live

test-times-live-syscall: export WORKLOAD_EXPORTER_FLAGS = --requests.backend=syscall
test-times-live-syscall: all $(WORKLOADS)
	$(Q)$(TIMES) live-syscall $(LIVE_REQUESTS)

test-times-hostile: all $(WORKLOADS)
	$(Q)$(TIMES) hostile tests/hostile

test-times-dashboards: all tools $(WORKLOADS)
	$(Q)$(TIMES) dashboards tests/dashboards

# Those that take long are in files whose names begin with long_, which pytest does not look for.
.PHONY: test-hostile hostile
test-hostile: all $(WORKLOADS) ## short attacks against the real exporter under the unit's limits
	$(Q)$(call serial,tests/hostile)

hostile: deps-test ## all attacks, with figures of each
	$(Q)$(MAKE) --no-print-directory all $(WORKLOADS)
	$(Q)$(PYTEST) tests/hostile $(wildcard tests/hostile/long_*.py)

# Suites of Debian in roots of their own, with what their services are built by and run on.
USERLANDS := $(BUILD)/userlands
USERLAND_FETCH := tests/userlands/fetch.sh $(USERLANDS)

.PHONY: test-userlands
test-userlands: deps-test ## locks and parks of the C libraries and runtimes of Debian's suites
	$(Q)$(USERLAND_FETCH)/bullseye bullseye libc6 libc6-dev libgcc-s1
	$(Q)$(USERLAND_FETCH)/bookworm bookworm libc6 coreutils golang-go
	$(Q)$(USERLAND_FETCH)/trixie trixie libc6-dev libgcc-s1 coreutils musl python3.13-minimal \
		openjdk-21-jre-headless openjdk-25-jre-headless golang-go rustc librust-parking-lot-dev
	$(Q)$(USERLAND_FETCH)/sid sid libc6-dev libgcc-s1 coreutils g++ golang-go rustc
	$(Q)$(MAKE) --no-print-directory all
	$(Q)tests/userlands/build.sh $(USERLANDS)
	$(Q)$(call serial,tests/userlands)
	$(Q)$(TIMES) userlands tests/userlands

# A Debian system of its own, the package, and one of a higher version to upgrade to.
PACKAGING := $(BUILD)/packaging

.PHONY: test-deb
test-deb: deps-deb ## the Debian package in a system of its own: install, run, upgrade, remove, purge
	$(Q)$(MAKE) --no-print-directory deb
	$(Q)$(MAKE) --no-print-directory deb BUILD=$(PACKAGING)/next VERSION=v999.0.0
	$(Q)$(GUARD) tests/packaging/system.sh $(PACKAGING) $(BUILD)/deb/*.deb
	$(Q)$(call serial,tests/packaging)

# Grafana's types, Prometheus' grammar and Kubernetes' schemas, and the scripts that use them.
TOOLS := $(BUILD)/dashboards
TOOL_FILES := $(wildcard tests/dashboards/*.json tests/dashboards/*.mjs tests/dashboards/*.ts)

$(TOOLS)/installed: tests/dashboards/package.json tests/dashboards/package-lock.json
	$(if $(Q),@echo "  NPM    $(TOOLS)")
	@mkdir -p $(TOOLS)
	@cp $^ tests/dashboards/.npmrc $(TOOLS)
	$(Q)cd $(TOOLS) && npm ci --no-audit --no-fund --loglevel=error >npm.log 2>&1 || \
		{ cat npm.log; exit 1; }
	@touch $@

tools: $(TOOLS)/installed
	@cp $(TOOL_FILES) $(TOOLS)
.PHONY: tools test-dashboards dashboards pictures

test-dashboards: all tools $(WORKLOADS) ## dashboards, rules and alerts against a real Prometheus
	$(Q)$(call beside,tests/dashboards)

test-services: all asan tools $(WORKLOADS) $(STACKS) ## test-live and test-dashboards, beside each other
	$(Q)$(call beside,tests/live tests/dashboards)

workloads: $(WORKLOADS)

RENDERS := $(wildcard $(patsubst %,exporter/%/*.c,base model exposition))
$(BUILD)/bench/render: tests/bench/render.c $(RENDERS:%.c=$(BUILD)/%.o) $(PROTO:=.o)
	$(if $(Q),@echo "  CC     $@")
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $^ $(LIBS_PURE) -o $@

$(BUILD)/bench/floor: tests/bench/floor.c Makefile
	$(if $(Q),@echo "  CC     $@")
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -MF $@.d $< -lbpf -o $@

bench-render: $(BUILD)/bench/render ## CPU time of rendering 10 000 series in each format
	$(Q)$<

bench-scrape: deps-test ## a scrape of 10 000 series beside other exporters (WRITE=tests/README.md)
	$(Q)$(MAKE) --no-print-directory all workloads
	$(Q)$(PYTHON) -B tests/bench/scrape.py $(if $(WRITE),--write $(WRITE))

bench: deps-bench ## what services pay for being observed (BENCH="nginx redis" VARIANTS=exporter PAIRS=4 BASE=/path/to/workload_exporter)
	$(Q)$(MAKE) --no-print-directory all workloads $(BUILD)/bench/floor
	$(Q)$(PYTHON) -B tests/bench/run.py $(if $(BENCH),--loads $(BENCH)) \
		$(if $(VARIANTS),--variants $(VARIANTS)) $(if $(PAIRS),--pairs $(PAIRS)) \
		$(if $(SECONDS),--seconds $(SECONDS)) $(if $(BASE),--base $(BASE))

.PHONY: bench-scale
bench-scale: deps-test ## how the exporter's cost grows with what it watches (BENCH="threads workloads")
	$(Q)$(MAKE) --no-print-directory all workloads
	$(Q)$(PYTHON) -B tests/bench/scale.py $(if $(BENCH),--crowds $(BENCH))

.PHONY: bench-readme
bench-readme: ## write the numbers of tests/README.md anew from build/bench/*.json
	$(Q)$(PYTHON) -B tests/bench/readme.py

.PHONY: soak
soak: deps-test ## ten minutes with services in trouble (SECONDS=600)
	$(Q)$(MAKE) --no-print-directory all workloads
	$(Q)$(PYTHON) -B tests/bench/soak.py $(if $(SECONDS),--seconds $(SECONDS))

ARM64_DIR  := $(BUILD)/kernels/userland-arm64
ARM64_MAKE  = $(MAKE) --no-print-directory BUILD=$(BUILD)/arm64 ARCH=arm64 \
              CC="aarch64-linux-gnu-gcc --sysroot=$(CURDIR)/$(ARM64_DIR)/root"

# What the emulated machines run.
.PHONY: kernels test-kernels-load
kernels: deps-kernels
	$(Q)tests/kernels/userland.sh $(ARM64_DIR) arm64 $(ARM64_USERLAND)
	$(Q)$(MAKE) --no-print-directory --jobs=$(CPUS) all bpf-all workloads
	$(Q)$(ARM64_MAKE) --jobs=$(CPUS) all workloads

# UPDATE=1: no tests, but the verifier's statistics written anew (tests/kernels/verifier.txt).
test-kernels: kernels ## the live tests on a matrix of kernels in emulated machines (KERNELS=...)
	$(Q)$(GUARD) $(PYTHON) -B tests/kernels/run.py $(KERNELS)

test-kernels-load: kernels ## each of these kernels: programs load, a request, a lock wait and a thread count
	$(Q)$(GUARD) $(PYTHON) -B tests/kernels/run.py --load $(KERNELS)

# --- upkeep ---------------------------------------------------------------------------------------

lint: deps-lint ## formatting, names, links, scripts
	$(Q)$(MAKE) --no-print-directory all
	$(Q)scripts/lint.sh

analysis: deps-lint ## what could happen on each path through a function: takes as long as a build
	$(Q)$(MAKE) --no-print-directory all
	$(Q)scripts/lint.sh paths cpp_check

format: ## format the C sources
	$(Q)$(CLANG_FORMAT) -i $(C_FILES)

readme: ## write the tables of metrics and of flags in the READMEs anew from metrics.def and the rows of flags
	$(Q)$(PYTHON) -B scripts/metric_table.py --write dashboards/README.md
	$(Q)$(PYTHON) -B scripts/flag_table.py --write exporter/README.md

pictures: ## draw the dashboards, with data of two minutes, into build/pictures
	$(Q)scripts/deps.sh $(DEPS) $(DEPS_TEST) $(DEPS_DASHBOARDS) $(DEPS_PICTURES)
	$(Q)$(MAKE) --no-print-directory all tools workloads
	$(Q)$(PYTHON) tests/dashboards/picture.py $(BUILD)/pictures

dashboards: ## write dashboards, rules and alerts anew from scripts/dashboards and thresholds.toml
	$(Q)$(PYTHON) scripts/dashboards

clean: ## remove build/
	$(Q)rm -rf $(BUILD)

install: all ## install the binary, its man page and the systemd units to DESTDIR and prefix
	$(Q)install -D -m 0755 $(BUILD)/workload_exporter $(DESTDIR)$(prefix)/bin/workload_exporter
	$(Q)install -D -m 0644 -t $(DESTDIR)$(prefix)/share/man/man8 $(BUILD)/workload_exporter.8
	$(Q)install -D -m 0644 -t $(DESTDIR)$(prefix)/lib/systemd/system \
		scripts/systemd/workload_exporter.service scripts/systemd/workload_exporter.socket
	$(Q)sed -i 's|/usr/local/bin|$(prefix)/bin|' \
		$(DESTDIR)$(prefix)/lib/systemd/system/workload_exporter.service
	$(Q)install -D -m 0644 scripts/systemd/workload_exporter.sysusers \
		$(DESTDIR)$(prefix)/lib/sysusers.d/workload_exporter.conf

# The time and the maintainer of a package: those of the last commit, as far as there is one.
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || stat -c %Y Makefile)
DEB_MAINTAINER ?= $(shell git log -1 --format='%an <%ae>' 2>/dev/null || echo 'unknown <root@localhost>')

.PHONY: deb
deb: export SOURCE_DATE_EPOCH := $(SOURCE_DATE_EPOCH)
deb: export DEB_MAINTAINER := $(DEB_MAINTAINER)
deb: ## build a Debian package, build/deb/*.deb
	$(Q)scripts/deps.sh $(DEPS) $(DEPS_DEB)
	$(Q)rm -rf $(BUILD)/deb
	$(Q)umask 022 && $(MAKE) --no-print-directory install prefix=/usr \
		DESTDIR=$(BUILD)/deb/debian/workload-exporter
	$(Q)scripts/debian/build.sh $(BUILD)/deb '$(VERSION)'

-include $(FUZZ_OBJECTS:.o=.d) $(FUZZERS:$(BUILD)/fuzz/%=$(BUILD)/fuzz/obj/tests/fuzz/fuzz_%.d)
-include $(OBJECTS:.o=.d) $(SOURCES:%.c=$(BUILD)/asan/%.d) $(UNIT_OBJECTS:.o=.d) $(WORKLOADS:=.d) $(STACKS_OBJECTS:.o=.d) $(wildcard $(BUILD)/bpf/*/*.d)
