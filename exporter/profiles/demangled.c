/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/demangled.h"

#include <libiberty/demangle.h>
#include <string.h>

#include "base/text.h"

struct writing {
	char *out;
	size_t len, size;
};

static void part_write(const char *text, size_t len, void *arg)
{
	struct writing *writing = arg;
	size_t left = writing->size - 1 - writing->len;
	size_t taken = len < left ? len : left;

	memcpy(writing->out + writing->len, text, taken);
	writing->len += taken;
}

/* Rust first: its older mangling is also one of C++, of a name that ends with a hash. */
static bool name_read(struct writing *writing, const char *name)
{
	if (rust_demangle_callback(name, DMGL_NO_OPTS, part_write, writing))
		return true;
	writing->len = 0;
	return text_has_prefix(name, "_Z") &&
	       cplus_demangle_v3_callback(name, DMGL_NO_OPTS, part_write, writing);
}

bool demangled(const char *name, char *out, size_t size)
{
	struct writing writing = { .out = out, .size = size };
	bool known = strlen(name) <= DEMANGLED_BYTES_MAX && name_read(&writing, name);

	out[writing.len] = '\0';
	return known && writing.len;
}
