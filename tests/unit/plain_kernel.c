/* SPDX-License-Identifier: Apache-2.0 */
#include "plain_kernel.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi/discovery.h"
#include "abi/quotas.h"
#include "abi/shares.h"
#include "abi/drops.h"
#include "abi/limits.h"
#include "features/features.h"
#include "features/mutexes.h"
#include "kernel/table.h"
#include "kernel/view.h"
#include "kernel/walk.h"
#include "plain_profiles.h"

#define FD_FIRST 100 /* a descriptor of a table is its index, and this */

struct loader {
	struct plain_table tables[PLAIN_TABLES_MAX];
	struct feature_status features[LOADER_FEATURES_MAX];
	struct map_sizes sizes;
	plain_walk_fn walk;
	void *arg;
	size_t walks[WALKS];
	int walk_fails[WALKS];
	const struct tree_process *processes; /* that the walk over them writes */
	size_t processes_len;
	const struct wait_told *waits; /* and the one over waits */
	size_t waits_len;
};

/* view_open() and table_*() know tables by descriptor only. */
static struct loader *plain;

static const struct plain_table plain_tables[PLAIN_TABLES_MAX] = {
	{ .name = "trees", .entries = TREES_MAX, .element_bytes = sizeof(struct tree) },
	{ .name = "user_shares",
	  .entries = USER_SHARES,
	  .element_bytes = sizeof(struct user_share) },
	{ .name = "quotas", .entries = QUOTAS, .element_bytes = sizeof(struct quota) },
	{ .name = "drops", .entries = (size_t)TREES_MAX * DROP_REASONS, .element_bytes = 8 },
	{ .name = "free_trees" },
	{ .name = "endpoint_slots" },
	{ .name = "free_endpoints" },
	{ .name = "endpoint_info",
	  .entries = PLAIN_ENDPOINTS,
	  .element_bytes = sizeof(struct endpoint_info) },
	{ .name = "endpoints",
	  .sized_by = "requests",
	  .entries = PLAIN_ENDPOINTS * PLAIN_SHARDS,
	  .element_bytes = sizeof(struct endpoint_shard) },
	{ .name = "endpoint_gauges",
	  .entries = PLAIN_ENDPOINTS,
	  .element_bytes = sizeof(struct endpoint_gauges) },
	{ .name = "sweeps", .entries = 1, .element_bytes = sizeof(struct sweep) },
	{ .name = "pool_slots", .feature = "threads" },
	{ .name = "free_pools", .feature = "threads" },
	{ .name = "pool_info",
	  .feature = "threads",
	  .entries = PLAIN_POOLS,
	  .element_bytes = sizeof(struct pool_info) },
	{ .name = "pool_states",
	  .feature = "threads",
	  .entries = PLAIN_POOLS * (PLAIN_CPUS + 1),
	  .element_bytes = sizeof(struct pool_shard) },
	{ .name = "pool_waits",
	  .feature = "threads",
	  .entries = PLAIN_POOLS * PLAIN_SHARDS,
	  .element_bytes = sizeof(struct pool_waits) },
	{ .name = "pool_holders",
	  .feature = "threads",
	  .entries = PLAIN_POOLS,
	  .element_bytes = sizeof(struct pool_holders) },
	PLAIN_PROFILES_TABLES,
};

/* --- for tests ------------------------------------------------------------------------------ */

struct loader *plain_loader_new(unsigned int wanted, plain_walk_fn walk, void *arg)
{
	struct loader *loader = calloc(1, sizeof(*loader));

	cr_assert_not_null(loader);
	loader->sizes = (struct map_sizes){ PLAIN_CPUS, PLAIN_SHARDS, PLAIN_ENDPOINTS,
					    PLAIN_POOLS };
	loader->walk = walk;
	loader->arg = arg;
	for (size_t i = 0; i < features_len; i++)
		loader->features[i] = (struct feature_status){
			.name = features_table[i]->plan.name,
			.on = wanted & 1U << i,
		};
	for (size_t i = 0; i < PLAIN_TABLES_MAX && plain_tables[i].name; i++) {
		const char *feature = plain_tables[i].feature, *sized_by;

		if (feature && !(wanted & 1U << features_find(feature)))
			continue;
		loader->tables[i] = plain_tables[i];
		sized_by = plain_tables[i].sized_by;
		if (sized_by && !(wanted & 1U << features_find(sized_by)))
			loader->tables[i].entries = 1;
		loader->tables[i].bytes = calloc(plain_tables[i].entries + 1,
						 plain_tables[i].element_bytes + 1);
		cr_assert_not_null(loader->tables[i].bytes);
	}
	plain = loader;
	return loader;
}

void plain_loader_free(struct loader *loader)
{
	for (size_t i = 0; i < PLAIN_TABLES_MAX; i++)
		free(loader->tables[i].bytes);
	free(loader);
	plain = NULL;
}

void plain_feature_off(struct loader *loader, const char *name)
{
	loader->features[features_find(name)].on = false;
}

struct plain_table *plain_table(const struct loader *loader, const char *name)
{
	int fd = loader_map_fd(loader, name);

	cr_assert_geq(fd, 0, "there is no table %s", name);
	return (struct plain_table *)&loader->tables[fd - FD_FIRST];
}

struct plain_table *plain_table_at(int fd)
{
	return &plain->tables[fd - FD_FIRST];
}

void *plain_at(struct loader *loader, const char *name, size_t index)
{
	struct plain_table *table = plain_table(loader, name);

	cr_assert_lt(index, table->entries);
	return table->bytes + index * table->element_bytes;
}

