/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/table.h"

#include <bpf/bpf.h>
#include <errno.h>

int table_delete(int fd, const void *key)
{
	return bpf_map_delete_elem(fd, key) ? -errno : 0;
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
