/* SPDX-License-Identifier: Apache-2.0 */
#include "identity/mapped.h"

#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "identity/maps.h"

#define MAPS_LIMIT_BYTES (2U << 20)

/*
 * Names as the libraries have had them: the kernel shows files by their own names, not by those of
 * links. musl's dynamic linker is its C library, called libc.so where the linker is the link.
 */
static const struct {
	enum mapped_kind kind;
	bool whole; /* the name, and not just how it begins */
	const char *name;
} names[] = {
	{ MAPPED_LIBPTHREAD, false, "libpthread.so." },
	{ MAPPED_LIBPTHREAD, false, "libpthread-2." },
	{ MAPPED_GLIBC, true, "libc.so.6" },
	{ MAPPED_GLIBC, false, "libc-2." },
	{ MAPPED_MUSL, false, "ld-musl-" },
	{ MAPPED_MUSL, true, "libc.so" },
};

static int kind_of(const char *path, enum mapped_kind *kind)
{
	const char *name = text_base_name(path);

	for (size_t i = 0; i < COUNT(names); i++) {
		if (names[i].whole ? strcmp(name, names[i].name) != 0
				   : !text_has_prefix(name, names[i].name))
			continue;
		*kind = names[i].kind;
		return 0;
	}
	return -1;
}

int mapped_line(char *line, void *arg)
{
	struct mapped *mapped = arg;
	struct mapped_file *file;
	struct maps_line split;
	enum mapped_kind kind;
	bool deleted;

	mapped->any = true;
	if (maps_line_split(line, &split) || !split.executable || !maps_line_has_path(&split))
		return 0;
	deleted = text_cut_suffix(split.name, " (deleted)");
	if (kind_of(split.name, &kind))
		return 0;
	file = &mapped->files[kind];
	if (file->found || strlen(split.name) >= sizeof(file->path))
		return 0;
	file->found = true;
	file->inode = split.inode;
	file->deleted = deleted;
	text_copy(file->path, sizeof(file->path), split.name);
	return 0;
}

int mapped_read(int dir_fd, struct mapped *mapped)
{
	memset(mapped, 0, sizeof(*mapped));
	return proc_lines_read(dir_fd, "maps", MAPS_LIMIT_BYTES, mapped_line, mapped);
}

int mapped_open(int dir_fd, const struct mapped_file *file)
{
	return maps_open(dir_fd, file->path, file->inode);
}
