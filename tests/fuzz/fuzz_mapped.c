/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of /proc/PID/maps, whose paths any process chooses. */
#include "base/text.h"
#include "identity/mapped.h"
#include "fuzz.h"

static void check_file(const char *input, enum mapped_kind kind, const struct mapped_file *file)
{
	static const char *const prefixes[MAPPED_KINDS] = {
		[MAPPED_LIBPTHREAD] = "libpthread",
		[MAPPED_GLIBC] = "libc",
		[MAPPED_MUSL] = "l",
	};

	MUST(memchr(file->path, '\0', sizeof(file->path)));
	if (!file->found) {
		MUST(!*file->path && !file->inode && !file->deleted);
		return;
	}
	MUST(*file->path == '/' && !strchr(file->path, '\n') && strstr(input, file->path));
	MUST(text_has_prefix(text_base_name(file->path), prefixes[kind]));
}

static void check_same(const struct mapped_file *one, const struct mapped_file *other)
{
	MUST(one->found == other->found && one->deleted == other->deleted);
	MUST(one->inode == other->inode && strcmp(one->path, other->path) == 0);
}

/* Each line in a block of just its size. */
static void read_lines(const char *input, struct mapped *mapped)
{
	memset(mapped, 0, sizeof(*mapped));
	while (*input) {
		size_t len = strcspn(input, "\n");
		char *line = fuzz_text((const uint8_t *)input, len);

		MUST(mapped_line(line, mapped) == 0);
		free(line);
		input += len + (input[len] == '\n');
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct mapped mapped, again;
	char *input = fuzz_text(data, len);

	read_lines(input, &mapped);
	MUST(mapped.any == (*input != '\0'));
	read_lines(input, &again);
	for (int kind = 0; kind < MAPPED_KINDS; kind++) {
		check_file(input, (enum mapped_kind)kind, &mapped.files[kind]);
		check_same(&mapped.files[kind], &again.files[kind]);
	}
	free(input);
	return 0;
}
