/* SPDX-License-Identifier: Apache-2.0 */
#include "security/capabilities.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stddef.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

#define USER_BUFFER_BYTES 16384
#define CAPABILITIES_MAX 64
#define NOBODY 65534

uint64_t capabilities_of(enum keep keep)
{
	static const uint64_t table[] = {
#define KEEP(id, capabilities) [KEEP_##id] = (capabilities),
		KEEP_LIST(KEEP)
#undef KEEP
	};

	return table[keep];
}

int user_find(const char *name, struct user *out)
{
	_cleanup_(cleanup_free) char *buffer = NULL;
	struct passwd entry, *found = NULL;
	int r;

	if (strlen(name) >= sizeof(out->name))
		return -ENOENT;
	buffer = malloc(USER_BUFFER_BYTES);
	if (!buffer)
		return -ENOMEM;
	r = getpwnam_r(name, &entry, buffer, USER_BUFFER_BYTES, &found);
	if (!found)
		return r ? -r : -ENOENT;
	*out = (struct user){ .become = true, .uid = found->pw_uid, .gid = found->pw_gid };
	text_copy(out->name, sizeof(out->name), name);
	return 0;
}

int user_of_helpers(const struct privileges *mine, const struct user *wanted, struct user *out)
{
	static const struct user nobody = { .become = true, .uid = NOBODY, .gid = NOBODY };
	bool root = !getuid() || !geteuid();

	*out = *wanted;
	if (wanted->become || !root)
		return 0;
	if (!privileges_have(mine, CAP_SETUID) || !privileges_have(mine, CAP_SETGID))
		return -EPERM;
	*out = nobody;
	return 0;
}

static void cleanup_cap(cap_t *caps)
{
	if (*caps)
		cap_free(*caps);
}

/* Effective: @effective where permitted. Permitted: only @permitted of it. Nothing is inherited. */
static int capabilities_set(uint64_t effective, uint64_t permitted)
{
	_cleanup_(cleanup_cap) cap_t now = cap_get_proc();
	_cleanup_(cleanup_cap) cap_t then = cap_init();

	if (!now || !then)
		return -errno;
	for (cap_value_t i = 0; i < CAPABILITIES_MAX && CAP_IS_SUPPORTED(i); i++) {
		cap_flag_value_t has = CAP_CLEAR;

		cap_get_flag(now, i, CAP_PERMITTED, &has);
		if (has == CAP_SET && permitted >> i & 1)
			cap_set_flag(then, CAP_PERMITTED, 1, &i, CAP_SET);
		if (has == CAP_SET && permitted >> i & effective >> i & 1)
			cap_set_flag(then, CAP_EFFECTIVE, 1, &i, CAP_SET);
	}
	return cap_set_proc(then) ? -errno : 0;
}

int capabilities_lower(uint64_t keep)
{
	return capabilities_set(keep, UINT64_MAX);
}

/* Without CAP_SETPCAP it stays as it is: what is in it cannot be had under no_new_privs. */
static void bounding_empty(void)
{
	for (cap_value_t i = 0; i < CAPABILITIES_MAX && CAP_IS_SUPPORTED(i); i++)
		cap_drop_bound(i);
}

static int user_become(const struct user *user)
{
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) ||
	    (*user->name ? initgroups(user->name, user->gid) : setgroups(0, NULL)) ||
	    setresgid(user->gid, user->gid, user->gid) ||
	    setresuid(user->uid, user->uid, user->uid) || prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0))
		return -errno;
	return 0;
}

static bool user_is(const struct user *user)
{
	uid_t uids[3];
	gid_t gids[3];

	if (getresuid(&uids[0], &uids[1], &uids[2]) || getresgid(&gids[0], &gids[1], &gids[2]))
		return false;
	for (int i = 0; i < 3; i++)
		if (uids[i] != user->uid || gids[i] != user->gid)
			return false;
	return true;
}

int capability_raise(int capability, bool raised)
{
	_cleanup_(cleanup_cap) cap_t caps = cap_get_proc();
	const cap_value_t value = capability;

	if (!caps || cap_set_flag(caps, CAP_EFFECTIVE, 1, &value, raised ? CAP_SET : CAP_CLEAR) ||
	    cap_set_proc(caps))
		return -errno;
	return 0;
}

int capabilities_drop(uint64_t keep, uint64_t held, const struct user *user)
{
	int r = capabilities_lower(UINT64_MAX);

	if (r)
		return r;
	bounding_empty();
	if (user->become && !user_is(user)) {
		r = user_become(user);
		if (r)
			return r;
	}
	r = capabilities_set(keep, keep | held);
	if (r)
		return r;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	return 0;
}
