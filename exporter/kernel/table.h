/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of the kernel side that are not mapped into memory (view.h): hash tables that give a key
 * its slot, and stacks of free slots. By file descriptor; a system call each. 0 or -errno.
 */
#ifndef WORKLOAD_KERNEL_TABLE_H
#define WORKLOAD_KERNEL_TABLE_H

#include <stddef.h>
#include <stdint.h>

/* Takes @key away. */
int table_delete(int fd, const void *key);

/* Gives @key that value. */
int table_write(int fd, const void *key, const void *value);

/* Gives @slot back: it is the next to be taken. */
int table_push(int fd, uint32_t slot);

/* Pushes the slots 1 to @count - 1, the lowest last: low slots are taken first, and 0 never. */
int table_fill(int fd, uint32_t count);

/* Reads the element of an array at @index; @value has its size. */
int table_read(int fd, uint32_t index, void *value);

/* The bytes of a key and of a value of a hash table. */
struct table_shape {
	size_t key_bytes, value_bytes;
};

typedef void (*table_row_fn)(void *arg, const void *key, const void *value);

/*
 * Takes away all rows of a hash table, and calls @row with each. 0; -ENOMEM; -errno: those that it
 * was called with are gone, the others are still there.
 */
int table_take_all(int fd, const struct table_shape *shape, table_row_fn row, void *arg);

#endif
