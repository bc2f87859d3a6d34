/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/files.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"

static size_t *len_of(struct files *files, bool generated)
{
	return generated ? &files->generated_len : &files->len;
}

static struct file *file_add(struct files *files, const struct file_key *key, bool generated)
{
	struct file *file = NULL;

	if (*len_of(files, generated) < FILES_MAX)
		file = calloc(1, sizeof(*file));
	if (!file)
		return NULL;
	file->key = *key;
	file->generated = generated;
	file->fd = -1;
	HASH_ADD(hh, files->by_key, key, sizeof(file->key), file);
	if (!file->hh.tbl) {
		free(file);
		return NULL;
	}
	++*len_of(files, generated);
	file->id = ++files->ids;
	return file;
}

static struct file *file_use(struct files *files, const struct file_key *key, bool generated)
{
	struct file *file;

	HASH_FIND(hh, files->by_key, key, sizeof(*key), file);
	if (!file)
		file = file_add(files, key, generated);
	if (file)
		file->users++;
	return file;
}

struct file *files_use(struct files *files, const struct file_key *key)
{
	return file_use(files, key, false);
}

struct file *files_use_generated(struct files *files, const struct file_key *key)
{
	return file_use(files, key, true);
}

void file_release(struct file *file, uint64_t now_ns)
{
	file->users--;
	file->released_ns = now_ns;
}

int files_settle(struct files *files, struct file *file, const struct unwind_table *table)
{
	int r = unwind_store_add(files->store, table, &file->number);

	if (!r)
		files->numbers[file->number] = file;
	return r;
}

struct file *files_at(const struct files *files, uint32_t number)
{
	return number < UNWIND_FILES_MAX ? files->numbers[number] : NULL;
}

bool file_bias(const struct file *file, const struct file_mapping *mapping, uint64_t *bias)
{
	uint64_t end = mapping->offset + (mapping->end - mapping->begin);

	for (size_t i = 0; i < file->program.segments_len; i++) {
		const struct program_segment *segment = &file->program.segments[i];

		if (end <= segment->offset || mapping->offset >= segment->offset + segment->bytes)
			continue;
		*bias = mapping->begin - mapping->offset + segment->offset - segment->address;
		return true;
	}
	return false;
}

static void file_remove(struct files *files, struct file *file)
{
	if (file->number) {
		unwind_store_remove(files->store, file->number);
		files->numbers[file->number] = NULL;
	}
	HASH_DEL(files->by_key, file);
	--*len_of(files, file->generated);
	cleanup_close(&file->fd);
	free(file->path);
	free(file);
}

void files_sweep(struct files *files, uint64_t begun_ns)
{
	struct file *file, *next;

	HASH_ITER (hh, files->by_key, file, next) {
		if (!file->users && file->released_ns < begun_ns)
			file_remove(files, file);
	}
}

void files_free(struct files *files)
{
	struct file *file, *next;

	HASH_ITER (hh, files->by_key, file, next) {
		file_remove(files, file);
	}
}
