/* SPDX-License-Identifier: Apache-2.0 */
#include "features/feature.h"

static bool all_zero(const void *row, size_t row_bytes)
{
	const char *bytes = row;

	for (size_t i = 0; i < row_bytes; i++)
		if (bytes[i])
			return false;
	return true;
}

bool collection_find(const struct collection *collection, uint32_t tree, const void *row,
		     size_t row_bytes, ledger_handle *handle)
{
	if (tree)
		return registry_find(collection->registry, tree, handle);
	*handle = LEDGER_OTHER;
	return !all_zero(row, row_bytes);
}
