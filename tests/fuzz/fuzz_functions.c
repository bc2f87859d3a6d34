/* SPDX-License-Identifier: Apache-2.0 */
/* Symbol tables of ELF files: what is found is inside the file, and found again. */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "identity/functions.h"
#include "fuzz.h"

#define NAMES 3

static const char *const names[NAMES] = { "pthread_mutex_lock", "pthread_mutex_unlock", "f" };

static int find(int fd, size_t len, uint64_t *offsets)
{
	int r = functions_find(fd, names, NAMES, offsets), found = 0;

	MUST(r == -ENOEXEC || (r >= 0 && r <= NAMES));
	for (int i = 0; r >= 0 && i < NAMES; i++) {
		MUST(offsets[i] < len);
		found += offsets[i] != 0;
	}
	MUST(r < 0 || r == found);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static int fd = -1;
	uint64_t offsets[NAMES], again[NAMES];
	int r;

	if (fd < 0)
		fd = memfd_create("fuzz_functions", MFD_CLOEXEC);
	MUST(ftruncate(fd, 0) == 0);
	MUST(pwrite(fd, data, len, 0) == (ssize_t)len);
	r = find(fd, len, offsets);
	MUST(find(fd, len, again) == r);
	MUST(r < 0 || memcmp(offsets, again, sizeof(offsets)) == 0);
	return 0;
}