size_t plain_pushed(const struct loader *loader, const char *name, uint32_t *last)
{
	const struct plain_table *table = plain_table(loader, name);

	*last = table->last;
	return table->pushed;
}

size_t plain_deleted(const struct loader *loader, const char *name)
{
	return plain_table(loader, name)->deleted;
}

size_t plain_walks(const struct loader *loader, enum walk walk)
{
	return loader->walks[walk];
}

void plain_processes(struct loader *loader, const struct tree_process *processes, size_t len)
{
	loader->processes = processes;
	loader->processes_len = len;
}

void plain_walk_fails(struct loader *loader, enum walk walk, int error)
{
	loader->walk_fails[walk] = error;
}

void plain_waits(struct loader *loader, const struct wait_told *waits, size_t len)
{
	loader->waits = waits;
	loader->waits_len = len;
}

/* --- exporter/kernel/ ----------------------------------------------------------------------- */

const struct feature_status *loader_feature(const struct loader *loader, size_t feature)
{
	return &loader->features[feature];
}

const struct probe_row *loader_probes(const struct loader *loader, size_t *len)
{
	(void)loader;
	*len = 0;
	return NULL;
}

int loader_map_fd(const struct loader *loader, const char *name)
{
	for (int i = 0; i < (int)PLAIN_TABLES_MAX; i++)
		if (loader->tables[i].name && !strcmp(loader->tables[i].name, name))
			return FD_FIRST + i;
	return -ENOENT;
}

const struct map_sizes *loader_sizes(const struct loader *loader)
{
	return &loader->sizes;
}

bool loader_can_walk(const struct loader *loader, enum walk walk)
{
	for (size_t i = 0; i < features_len; i++)
		for (size_t w = 0; w < FEATURE_WALKS_MAX; w++)
			if (loader->features[i].on && features_table[i]->plan.walks[w].program &&
			    features_table[i]->plan.walks[w].walk == walk)
				return true;
	return false;
}

int loader_walk(struct loader *loader, enum walk walk)
{
	loader->walks[walk]++;
	if (!loader_can_walk(loader, walk))
		return -EOPNOTSUPP;
	if (loader->walk_fails[walk])
		return loader->walk_fails[walk];
	return loader->walk ? loader->walk(loader->arg, walk) : 0;
}

int loader_walk_rows(struct loader *loader, enum walk walk, walk_row_fn row, void *arg)
{
	int r = loader_walk(loader, walk);

	for (size_t i = 0; !r && walk == WALK_PROCESSES && i < loader->processes_len; i++)
		row(arg, &loader->processes[i]);
	for (size_t i = 0; !r && walk == WALK_LASTING && i < loader->waits_len; i++)
		row(arg, &loader->waits[i]);
	return r;
}

int loader_walk_some(struct loader *loader, enum walk walk, struct walk_cursor *cursor,
		     uint64_t until_ns)
{
	(void)cursor;
	(void)until_ns;
	return loader_walk(loader, walk);
}

uint64_t loader_skipped(const struct loader *loader)
{
	(void)loader;
	return 0;
}

const struct program_row *loader_programs(struct loader *loader, size_t *len)
{
	(void)loader;
	*len = 0;
	return NULL;
}

void walk_cursor_reset(struct walk_cursor *cursor)
{
	*cursor = (struct walk_cursor){ 0 };
}

int view_open(struct view *view, const struct loader *loader, const char *name,
	      size_t element_bytes)
{
	int fd = loader_map_fd(loader, name);
	const struct plain_table *table;

	if (fd < 0)
		return fd;
	table = &loader->tables[fd - FD_FIRST];
	if (table->element_bytes != element_bytes)
		return -EPROTO;
	*view = (struct view){ fd, table->bytes, table->entries, table->entries, element_bytes };
	return 0;
}

void view_close(struct view *view)
{
	*view = (struct view){ .fd = -1 };
}

void *view_at(struct view *view, size_t index)
{
	return index < view->entries ? view->base + index * view->element_bytes : NULL;
}

void *view_all(struct view *view)
{
	return view->base;
}

int table_push(int fd, uint32_t slot)
{
	plain->tables[fd - FD_FIRST].pushed++;
	plain->tables[fd - FD_FIRST].last = slot;
	return 0;
}

int table_fill(int fd, uint32_t count)
{
	for (uint32_t slot = count; slot-- > 1;)
		table_push(fd, slot);
	return 0;
}

int table_read(int fd, uint32_t index, void *value)
{
	const struct plain_table *table = &plain->tables[fd - FD_FIRST];

	memcpy(value, table->bytes + index * table->element_bytes, table->element_bytes);
	return 0;
}

/* Probes on processes need a kernel: here they are refused, as where privileges lack. */
int mutexes_new(struct loader *loader, const char *proc_root, mutexes_note_fn note, void *arg,
		struct mutexes **out)
{
	(void)loader;
	(void)proc_root;
	(void)note;
	(void)arg;
	(void)out;
	return -EACCES;
}

int mutexes_try(struct mutexes *mutexes)
{
	(void)mutexes;
	return -EACCES;
}

void mutexes_free(struct mutexes *mutexes)
{
	(void)mutexes;
}

int mutexes_refresh(struct mutexes *mutexes, uint64_t now_ns)
{
	(void)mutexes;
	(void)now_ns;
	return 0;
}

void mutexes_count(const struct mutexes *mutexes, struct mutex_row rows[static MUTEX_RESULTS])
{
	(void)mutexes;
	memset(rows, 0, MUTEX_RESULTS * sizeof(*rows));
}
