/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a BPF object needs and this kernel may not have: hooks and functions, by the kernel's
 * description of its own types (BTF, @types, which may be NULL), and kinds of maps, by trying them.
 */
#ifndef WORKLOAD_KERNEL_HOOKS_H
#define WORKLOAD_KERNEL_HOOKS_H

#include <stdbool.h>
#include <stddef.h>

#define HOOKS_REASON_BYTES 128

struct bpf_object;
struct bpf_program;
struct btf;

/* Whether this kernel has the hook of @program; true where its types do not tell. */
bool hooks_have(const struct btf *types, const struct bpf_program *program);

/*
 * Finds the programs among @len @programs whose hook, tp_btf/NAME or iter/NAME, this kernel does
 * not have: writes "this kernel has no tracepoint NAME" to their element of @reasons, and leaves
 * those of the others as they are. @missing becomes the list of those hooks in words, each once;
 * "" if there is none, or if the kernel does not describe its types.
 */
void hooks_find_missing(const struct btf *types, struct bpf_program *const *programs, size_t len,
			char (*reasons)[HOOKS_REASON_BYTES], char *missing, size_t size);

/*
 * Where the counter of @name, LINUX_MIB_..., is among those of a network namespace; 0 if it is
 * unknown, or before Linux 5.19, where programs cannot add up what each CPU has its part of.
 */
unsigned int hooks_net_counter(const struct btf *types, const char *name);

/* Whether the kernel has bpf_rdonly_cast(), since Linux 6.2. */
bool hooks_have_cast(const struct btf *types);

/* Whether the kernel refuses to look up task storage that it has interrupted, as before Linux 6.2.
 */
bool hooks_storage_refuses(const struct btf *types);

/*
 * Writes the first kind of map of @object (which may be NULL) that this kernel does not have to
 * @missing, as in "map type task_storage"; "" if it has all. Needs CAP_BPF to tell.
 */
void hooks_find_missing_map(const struct bpf_object *object, char *missing, size_t size);

/*
 * Whether a program with this section is attached to processes one by one while the exporter runs
 * (uprobe, uretprobe), and whether this kernel can do that (CONFIG_UPROBE_EVENTS, with sysfs
 * mounted).
 */
bool hook_is_by_process(const char *section);
bool hooks_can_probe_processes(void);

#endif
