/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What systemd and its services say to each other: sockets that are passed (sd_listen_fds(3)), and
 * states that are told (sd_notify(3)). Without systemd all of it does nothing.
 *
 * Reads and clears the environment: for one thread, at the start.
 */
#ifndef WORKLOAD_APP_SYSTEMD_H
#define WORKLOAD_APP_SYSTEMD_H

#include <stddef.h>
#include <stdint.h>

struct systemd {
	int notify_fd; /* connected; -1 without a manager that wants to be told */
	uint64_t watchdog_ns; /* how often it wants to hear; 0: never */
	uint64_t told_ns; /* CLOCK_MONOTONIC, when it heard last */
};

/*
 * Takes the sockets that were passed to this very process: listening stream sockets, made
 * non-blocking and close-on-exec, owned by the caller. Returns how many; -errno with a sentence in
 * @error, and then all are closed.
 */
int systemd_take_listeners(int *fds, size_t max, char *error, size_t error_bytes);

/* Reads NOTIFY_SOCKET and WATCHDOG_USEC. 0 or -errno: the manager cannot be told. */
int systemd_open(struct systemd *systemd);
void systemd_close(struct systemd *systemd);

/* Tells a state, such as "READY=1\nSTATUS=serving". Lost where it cannot be told. */
void systemd_notify(const struct systemd *systemd, const char *state);

/* When systemd_tick() is due (CLOCK_MONOTONIC); UINT64_MAX: never. */
uint64_t systemd_due_ns(const struct systemd *systemd);

/* Tells that we live. */
void systemd_tick(struct systemd *systemd, uint64_t now_ns);

#endif
