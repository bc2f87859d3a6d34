/* SPDX-License-Identifier: Apache-2.0 */
/* An executable, of which the user that runs it chose every byte. */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "identity/elf.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static int fd = -1;
	bool go = false;
	int r;

	if (fd < 0)
		fd = memfd_create("elf", MFD_CLOEXEC);
	MUST(fd >= 0 && ftruncate(fd, 0) == 0);
	MUST(pwrite(fd, data, len, 0) == (ssize_t)len);
	r = elf_go_detect(fd, &go);
	MUST(r == 0 || r == -ENOEXEC);
	MUST(r == 0 || !go);
	return 0;
}
