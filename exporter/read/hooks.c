/* SPDX-License-Identifier: Apache-2.0 */
#include "read/hooks.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>

#include "base/text.h"

/* What each kind of hook is declared as: include/trace/bpf_probe.h and DEFINE_BPF_ITER_FUNC. */
static const struct {
	const char *section, *words, *type_prefix;
	__u32 kind;
} declarations[] = {
	{ "tp_btf/", "tracepoint ", "btf_trace_", BTF_KIND_TYPEDEF },
	{ "iter/", "iterator ", "bpf_iter_", BTF_KIND_FUNC },
};

int hooks_open(struct btf **types)
{
	struct btf *read = btf__load_vmlinux_btf();

	if (!read)
		return -errno;
	*types = read;
	return 0;
}

void hooks_close(struct btf **types)
{
	btf__free(*types);
	*types = NULL;
}

bool hooks_have(const struct btf *types, const char *section)
{
	char type[128];

	for (size_t i = 0; i < sizeof(declarations) / sizeof(*declarations); i++) {
		if (!text_has_prefix(section, declarations[i].section))
			continue;
		snprintf(type, sizeof(type), "%s%s", declarations[i].type_prefix,
			 text_base_name(section));
		return btf__find_by_name_kind(types, type, declarations[i].kind) >= 0;
	}
	return true;
}

void hooks_describe(const char *section, char *out, size_t size)
{
	const char *words = "hook ";

	for (size_t i = 0; i < sizeof(declarations) / sizeof(*declarations); i++)
		if (text_has_prefix(section, declarations[i].section))
			words = declarations[i].words;
	snprintf(out, size, "%s%s", words, text_base_name(section));
}
