/* SPDX-License-Identifier: Apache-2.0 */
#include "plain_profiles.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kernel/table.h"

static struct {
	bool runs;
	size_t told;
} plain_clock_state;

static bool minor_runs, major_runs;

/* --- for tests ------------------------------------------------------------------------------ */

static const char *set_name(uint64_t set)
{
	return set ? "stacks_1" : "stacks_0";
}

uint64_t plain_enter(struct loader *loader, size_t cpu)
{
	const struct profiling *now = plain_at(loader, "profiling", 0);
	struct profiled *profiled = plain_at(loader, "profiled", cpu);

	profiled->entered[now->set]++;
	return now->set;
}

void plain_leave(struct loader *loader, size_t cpu, uint64_t set)
{
	struct profiled *profiled = plain_at(loader, "profiled", cpu);

	profiled->left[set]++;
}

/* As the programs do: one more of a stack that is there, else a row of it. */
void plain_count(struct loader *loader, size_t cpu, uint64_t set, const struct plain_sample *sample)
{
	struct plain_table *table = plain_table(loader, set_name(set));
	struct profiled *profiled = plain_at(loader, "profiled", cpu);
	struct plain_sample *rows = (struct plain_sample *)table->bytes;

	for (size_t i = 0; i < table->pushed; i++) {
		if (memcmp(&rows[i].key, &sample->key, sizeof(sample->key)) != 0)
			continue;
		rows[i].stack.samples += sample->stack.samples;
		return;
	}
	if (table->pushed == table->entries)
		profiled->lost[set] += sample->stack.samples;
	else
		rows[table->pushed++] = *sample;
}

void plain_sample(struct loader *loader, const struct plain_sample *sample)
{
	uint64_t set = plain_enter(loader, 0);

	plain_count(loader, 0, set, sample);
	plain_leave(loader, 0, set);
}

/* In `last`: one more than the rows that can be read. */
void plain_set_breaks(struct loader *loader, uint64_t set, int rows)
{
	plain_table(loader, set_name(set))->last = (uint32_t)(rows + 1);
}

static struct plain_slot *slot_of(struct plain_table *table, pid_t pid)
{
	struct plain_slot *slots = (struct plain_slot *)table->bytes;

	for (size_t i = 0; i < table->pushed; i++)
		if (slots[i].pid == pid)
			return &slots[i];
	cr_assert_lt(table->pushed, table->entries);
	slots[table->pushed].pid = pid;
	return &slots[table->pushed++];
}

struct code_slot plain_slot(struct loader *loader, pid_t pid)
{
	return slot_of(plain_table(loader, "code_slots"), pid)->slot;
}

bool plain_clock(size_t *told)
{
	*told = plain_clock_state.told;
	return plain_clock_state.runs;
}

bool plain_faults(void)
{
	cr_expect_eq(minor_runs, major_runs);
	return minor_runs;
}

/* --- exporter/kernel/ ----------------------------------------------------------------------- */

int loader_run_perf(const struct loader *loader, const char *program, bool run)
{
	(void)loader;
	if (!strcmp(program, "profiles_sample")) {
		plain_clock_state.runs = run;
		plain_clock_state.told++;
	} else if (!strcmp(program, "profiles_minor")) {
		minor_runs = run;
	} else {
		cr_expect_str_eq(program, "profiles_major");
		major_runs = run;
	}
	return 0;
}

/* Rows are taken away from the end, so that those that stay are still the first. */
int table_take_all(int fd, const struct table_shape *shape, table_row_fn row, void *arg)
{
	struct plain_table *table = plain_table_at(fd);

	cr_assert_eq(shape->key_bytes + shape->value_bytes, table->element_bytes);
	for (uint32_t read = 0; table->pushed; read++) {
		const unsigned char *element;

		if (table->last && read == table->last - 1)
			return -EINTR;
		element = table->bytes + --table->pushed * table->element_bytes;
		row(arg, element, element + shape->key_bytes);
	}
	return 0;
}

/* The process that a pidfd is of; negative: it has ended (fs/pidfs.c), or that is no pidfd. */
static pid_t pid_of(int pidfd)
{
	char path[64], line[128];
	pid_t pid = -1;
	FILE *info;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	info = fopen(path, "re");
	while (info && fgets(line, sizeof(line), info))
		if (sscanf(line, "Pid: %d", &pid) == 1)
			break;
	if (info)
		fclose(info);
	return pid;
}

/* Keys are known of what processes are told; of others only how many were taken away. */
int table_delete(int fd, const void *key)
{
	struct plain_table *table = plain_table_at(fd);
	pid_t pid;

	table->deleted++;
	if (strcmp(table->name, "code_slots") != 0)
		return 0;
	pid = pid_of(*(const int *)key);
	if (pid > 0)
		slot_of(table, pid)->slot = (struct code_slot){ 0 };
	return pid > 0 ? 0 : -ESRCH;
}

int table_write(int fd, const void *key, const void *value)
{
	pid_t pid = pid_of(*(const int *)key);

	if (pid <= 0)
		return -ESRCH;
	memcpy(&slot_of(plain_table_at(fd), pid)->slot, value, sizeof(struct code_slot));
	return 0;
}
