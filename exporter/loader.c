/* SPDX-License-Identifier: Apache-2.0 */
#include "loader.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/limits.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "read/objects.h"
#include "read/hooks.h"
#include "read/sizes.h"
#include "read/spares.h"
#include "read/uprobes.h"
#include "read/walk.h"

#define PROBES_MAX 64
#define VERIFIER_LOG_BYTES (256 * 1024)
#define KERNEL_TYPES "/sys/kernel/btf/vmlinux"

/* Its part of the loader's probes. */
struct part {
	size_t first_probe;
	size_t len;
};

struct loader {
	const struct privileges *privileges; /* only while loading */
	char *logs; /* the verifier's, VERIFIER_LOG_BYTES per probe; only while loading */
	unsigned int wanted; /* features, as a mask */
	enum backend backend; /* asked for; afterwards the one that is loaded */
	struct map_sizes sizes;
	bool spares; /* are loaded */
	struct feature features[FEATURES];
	struct object objects[FEATURES];
	struct part parts[FEATURES];
	struct probe_row probes[PROBES_MAX];
	char probe_reasons[PROBES_MAX][HOOKS_REASON_BYTES];
	struct bpf_program *programs[PROBES_MAX];
	struct bpf_link *links[PROBES_MAX];
	size_t probes_len;
	struct walks walks;
};

/* The socket backend where the kernel has its hooks, unless one or the other was asked for. */
static int requests_open(struct loader *loader, struct object *object)
{
	int r;

	if (loader->backend != BACKEND_SYSCALL) {
		r = object_open(OBJECT_REQUESTS, &loader->sizes, loader->spares, object);
		if (r || loader->backend == BACKEND_SOCKET || object_has_hooks(object)) {
			loader->backend = BACKEND_SOCKET;
			return r;
		}
		object_close(object);
	}
	loader->backend = BACKEND_SYSCALL;
	return object_open(OBJECT_REQUESTS_SYSCALL, &loader->sizes, loader->spares, object);
}

static const struct {
	const char *name;
	enum object_id object;
	unsigned int since_major, since_minor;
	enum feature_id needs; /* loaded before; itself: none */
} feature_table[FEATURES] = {
	[FEATURE_DISCOVERY] = { "discovery", OBJECT_DISCOVERY, 5, 15, FEATURE_DISCOVERY },
	[FEATURE_REQUESTS] = { "requests", OBJECT_REQUESTS, 5, 15, FEATURE_DISCOVERY },
	[FEATURE_THREADS] = { "threads", OBJECT_THREADS, 5, 15, FEATURE_DISCOVERY },
	[FEATURE_MUTEX] = { "mutex", OBJECT_MUTEX, 5, 15, FEATURE_THREADS },
};

/* --- why not ------------------------------------------------------------------------------- */

static bool probe_is_of(const struct loader *loader, size_t probe, enum feature_id id)
{
	return strcmp(loader->probes[probe].feature, feature_table[id].name) == 0;
}

static const char *probe_log(const struct loader *loader, size_t probe)
{
	return loader->logs + probe * VERIFIER_LOG_BYTES;
}

/* Finds the hooks of a feature that this kernel does not have, and names them in @missing. */
static void feature_find_missing(struct loader *loader, enum feature_id id, char *missing,
				 size_t size)
{
	const struct part *part = &loader->parts[id];

	hooks_find_missing(loader->programs + part->first_probe, part->len,
			   loader->probe_reasons + part->first_probe, missing, size);
}

/* Each program has a log of its own: the one that was written to is the one that was refused. */
static void feature_find_refused(struct loader *loader, enum feature_id id, struct refusal *refusal)
{
	for (size_t i = 0; i < loader->probes_len; i++) {
		if (!probe_is_of(loader, i, id) || !*probe_log(loader, i))
			continue;
		refusal->program = loader->probes[i].probe;
		refusal->log = probe_log(loader, i);
		text_copy(loader->probe_reasons[i], HOOKS_REASON_BYTES,
			  "the verifier of this kernel refuses it");
	}
}

