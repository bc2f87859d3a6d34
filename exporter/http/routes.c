/* SPDX-License-Identifier: Apache-2.0 */
#include "http/routes.h"

#include <errno.h>
#include <string.h>

const struct http_route *http_routes_find(const struct http_routes *routes, const char *path)
{
	for (size_t i = 0; i < routes->len; i++)
		if (strcmp(routes->rows[i].path, path) == 0)
			return &routes->rows[i];
	return NULL;
}

int http_routes_add(struct http_routes *routes, const struct http_route *row)
{
	if (http_routes_find(routes, row->path))
		return -EEXIST;
	if (routes->len == HTTP_ROUTES_MAX)
		return -ENOSPC;
	routes->rows[routes->len++] = *row;
	return 0;
}
