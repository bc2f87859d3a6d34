/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose a name is. Any user may give a program, a thread or a cgroup of his own the name of
 * another's service, so what people run by themselves is named "user@1000/redis-server": apart from
 * root's and from other people's, whichever comes first, and no name from elsewhere holds a slash.
 */
#ifndef WORKLOAD_IDENTITY_USER_H
#define WORKLOAD_IDENTITY_USER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Whether @uid, of the initial user namespace, is that of people, or of a range that was given to
 * them (subuid(5)). Others are root's and what root has made for services: up to 999
 * (login.defs(5), SYS_UID_MAX), systemd's for DynamicUser= from 61184, and `nobody` (UIDS-GIDS.md
 * of systemd).
 */
bool user_is_login(uint32_t uid);

/* "redis-server" → "user@1000/redis-server", cut where @size ends; nothing stays nothing. */
void user_qualify(const char *user, char *name, size_t size);

#endif