static void feature_fail(struct loader *loader, enum feature_id id, const char *step, int error)
{
	struct feature *feature = &loader->features[id];
	char missing[REFUSAL_REASON_BYTES / 2], needs[64];
	struct refusal refusal = {
		.step = step,
		.error = error,
		.missing = missing,
		.program = "",
		.log = "",
		.needs = needs,
		.btf = access(KERNEL_TYPES, R_OK) == 0,
		.privileges = loader->privileges,
	};

	snprintf(needs, sizeof(needs), "Linux %u.%u or later", feature->since_major,
		 feature->since_minor);
	feature_find_missing(loader, id, missing, sizeof(missing));
	if (error == -EINVAL && !*missing)
		hooks_find_missing_map(loader->objects[id].bpf, missing, sizeof(missing));
	feature_find_refused(loader, id, &refusal);
	refusal_explain(&refusal, feature->reason, feature->remedy);
}

/* --- loading ------------------------------------------------------------------------------- */

/* The first object makes the shared maps; the others borrow them by name. */
static int object_share_maps(struct loader *loader, enum feature_id id)
{
	struct bpf_map *map;
	int fd, r;

	bpf_object__for_each_map(map, loader->objects[id].bpf)
	{
		if (strchr(bpf_map__name(map), '.'))
			continue; /* .rodata, .bss: the object's own */
		fd = loader_map_fd(loader, bpf_map__name(map));
		r = fd >= 0 ? bpf_map__reuse_fd(map, fd) : map_sizes_apply(&loader->sizes, map);
		if (r)
			return r;
	}
	return 0;
}

static int program_attach(struct loader *loader, size_t probe)
{
	struct bpf_program *program = loader->programs[probe];
	const char *name = bpf_program__name(program), *map = walk_program_map(name);

	if (hook_is_by_process(bpf_program__section_name(program)))
		return hooks_can_probe_processes() ? 0 : -EOPNOTSUPP;
	if (walk_is_program(name))
		return walks_attach(&loader->walks, program, map ? loader_map_fd(loader, map) : -1);
	loader->links[probe] = bpf_program__attach(program);
	return loader->links[probe] ? 0 : -errno;
}

static void feature_list_probes(struct loader *loader, enum feature_id id)
{
	struct part *part = &loader->parts[id];
	struct bpf_program *program;

	part->first_probe = loader->probes_len;
	bpf_object__for_each_program(program, loader->objects[id].bpf)
	{
		if (loader->probes_len == PROBES_MAX)
			return;
		if (!bpf_program__autoload(program))
			continue;
		part->len++;
		if (hook_is_by_process(bpf_program__section_name(program)))
			uprobes_prepare(program);
		loader->programs[loader->probes_len] = program;
		bpf_program__set_log_buf(program,
					 loader->logs + loader->probes_len * VERIFIER_LOG_BYTES,
					 VERIFIER_LOG_BYTES);
		loader->probes[loader->probes_len++] = (struct probe_row){
			.feature = feature_table[id].name,
			.probe = bpf_program__name(program),
		};
	}
}

static int feature_attach(struct loader *loader, enum feature_id id)
{
	for (size_t i = 0; i < loader->probes_len; i++) {
		int r;

		if (!probe_is_of(loader, i, id))
			continue;
		r = program_attach(loader, i);
		if (r) {
			char step[128];

			snprintf(step, sizeof(step), "attaching %s", loader->probes[i].probe);
			snprintf(loader->probe_reasons[i], HOOKS_REASON_BYTES,
				 "cannot be attached: %s", strerror(-r));
			feature_fail(loader, id, step, r);
			return r;
		}
		loader->probes[i].attached = 1;
	}
	return 0;
}

