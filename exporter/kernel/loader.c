/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/loader.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "kernel/hooks.h"
#include "kernel/objects.h"
#include "kernel/probes.h"
#include "kernel/spares.h"
#include "kernel/types.h"
#include "kernel/uprobes.h"
#include "kernel/walk.h"

#define KERNEL_TYPES "/sys/kernel/btf/vmlinux"

/* Its part of the loader's probes. */
struct part {
	size_t first_probe;
	size_t len;
};

struct loader {
	const struct loader_options *options; /* only while loading */
	const struct feature_plan *plans[LOADER_FEATURES_MAX];
	size_t features_len;
	struct types types; /* only while loading */
	struct object_knobs knobs;
	struct feature_status features[LOADER_FEATURES_MAX];
	struct object objects[LOADER_FEATURES_MAX];
	struct part parts[LOADER_FEATURES_MAX];
	struct probes probes; /* of the objects that are open */
	struct walks walks;
	struct perf_events perf;
};

/* --- why not ------------------------------------------------------------------------------- */

static bool probe_is_of(const struct loader *loader, size_t probe, size_t id)
{
	return strcmp(loader->probes.rows[probe].feature, loader->plans[id]->name) == 0;
}

/* Finds the hooks of a feature that this kernel does not have, and names them in @missing. */
static void feature_find_missing(struct loader *loader, size_t id, char *missing, size_t size)
{
	const struct part *part = &loader->parts[id];

	missing[0] = '\0';
	if (!part->len)
		return;
	hooks_find_missing(types_get(&loader->types), loader->probes.programs + part->first_probe,
			   part->len, loader->probes.reasons + part->first_probe, missing, size);
}

/* Each program has a log of its own: the one that was written to is the one that was refused. */
static void feature_find_refused(struct loader *loader, size_t id, struct refusal *refusal)
{
	for (size_t i = 0; i < loader->probes.len; i++) {
		if (!probe_is_of(loader, i, id) || !*probe_log(&loader->probes, i))
			continue;
		refusal->program = loader->probes.rows[i].probe;
		refusal->log = probe_log(&loader->probes, i);
		text_copy(loader->probes.reasons[i], HOOKS_REASON_BYTES,
			  "the verifier of this kernel refuses it");
	}
}

