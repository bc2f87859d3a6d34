/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of the kernel side that are not mapped into memory (view.h): hash tables that give a key
 * its slot, and stacks of free slots. By file descriptor; a system call each. 0 or -errno.
 */
#ifndef WORKLOAD_KERNEL_TABLE_H
#define WORKLOAD_KERNEL_TABLE_H

#include <stdint.h>

/* Takes @key away. */
int table_delete(int fd, const void *key);

/* Gives @slot back: it is the next to be taken. */
int table_push(int fd, uint32_t slot);

/* Pushes the slots 1 to @count - 1, the lowest last: low slots are taken first, and 0 never. */
int table_fill(int fd, uint32_t count);

/* Reads the element of an array at @index; @value has its size. */
int table_read(int fd, uint32_t index, void *value);

#endif
