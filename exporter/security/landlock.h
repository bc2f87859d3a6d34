/* SPDX-License-Identifier: Apache-2.0 */
/* Landlock: nothing in the file system can be changed or executed, and no TCP port be used. */
#ifndef WORKLOAD_SECURITY_LANDLOCK_H
#define WORKLOAD_SECURITY_LANDLOCK_H

/*
 * Forbids to the calling thread what this kernel can forbid: opening files for writing, making,
 * removing and executing them (since Linux 5.13, 5.19 and 6.2 in parts), binding and connecting TCP
 * sockets (6.7; those that are open go on), signals to others and abstract Unix sockets of others
 * but the one that a socket is connected to (6.12). Reading stays allowed. Needs no_new_privs. 0,
 * also on a kernel that has none of it; -errno.
 */
int landlock_enter(void);

#endif
