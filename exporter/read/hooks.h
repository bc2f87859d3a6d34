/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a BPF object needs and this kernel does not have: hooks, by the kernel's description of its
 * own types (BTF), and kinds of maps, by trying them.
 */
#ifndef WORKLOAD_READ_HOOKS_H
#define WORKLOAD_READ_HOOKS_H

#include <stdbool.h>
#include <stddef.h>

#define HOOKS_REASON_BYTES 128

struct bpf_object;
struct bpf_program;

/*
 * Finds the programs among @len @programs whose hook, tp_btf/NAME or iter/NAME, this kernel does
 * not have: writes "this kernel has no tracepoint NAME" to their element of @reasons, and leaves
 * those of the others as they are. @missing becomes the list of those hooks in words, each once;
 * "" if there is none, or if the kernel does not describe its types. Takes some milliseconds.
 */
void hooks_find_missing(struct bpf_program *const *programs, size_t len,
			char (*reasons)[HOOKS_REASON_BYTES], char *missing, size_t size);

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
