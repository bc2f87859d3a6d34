/* SPDX-License-Identifier: Apache-2.0 */
/* The text of /proc/PID/cgroup, whose paths any user with a delegated cgroup chooses. */
#include "base/text.h"
#include "discovery/cgroup.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *text = fuzz_text(data, len), name[CGROUP_UNIT_LEN];
	struct cgroup_place place;

	cgroup_place_parse(text, &place);
	MUST(memchr(place.unit, '\0', sizeof(place.unit)));
	MUST(memchr(place.container, '\0', sizeof(place.container)));
	MUST(!strpbrk(place.unit, "/\n") && !strpbrk(place.container, "/\n"));
	cgroup_unit_workload(place.unit, name, sizeof(name));
	if (*place.unit) {
		MUST(text_has_suffix(place.unit, ".service"));
		MUST(*name);
	}
	free(text);
	return 0;
}
