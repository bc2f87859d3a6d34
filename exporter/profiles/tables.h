/* SPDX-License-Identifier: Apache-2.0 */
/* The store of unwind tables, in the maps that the kernel side reads (bpf/profiles/code.h). */
#ifndef WORKLOAD_PROFILES_TABLES_H
#define WORKLOAD_PROFILES_TABLES_H

#include "kernel/view.h"
#include "unwind/store.h"

struct tables {
	struct view rows, rules, pages, files;
	struct unwind_store *store; /* owned */
};

/* 0; -ENOENT: there are no maps; -errno. tables_close() in any case. */
int tables_open(struct tables *tables, const struct loader *loader);
void tables_close(struct tables *tables);

#endif
