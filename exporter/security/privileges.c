/* SPDX-License-Identifier: Apache-2.0 */
#include "security/privileges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "identity/proc.h"

#define STATUS_BYTES 8192
#define CAP_EFF "CapEff:"
/* USER_NS_INIT_INO of the kernel's linux/nsfs.h: the same number since Linux 3.8. */
#define USER_NAMESPACE_INITIAL "user:[4026531837]"

struct cap_eff {
	uint64_t effective;
	int result; /* 0 as long as the line was not seen, then 1 or -EINVAL */
};

static int cap_eff_parse(char *line, void *arg)
{
	struct cap_eff *cap_eff = arg;
	const char *digits = line + strlen(CAP_EFF);
	char *end;

	if (!text_has_prefix(line, CAP_EFF))
		return 0;
	errno = 0;
	cap_eff->effective = strtoull(digits, &end, 16);
	cap_eff->result = errno || *end || end == digits ? -EINVAL : 1;
	return cap_eff->result;
}

/* A kernel without user namespaces has no such link: then there is only the initial one. */
static bool user_namespace_is_other(int self_fd)
{
	char link[64];
	ssize_t len = readlinkat(self_fd, "ns/user", link, sizeof(link) - 1);

	if (len < 0)
		return false;
	link[len] = '\0';
	return strcmp(link, USER_NAMESPACE_INITIAL) != 0;
}

int privileges_read(const char *proc_root, struct privileges *out)
{
	_cleanup_(cleanup_close) int fd = proc_open_self(proc_root);
	struct cap_eff cap_eff = { 0 };
	int r;

	if (fd < 0)
		return fd;
	r = proc_lines_read(fd, "status", STATUS_BYTES, cap_eff_parse, &cap_eff);
	if (r < 0)
		return r;
	if (cap_eff.result <= 0)
		return -EINVAL;
	*out = (struct privileges){
		.known = true,
		.user_namespace = user_namespace_is_other(fd),
		.effective = cap_eff.effective,
	};
	return 0;
}

static bool privileges_hold(const struct privileges *privileges, int capability)
{
	return privileges->effective >> capability & 1;
}

bool privileges_implied(const struct privileges *privileges, int capability)
{
	return privileges->known && !privileges->user_namespace &&
	       (capability == CAP_BPF || capability == CAP_PERFMON) &&
	       !privileges_hold(privileges, capability) &&
	       privileges_hold(privileges, CAP_SYS_ADMIN);
}

bool privileges_have(const struct privileges *privileges, int capability)
{
	return privileges_implied(privileges, capability) ||
	       (privileges->known && !privileges->user_namespace &&
		privileges_hold(privileges, capability));
}