static void feature_fail(struct loader *loader, size_t id, const char *step, int error)
{
	struct feature_status *feature = &loader->features[id];
	char missing[REFUSAL_REASON_BYTES / 2], needs[64];
	struct refusal refusal = {
		.step = step,
		.error = error,
		.missing = missing,
		.program = "",
		.log = "",
		.needs = needs,
		.btf = access(KERNEL_TYPES, R_OK) == 0,
		.privileges = loader->options->privileges,
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

/* Before it is made. */
static int map_size(const struct loader *loader, struct bpf_map *map)
{
	unsigned int entries = plans_map_entries(loader->plans, loader->features_len,
						 loader->options->wanted, &loader->knobs.sizes,
						 bpf_map__name(map));

	return entries ? bpf_map__set_max_entries(map, entries) : 0;
}

/* The first object makes the shared maps; the others borrow them by name. */
static int object_share_maps(struct loader *loader, size_t id)
{
	struct bpf_map *map;
	int fd, r;

	bpf_object__for_each_map(map, loader->objects[id].bpf)
	{
		if (strchr(bpf_map__name(map), '.'))
			continue; /* .rodata, .bss: the object's own */
		fd = loader_map_fd(loader, bpf_map__name(map));
		r = fd >= 0 ? bpf_map__reuse_fd(map, fd) : map_size(loader, map);
		if (r)
			return r;
	}
	return 0;
}

static int program_attach(struct loader *loader, size_t probe)
{
	struct bpf_program *program = loader->probes.programs[probe];
	const char *name = bpf_program__name(program);

	if (hook_is_by_process(bpf_program__section_name(program)))
		return hooks_can_probe_processes() ? 0 : -EOPNOTSUPP;
	if (perf_events_have(&loader->perf, name))
		return perf_events_attach(&loader->perf, program, loader->knobs.sizes.cpus);
	if (walks_have(&loader->walks, name))
		return walks_attach(&loader->walks, program);
	loader->probes.links[probe] = bpf_program__attach(program);
	return loader->probes.links[probe] ? 0 : -errno;
}

static int feature_attach(struct loader *loader, size_t id)
{
	for (size_t i = 0; i < loader->probes.len; i++) {
		int r;

		if (!probe_is_of(loader, i, id))
			continue;
		r = program_attach(loader, i);
		if (r) {
			char step[128];

			snprintf(step, sizeof(step), "attaching %s", loader->probes.rows[i].probe);
			snprintf(loader->probes.reasons[i], HOOKS_REASON_BYTES,
				 "cannot be attached: %s", strerror(-r));
			feature_fail(loader, id, step, r);
			return r;
		}
		loader->probes.rows[i].attached = 1;
	}
	return 0;
}

/* Half a feature would give half the numbers: what could be attached is detached again. */
static void feature_detach(struct loader *loader, size_t id)
{
	for (size_t i = 0; i < loader->probes.len; i++) {
		if (!probe_is_of(loader, i, id))
			continue;
		bpf_link__destroy(TAKE_PTR(loader->probes.links[i]));
		walks_detach(&loader->walks, loader->probes.rows[i].probe);
		perf_events_detach(&loader->perf, loader->probes.rows[i].probe);
		loader->probes.rows[i].attached = 0;
	}
}

static void feature_since(struct feature_status *feature, const struct feature_backend *backend)
{
	struct utsname machine = { 0 };

	uname(&machine);
	feature->since_major = backend->since_major ? backend->since_major : 5;
	feature->since_minor = backend->since_major ? backend->since_minor
						    : refusal_oldest_minor(machine.machine);
}

/* The backend that was asked for; else the first whose hooks the kernel has, else the last. */
static int feature_open_object(struct loader *loader, size_t id)
{
	const struct feature_plan *plan = loader->plans[id];
	size_t len = plan_backends(plan);
	int asked = loader->options->backends[id], r;

	if (!len)
		return 0;
	for (size_t i = asked == BACKEND_AUTO ? 0 : (size_t)asked;; i++) {
		const struct feature_backend *backend = &plan->backends[i];
		struct feature_status *feature = &loader->features[id];

		feature->backend = backend->label;
		feature->bytes = backend->bytes;
		feature_since(feature, backend);
		r = object_open(backend->object, &loader->knobs, &loader->objects[id]);
		if (r || asked != BACKEND_AUTO || i + 1 == len ||
		    object_has_hooks(&loader->objects[id], types_get(&loader->types)))
			return r;
		object_close(&loader->objects[id]);
	}
}

static void feature_open(struct loader *loader, size_t id)
{
	struct feature_status *feature = &loader->features[id];
	int r;

	if (!(loader->options->wanted & 1U << id)) {
		text_copy(feature->reason, sizeof(feature->reason), "not wanted");
		return;
	}
	r = feature_open_object(loader, id);
	if (r)
		feature_fail(loader, id, "opening", r);
}

static int feature_make(struct loader *loader, size_t id, const char **step)
{
	int r = 0;

	*step = "sharing maps";
	if (loader->objects[id].bpf)
		r = object_share_maps(loader, id);
	if (!r && loader->objects[id].bpf) {
		*step = "loading";
		r = bpf_object__load(loader->objects[id].bpf);
	}
	if (!r && loader->plans[id]->fill) {
		*step = "filling tables";
		r = loader->plans[id]->fill(loader);
	}
	return r;
}

static void feature_load(struct loader *loader, size_t id)
{
	const char *step;
	int r;

	if (*loader->features[id].reason)
		return; /* its object could not be opened */
	r = feature_make(loader, id, &step);
	if (r)
		feature_fail(loader, id, step, r);
	else if (feature_attach(loader, id))
		feature_detach(loader, id);
	else
		loader->features[id].on = true;
}

/* The index of the feature that @id needs; its own: none. */
static size_t feature_needed(const struct loader *loader, size_t id)
{
	const char *requires = loader->plans[id]->requires;

	for (size_t i = 0; requires && i < id; i++)
		if (!strcmp(requires, loader->plans[i]->name))
			return i;
	return id;
}

static void feature_load_after(struct loader *loader, size_t id)
{
	size_t needed = feature_needed(loader, id);
	struct feature_status *feature = &loader->features[id];
	char missing[REFUSAL_REASON_BYTES];

	if (needed == id || loader->features[needed].on) {
		feature_load(loader, id);
		return;
	}
	snprintf(feature->reason, sizeof(feature->reason), "needs the feature %s",
		 loader->plans[needed]->name);
	snprintf(feature->remedy, sizeof(feature->remedy), "do first what %s asks for",
		 loader->plans[needed]->name);
	feature_find_missing(loader, id, missing, sizeof(missing));
}

/* What is known of the features before anything is opened. */
static void features_list(struct loader *loader)
{
	for (size_t id = 0; id < loader->features_len; id++) {
		const struct feature_plan *plan = loader->plans[id];

		loader->features[id] = (struct feature_status){
			.name = plan->name,
			.optional = plan->optional,
			.supports = plan->supports,
		};
		feature_since(&loader->features[id], &plan->backends[0]);
		for (size_t i = 0; i < FEATURE_WALKS_MAX && plan->walks[i].program; i++)
			walks_add(&loader->walks, &plan->walks[i]);
		for (size_t i = 0; i < FEATURE_PERF_MAX && plan->perf[i].program; i++)
			perf_events_add(&loader->perf, &plan->perf[i]);
	}
}
_Static_assert(WALK_PROGRAMS_MAX >= LOADER_FEATURES_MAX * FEATURE_WALKS_MAX,
	       "there is no room for the walks of all features");
_Static_assert(PERF_PROGRAMS_MAX >= LOADER_FEATURES_MAX * FEATURE_PERF_MAX,
	       "there is no room for the perf events of all features");

/* Lists the programs of all objects. 0 or -ENOMEM. */
static int probes_list(struct loader *loader)
{
	size_t len = 0;
	int r;

	for (size_t id = 0; id < loader->features_len; id++)
		len += object_programs(&loader->objects[id]);
	r = probes_init(&loader->probes, len);
	for (size_t id = 0; !r && id < loader->features_len; id++) {
		struct part *part = &loader->parts[id];

		part->first_probe = loader->probes.len;
		probes_add(&loader->probes, loader->plans[id]->name, loader->objects[id].bpf);
		part->len = loader->probes.len - part->first_probe;
	}
	return r;
}

static int features_load(struct loader *loader)
{
	int r;

	for (size_t id = 0; id < loader->features_len; id++)
		feature_open(loader, id);
	r = probes_list(loader);
	if (r)
		return r;
	types_forget(&loader->types);
	for (size_t id = 0; id < loader->features_len; id++)
		if (loader->options->wanted & 1U << id)
			feature_load_after(loader, id);
	return 0;
}

/* Also of a feature that is not wanted: another one may make its tables. */
static void tables_size(struct loader *loader)
{
	for (size_t id = 0; id < loader->features_len; id++)
		if (loader->plans[id]->size)
			loader->plans[id]->size(&loader->knobs.sizes);
}

int loader_new(const struct loader_options *options, struct loader **out)
{
	struct loader *loader = calloc(1, sizeof(*loader));
	int r;

	if (!loader)
		return -ENOMEM;
	libbpf_set_print(NULL); /* reasons are reported by feature */
	loader->options = options;
	memcpy(loader->plans, options->plans, sizeof(loader->plans));
	loader->features_len = options->plans_len;
	features_list(loader);
	r = object_knobs_read(&loader->knobs, options->proc_root, types_get(&loader->types));
	if (!r)
		tables_size(loader);
	if (!r)
		r = features_load(loader);
	types_forget(&loader->types);
	loader->options = NULL;
	probes_loaded(&loader->probes);
	if (r)
		loader_free(loader);
	else
		*out = loader;
	return r;
}

void loader_free(struct loader *loader)
{
	if (!loader)
		return;
	walks_detach_all(&loader->walks);
	perf_events_detach_all(&loader->perf);
	probes_detach(&loader->probes);
	for (size_t id = 0; id < loader->features_len; id++)
		object_close(&loader->objects[id]);
	probes_free(&loader->probes);
	free(loader);
}

/* --- questions ----------------------------------------------------------------------------- */

const struct feature_status *loader_feature(const struct loader *loader, size_t feature)
{
	return &loader->features[feature];
}

const struct probe_row *loader_probes(const struct loader *loader, size_t *len)
{
	*len = loader->probes.len;
	return loader->probes.rows;
}

const char *loader_probe_hook(const struct loader *loader, size_t probe)
{
	return bpf_program__section_name(loader->probes.programs[probe]);
}

const char *loader_probe_reason(const struct loader *loader, size_t probe)
{
	if (loader->probes.rows[probe].attached)
		return "";
	return *loader->probes.reasons[probe] ? loader->probes.reasons[probe]
					      : "its feature is off";
}

int loader_map_fd(const struct loader *loader, const char *name)
{
	struct bpf_map *map;

	for (size_t id = 0; id < loader->features_len; id++) {
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
	return &loader->knobs.sizes;
}

bool loader_can_walk(const struct loader *loader, enum walk walk)
{
	return walks_can(&loader->walks, walk);
}

int loader_walk(struct loader *loader, enum walk walk)
{
	return loader_walk_rows(loader, walk, NULL, NULL);
}

int loader_walk_rows(struct loader *loader, enum walk walk, walk_row_fn row, void *arg)
{
	struct walk_cursor begin = { 0 };

	return walks_run(&loader->walks, walk, &begin, UINT64_MAX, row, arg);
}

int loader_walk_some(struct loader *loader, enum walk walk, struct walk_cursor *cursor,
		     uint64_t until_ns)
{
	return walks_run(&loader->walks, walk, cursor, until_ns, NULL, NULL);
}

int loader_run_perf(const struct loader *loader, const char *program, bool run)
{
	return perf_events_run(&loader->perf, program, run);
}

struct bpf_program *loader_program(const struct loader *loader, const char *name)
{
	for (size_t i = 0; i < loader->probes.len; i++)
		if (strcmp(loader->probes.rows[i].probe, name) == 0)
			return loader->probes.programs[i];
	return NULL;
}

uint64_t loader_skipped(const struct loader *loader)
{
	return spares_skipped(loader->probes.programs, loader->probes.len, loader->knobs.spares);
}

const struct program_row *loader_programs(struct loader *loader, size_t *len)
{
	return probes_runs(&loader->probes, len);
}
