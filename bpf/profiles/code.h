/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which file a process runs at an address, and the rule for that code. */
#ifndef WORKLOAD_PROFILES_CODE_H
#define WORKLOAD_PROFILES_CODE_H

#include "lib/kernel.h"
#include "abi/unwind.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, UNWIND_ROWS_MAX_ALL / 2);
	__type(key, __u32);
	__type(value, __u64);
} unwind_rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, UNWIND_RULES_MAX_ALL);
	__type(key, __u32);
	__type(value, struct unwind_rule);
} unwind_rules SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, UNWIND_PAGES_MAX);
	__type(key, __u32);
	__type(value, struct unwind_page);
} unwind_pages SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, UNWIND_FILES_MAX);
	__type(key, __u32);
	__type(value, struct unwind_file);
} unwind_files SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, CODE_PROCESSES_MAX);
	__type(key, __u32);
	__type(value, struct process_code);
} process_code SEC(".maps");

#define RANGE_STEPS 9 /* of a search: enough for CODE_RANGES_MAX */
#define ROW_STEPS 17 /* and for the rows of a page */
_Static_assert(CODE_RANGES_MAX < 1U << RANGE_STEPS, "RANGE_STEPS");

/* The index of the range that holds @address; negative: none. */
VERIFIED_ALONE int code_range_find(__u32 slot, __u64 address)
{
	struct process_code *code = bpf_map_lookup_elem(&process_code, &slot);
	__u32 from = 0, to;

	if (!code)
		return -1;
	to = code->len;
	for (int i = 0; i < RANGE_STEPS && from < to; i++) {
		__u32 middle = ((from + to) / 2) & (CODE_RANGES_MAX - 1);

		if (address < code->ranges[middle].begin)
			to = middle;
		else if (address >= code->ranges[middle].end)
			from = middle + 1;
		else
			return (int)middle;
	}
	return -1;
}

static inline __u32 unwind_row_at(__u32 index)
{
	__u32 element = index / 2;
	__u64 *rows = bpf_map_lookup_elem(&unwind_rows, &element);

	return rows ? (__u32)(*rows >> (index & 1) * 32) : 0;
}

/* Of the rows of a page the last that is not behind @low. */
VERIFIED_ALONE __u32 unwind_row_find(__u32 first, __u32 rows, __u32 low)
{
	__u32 from = first, to = first + rows;

	for (int i = 0; i < ROW_STEPS && from < to; i++) {
		__u32 middle = from + (to - from) / 2;

		/* The first holds at the beginning of the page, also if it is one of those before.
		 */
		if (middle != first && unwind_row_low(unwind_row_at(middle)) > low)
			to = middle;
		else
			from = middle + 1;
	}
	return from > first ? unwind_row_at(from - 1) : 0;
}

/* The index of the rule for @address, as linked; 0 is that of none. */
VERIFIED_ALONE __u32 unwind_rule_find(__u32 file_index, __u64 address)
{
	struct unwind_file *file = bpf_map_lookup_elem(&unwind_files, &file_index);
	struct unwind_page *page;
	__u64 number;
	__u32 index;

	if (!file || address < file->begin)
		return 0;
	if (file->pages == UNWIND_ONE_RULE)
		return file->page;
	number = (address - file->begin) >> UNWIND_PAGE_BITS;
	if (number >= file->pages)
		return 0;
	index = file->page + (__u32)number;
	page = bpf_map_lookup_elem(&unwind_pages, &index);
	return page ? unwind_row_rule(unwind_row_find(page->first, page->rows, address & 0xffff))
		    : 0;
}

#endif