/* Half a feature would give half the numbers: what could be attached is detached again. */
static void feature_detach(struct loader *loader, enum feature_id id)
{
	for (size_t i = 0; i < loader->probes_len; i++) {
		if (!probe_is_of(loader, i, id))
			continue;
		bpf_link__destroy(TAKE_PTR(loader->links[i]));
		walks_detach(&loader->walks, loader->probes[i].probe);
		loader->probes[i].attached = 0;
	}
}

/* Pushes every slot but SLOT_OTHER, the lowest last: low slots are taken first. */
static int slots_free_all(const struct loader *loader, const char *map, __u32 count)
{
	int fd = loader_map_fd(loader, map);

	for (__u32 slot = count - 1; slot > SLOT_OTHER; slot--)
		if (bpf_map_update_elem(fd, NULL, &slot, BPF_ANY))
			return -errno;
	return 0;
}

static int loader_fill_slots(const struct loader *loader)
{
	int r;

	r = slots_free_all(loader, "free_trees", TREES_MAX);
	if (!r)
		r = slots_free_all(loader, "free_endpoints", loader->sizes.endpoints);
	if (!r)
		r = slots_free_all(loader, "free_pools", loader->sizes.pools);
	return r;
}

static void feature_open(struct loader *loader, enum feature_id id)
{
	struct feature *feature = &loader->features[id];
	int r;

	feature->name = feature_table[id].name;
	feature->optional = id == FEATURE_MUTEX;
	feature->since_major = feature_table[id].since_major;
	feature->since_minor = feature_table[id].since_minor;
	if (!(loader->wanted & 1U << id)) {
		text_copy(feature->reason, sizeof(feature->reason), "not wanted");
		return;
	}
	if (id == FEATURE_REQUESTS)
		r = requests_open(loader, &loader->objects[id]);
	else
		r = object_open(feature_table[id].object, &loader->sizes, loader->spares,
				&loader->objects[id]);
	if (id == FEATURE_REQUESTS && loader->backend == BACKEND_SOCKET) {
		feature->since_major = 6; /* its three tracepoints of the socket layer */
		feature->since_minor = 3;
	}
	if (r)
		feature_fail(loader, id, "opening", r);
	else
		feature_list_probes(loader, id);
}

static int object_load(struct loader *loader, enum feature_id id, const char **step)
{
	int r;

	*step = "sharing maps";
	r = object_share_maps(loader, id);
	if (!r) {
		*step = "loading";
		r = bpf_object__load(loader->objects[id].bpf);
	}
	if (!r && id == FEATURE_DISCOVERY) {
		*step = "filling tables";
		r = loader_fill_slots(loader);
	}
	return r;
}

static void feature_load(struct loader *loader, enum feature_id id)
{
	const char *step;
	int r;

	if (!loader->objects[id].bpf)
		return; /* it could not be opened */
	r = object_load(loader, id, &step);
	if (r)
		feature_fail(loader, id, step, r);
	else if (feature_attach(loader, id))
		feature_detach(loader, id);
	else
		loader->features[id].on = true;
}

static void feature_load_after(struct loader *loader, enum feature_id id)
{
	enum feature_id needs = feature_table[id].needs;
	struct feature *feature = &loader->features[id];
	char missing[REFUSAL_REASON_BYTES];

	if (needs == id || loader->features[needs].on) {
		feature_load(loader, id);
		return;
	}
	snprintf(feature->reason, sizeof(feature->reason), "needs the feature %s",
		 feature_table[needs].name);
	snprintf(feature->remedy, sizeof(feature->remedy), "do first what %s asks for",
		 feature_table[needs].name);
	feature_find_missing(loader, id, missing, sizeof(missing));
}

static void features_load(struct loader *loader)
{
	for (int id = 0; id < FEATURES; id++) {
		feature_open(loader, id);
	}
	for (int id = 0; id < FEATURES; id++)
		if (loader->wanted & 1U << id)
			feature_load_after(loader, id);
}

