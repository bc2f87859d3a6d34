/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/tables.h"

#include <errno.h>

static int views_open(struct tables *tables, const struct loader *loader)
{
	int r = view_open(&tables->rows, loader, "unwind_rows", sizeof(uint64_t));

	if (!r)
		r = view_open(&tables->rules, loader, "unwind_rules", sizeof(struct unwind_rule));
	if (!r)
		r = view_open(&tables->pages, loader, "unwind_pages", sizeof(struct unwind_page));
	if (!r)
		r = view_open(&tables->files, loader, "unwind_files", sizeof(struct unwind_file));
	return r;
}

int tables_open(struct tables *tables, const struct loader *loader)
{
	struct unwind_arrays arrays;
	int r;

	*tables = (struct tables){ 0 };
	r = views_open(tables, loader);
	if (r)
		return r;
	arrays = (struct unwind_arrays){
		.rows = view_all(&tables->rows),
		.rules = view_all(&tables->rules),
		.pages = view_all(&tables->pages),
		.files = view_all(&tables->files),
	};
	if (!arrays.rows || !arrays.rules || !arrays.pages || !arrays.files)
		return -ENOMEM;
	return unwind_store_new(&arrays, &tables->store);
}

void tables_close(struct tables *tables)
{
	unwind_store_free(tables->store);
	view_close(&tables->rows);
	view_close(&tables->rules);
	view_close(&tables->pages);
	view_close(&tables->files);
	*tables = (struct tables){ 0 };
}
