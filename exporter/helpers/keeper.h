/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper: a process that keeps one child running, which may hang where nothing ends it but
 * SIGKILL, and not even that at once. A process that may start none any more asks it for another.
 *
 * A byte at the other end of its socket means: another child. The end of that socket means: end,
 * with all children. A child that ends by itself is followed by another a moment later. Children
 * end with the keeper (SIGKILL), however that ends.
 */
#ifndef WORKLOAD_HELPERS_KEEPER_H
#define WORKLOAD_HELPERS_KEEPER_H

/* How many children there may be, all but one of which have been killed and hang nevertheless. */
#define KEEPER_CHILDREN_MAX 4

/*
 * Keeps a child that does @run until it is told to end. Expects to be the only thread, and that
 * @fd is a datagram socket; a child inherits it, as all descriptors.
 */
void keeper_run(int fd, void (*run)(void *arg), void *arg);

#endif