int loader_new(const struct privileges *privileges, unsigned int features, enum backend backend,
	       struct loader **out)
{
	/* Pages that no refused program is written about are never touched. */
	_cleanup_(cleanup_free) char *logs = calloc(PROBES_MAX, VERIFIER_LOG_BYTES);
	struct loader *loader = calloc(1, sizeof(*loader));
	struct map_sizes sizes;
	int r = map_sizes_read(&sizes);

	if (r < 0 || !loader || !logs) {
		free(loader);
		return r < 0 ? r : -ENOMEM;
	}
	libbpf_set_print(NULL); /* reasons are reported by feature */
	loader->sizes = sizes;
	loader->wanted = features;
	loader->spares = spares_are_needed();
	loader->backend = backend;
	loader->privileges = privileges;
	loader->logs = logs;
	features_load(loader);
	loader->privileges = NULL;
	loader->logs = NULL;
	*out = loader;
	return 0;
}

void loader_free(struct loader *loader)
{
	if (!loader)
		return;
	walks_detach_all(&loader->walks);
	for (size_t i = 0; i < loader->probes_len; i++)
		bpf_link__destroy(loader->links[i]);
	for (int id = 0; id < FEATURES; id++)
		object_close(&loader->objects[id]);
	free(loader);
}

/* --- questions ----------------------------------------------------------------------------- */

const struct feature *loader_feature(const struct loader *loader, enum feature_id feature)
{
	return &loader->features[feature];
}

const struct probe_row *loader_probes(const struct loader *loader, size_t *len)
{
	*len = loader->probes_len;
	return loader->probes;
}

const char *loader_probe_hook(const struct loader *loader, size_t probe)
{
	return bpf_program__section_name(loader->programs[probe]);
}

const char *loader_probe_reason(const struct loader *loader, size_t probe)
{
	if (loader->probes[probe].attached)
		return "";
	return *loader->probe_reasons[probe] ? loader->probe_reasons[probe] : "its feature is off";
}

int loader_map_fd(const struct loader *loader, const char *name)
{
	struct bpf_map *map;

	for (int id = 0; id < FEATURES; id++) {
		if (!loader->objects[id].bpf)
			continue;
		map = bpf_object__find_map_by_name(loader->objects[id].bpf, name);
		if (map && bpf_map__fd(map) >= 0)
			return bpf_map__fd(map);
	}
	return -ENOENT;
}

const struct map_sizes *loader_sizes(const struct loader *loader)
{
	return &loader->sizes;
}

enum backend loader_backend(const struct loader *loader)
{
	return loader->backend;
}

int loader_walk(struct loader *loader, enum walk walk)
{
	return walks_run(&loader->walks, walk, NULL, NULL);
}

int loader_walk_rows(struct loader *loader, enum walk walk, walk_row_fn row, void *arg)
{
	return walks_run(&loader->walks, walk, row, arg);
}

struct bpf_program *loader_program(const struct loader *loader, const char *name)
{
	for (size_t i = 0; i < loader->probes_len; i++)
		if (strcmp(loader->probes[i].probe, name) == 0)
			return loader->programs[i];
	return NULL;
}

static int program_info(const struct bpf_program *program, struct bpf_prog_info *info)
{
	__u32 len = sizeof(*info);
	int fd = bpf_program__fd(program);

	memset(info, 0, sizeof(*info));
	return fd < 0 ? fd : bpf_obj_get_info_by_fd(fd, info, &len);
}

uint64_t loader_skipped(const struct loader *loader)
{
	return spares_skipped(loader->programs, loader->probes_len);
}

size_t loader_programs(const struct loader *loader, struct program_row *rows, size_t cap)
{
	struct bpf_prog_info info;
	size_t len = 0;

	for (size_t i = 0; i < loader->probes_len && len < cap; i++) {
		if (program_info(loader->programs[i], &info))
			continue;
		rows[len++] = (struct program_row){
			.program = loader->probes[i].probe,
			.run_ns = info.run_time_ns,
			.runs = info.run_cnt,
		};
	}
	return len;
}
