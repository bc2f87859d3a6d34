/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/generated.h"

#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "unwind/generator.h"

#define NO_DEVICE \
	UINT32_MAX /* of no file: numbers of devices are shorter (include/linux/kdev_t.h) */

static int table_make(enum generator generator, bool told, struct unwind_table *table)
{
	const struct unwind_rule rule = generator_rule(generator != GENERATOR_CPYTHON);

	return generator != GENERATOR_HOTSPOT || told ? unwind_table_of_rule(&rule, table) : 0;
}

static void file_settle(struct files *files, struct file *file, enum generator generator, bool told)
{
	_cleanup_(unwind_table_free) struct unwind_table table = { 0 };
	bool followed;

	file->tried = true;
	file->program.end = PROGRAM_ADDRESS_END; /* it may be anywhere */
	if (table_make(generator, told, &table))
		return;
	followed = table.rows_len;
	file->path = strdup(followed ? GENERATED_NAME : GENERATED_NAME_UNFOLLOWED);
	files_settle(files, file, &table);
}

static struct file *file_use(struct files *files, const struct tree_process *process,
			     enum generator generator, bool told)
{
	const struct file_key key = {
		.inode = process->start_ns,
		.path_hash = process->exec_id,
		.dev_major = NO_DEVICE,
		.dev_minor = process->tgid,
	};
	struct file *file = generator == GENERATOR_NONE ? NULL : files_use_generated(files, &key);

	if (file && !file->tried)
		file_settle(files, file, generator, told);
	return file;
}

struct tree_process generated_process(const struct file *file)
{
	return (struct tree_process){
		.start_ns = file->key.inode,
		.exec_id = file->key.path_hash,
		.tgid = file->key.dev_minor,
	};
}

const char *generated_name(const struct file *file)
{
	return file->map_denied ? GENERATED_NAME_DENIED : file->path;
}

/*
 * What of its files generates code. Where several do, Java's may have no frame pointers; what is
 * Python's is known in all others as well.
 */
static enum generator generator_of(struct file *const *range_files, size_t len)
{
	enum generator found = GENERATOR_NONE;

	for (size_t i = 0; i < len; i++)
		if (range_files[i] && range_files[i]->program.generator > found)
			found = range_files[i]->program.generator;
	return found;
}

void generated_take(struct files *files, const struct tree_process *process, bool told,
		    const struct opener_range *ranges, struct file **range_files, size_t len)
{
	enum generator generator = generator_of(range_files, len);

	for (size_t i = 0; i < len; i++)
		if (ranges[i].kind == OPENER_RANGE_ANONYMOUS)
			range_files[i] = file_use(files, process, generator, told);
}
