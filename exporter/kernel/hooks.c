/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/hooks.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "base/units.h"

/* What each kind of hook is declared as: include/trace/bpf_probe.h and DEFINE_BPF_ITER_FUNC. */
static const struct {
	const char *section, *words, *type_prefix;
	__u32 kind;
} declarations[] = {
	{ "tp_btf/", "tracepoint ", "btf_trace_", BTF_KIND_TYPEDEF },
	{ "iter/", "iterator ", "bpf_iter_", BTF_KIND_FUNC },
};

/* @words becomes as in "tracepoint sk_data_ready". Of kinds that types do not tell of: true. */
static bool hook_exists(const struct btf *types, const char *section, char *words, size_t size)
{
	char type[HOOKS_REASON_BYTES];

	for (size_t i = 0; i < COUNT(declarations); i++) {
		if (!text_has_prefix(section, declarations[i].section))
			continue;
		snprintf(words, size, "%s%s", declarations[i].words, text_base_name(section));
		snprintf(type, sizeof(type), "%s%s", declarations[i].type_prefix,
			 text_base_name(section));
		return btf__find_by_name_kind(types, type, declarations[i].kind) >= 0;
	}
	return true;
}

bool hooks_have(const struct btf *types, const struct bpf_program *program)
{
	char words[HOOKS_REASON_BYTES / 2];

	return !types ||
	       hook_exists(types, bpf_program__section_name(program), words, sizeof(words));
}

/* Several programs may share a hook. */
static bool section_is_new(struct bpf_program *const *programs, size_t index)
{
	const char *section = bpf_program__section_name(programs[index]);

	for (size_t i = 0; i < index; i++)
		if (strcmp(bpf_program__section_name(programs[i]), section) == 0)
			return false;
	return true;
}

void hooks_find_missing(const struct btf *types, struct bpf_program *const *programs, size_t len,
			char (*reasons)[HOOKS_REASON_BYTES], char *missing, size_t size)
{
	size_t used = 0;

	missing[0] = '\0';
	if (!types)
		return;
	for (size_t i = 0; i < len; i++) {
		char words[HOOKS_REASON_BYTES / 2];

		if (hook_exists(types, bpf_program__section_name(programs[i]), words,
				sizeof(words)))
			continue;
		snprintf(reasons[i], sizeof(reasons[i]), "this kernel has no %s", words);
		if (used < size && section_is_new(programs, i))
			used += (size_t)snprintf(missing + used, size - used, "%s%s",
						 used ? ", " : "", words);
	}
}

/* The helper was split when it learned to look up what is busy (bc235cdb423a). */
bool hooks_storage_refuses(const struct btf *types)
{
	return types &&
	       btf__find_by_name_kind(types, "bpf_task_storage_get_recur", BTF_KIND_FUNC) < 0;
}

unsigned int hooks_net_counter(const struct btf *types, const char *name)
{
	if (!types ||
	    btf__find_by_name_kind(types, "bpf_map_lookup_percpu_elem", BTF_KIND_FUNC) < 0)
		return 0;
	for (__u32 id = 1; id < btf__type_cnt(types); id++) {
		const struct btf_type *type = btf__type_by_id(types, id);
		const struct btf_enum *member = btf_enum(type);

		if (!btf_is_enum(type) || type->name_off)
			continue;
		for (int i = 0; i < btf_vlen(type); i++)
			if (!strcmp(btf__name_by_offset(types, member[i].name_off), name))
				return (unsigned int)member[i].val;
	}
	return 0;
}

bool hooks_have_cast(const struct btf *types)
{
	return types && btf__find_by_name_kind(types, "bpf_rdonly_cast", BTF_KIND_FUNC) >= 0;
}

void hooks_find_missing_map(const struct bpf_object *object, char *missing, size_t size)
{
	struct bpf_map *map;

	missing[0] = '\0';
	if (!object)
		return;
	bpf_object__for_each_map(map, object)
	{
		enum bpf_map_type type = bpf_map__type(map);
		const char *name = libbpf_bpf_map_type_str(type);

		if (libbpf_probe_bpf_map_type(type, NULL) != 0)
			continue;
		snprintf(missing, size, "map type %s", name ? name : "that is needed");
		return;
	}
}

bool hook_is_by_process(const char *section)
{
	return strcmp(section, "uprobe") == 0 || strcmp(section, "uretprobe") == 0;
}

bool hooks_can_probe_processes(void)
{
	return access("/sys/bus/event_source/devices/uprobe/type", R_OK) == 0;
}
