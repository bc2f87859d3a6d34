/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/table.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#define TABLE_BATCH 256U

int table_delete(int fd, const void *key)
{
	return bpf_map_delete_elem(fd, key) ? -errno : 0;
}

int table_write(int fd, const void *key, const void *value)
{
	return bpf_map_update_elem(fd, key, value, BPF_ANY) ? -errno : 0;
}

int table_push(int fd, uint32_t slot)
{
	return bpf_map_update_elem(fd, NULL, &slot, BPF_ANY) ? -errno : 0;
}

int table_fill(int fd, uint32_t count)
{
	int r = 0;

	for (uint32_t slot = count; !r && slot-- > 1;)
		r = table_push(fd, slot);
	return r;
}

int table_read(int fd, uint32_t index, void *value)
{
	return bpf_map_lookup_elem(fd, &index, value) ? -errno : 0;
}

int table_take_all(int fd, const struct table_shape *shape, table_row_fn row, void *arg)
{
	char *keys = malloc((size_t)TABLE_BATCH * shape->key_bytes);
	char *values = malloc((size_t)TABLE_BATCH * shape->value_bytes);
	uint32_t cursor, len;
	bool begun = false;
	int r = keys && values ? 0 : -ENOMEM;

	while (!r) {
		len = TABLE_BATCH;
		if (bpf_map_lookup_and_delete_batch(fd, begun ? &cursor : NULL, &cursor, keys,
						    values, &len, NULL))
			r = -errno;
		begun = true;
		for (uint32_t i = 0; (!r || r == -ENOENT) && i < len; i++)
			row(arg, keys + (size_t)i * shape->key_bytes,
			    values + (size_t)i * shape->value_bytes);
	}
	free(keys);
	free(values);
	return r == -ENOENT ? 0 : r;
}
