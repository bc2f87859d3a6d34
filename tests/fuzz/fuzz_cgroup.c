/* SPDX-License-Identifier: Apache-2.0 */
/* The text of /proc/PID/cgroup, whose paths any user with a delegated cgroup chooses. */
#include "base/text.h"
#include "identity/cgroup.h"
#include "fuzz.h"

/* One component of a path, whatever it is called; or one below a user. */
static void check_name(const char *name)
{
	const char *slash = strchr(name, '/');

	MUST(!strpbrk(name, "\n"));
	MUST(!slash || (text_has_prefix(name, "user@") && slash[1] && !strchr(slash + 1, '/')));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *text = fuzz_text(data, len), name[CGROUP_UNIT_LEN];
	struct cgroup_hierarchies hierarchies;
	struct cgroup_place place;

	cgroup_place_parse(text, &place);
	MUST(memchr(place.unit, '\0', sizeof(place.unit)));
	MUST(memchr(place.container, '\0', sizeof(place.container)));
	check_name(place.unit);
	check_name(place.container);
	cgroup_hierarchies_parse(text, &hierarchies);
	MUST(memchr(hierarchies.v1_name, 0, sizeof(hierarchies.v1_name)));
	cgroup_unit_workload(place.unit, name, sizeof(name));
	if (*place.unit) {
		MUST(text_has_suffix(place.unit, ".service"));
		MUST(*name);
	}
	free(text);
	return 0;
}
