/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small YAML document as a tree, read by libyaml and strictly: one document, no aliases, no tags,
 * no key twice, and bounds on size, depth and number of nodes. All input is hostile.
 */
#ifndef WORKLOAD_WEB_YAML_H
#define WORKLOAD_WEB_YAML_H

#include <stdbool.h>
#include <stddef.h>

#define YAML_BYTES_MAX ((size_t)1 << 20)
#define YAML_DEPTH_MAX 8
#define YAML_NODES_MAX 10000

/* What is wrong and where; lines and columns count from 1, and are 0 where there is no place. */
struct yaml_error {
	size_t line;
	size_t column;
	char text[256];
};

enum yaml_kind { YAML_TEXT, YAML_LIST, YAML_MAP };

struct yaml_node {
	enum yaml_kind kind;
	bool plain; /* a text without quotes, which may also mean null or a truth value */
	size_t line;
	size_t column;
	char *text; /* of YAML_TEXT, owned, without NUL bytes inside; NULL for the other kinds */
	struct yaml_node *first; /* of a list or map; in a map each key precedes its value */
	struct yaml_node *next; /* of the same list or map */
};

/*
 * Reads @len bytes. 0 with the tree in @root, which is NULL for a text without a document; -EINVAL
 * with @error filled; -ENOMEM. @root is untouched on failure; web_yaml_free releases it, and with
 * it all others.
 */
int web_yaml_read(const char *text, size_t len, struct yaml_node **root, struct yaml_error *error);
void web_yaml_free(struct yaml_node *root);

static inline void web_yaml_freep(struct yaml_node **node)
{
	web_yaml_free(*node);
}

/* Whether @node is null: absent, ~, null, or nothing. */
bool web_yaml_is_null(const struct yaml_node *node);

/* Fills @error with the place of @node and the text. Returns -EINVAL. */
int web_yaml_fail(struct yaml_error *error, const struct yaml_node *node, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
