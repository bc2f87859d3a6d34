/* SPDX-License-Identifier: Apache-2.0 */
#include "web/yaml.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "base/cleanup.h"
#include "base/units.h"

struct reader {
	yaml_parser_t parser;
	struct yaml_error *error;
	struct yaml_node
		*nodes; /* an array; the first is the root, and one that is clear the end */
	size_t nodes_len;
	struct yaml_node *parents[YAML_DEPTH_MAX]; /* lists and maps that are open */
	struct yaml_node **ends[YAML_DEPTH_MAX + 1]; /* where the next child of each goes */
	int depth;
};

static int web_yaml_fail_at(struct yaml_error *error, const yaml_mark_t *mark, const char *text)
{
	error->line = mark->line + 1;
	error->column = mark->column + 1;
	snprintf(error->text, sizeof(error->text), "%s", text);
	return -EINVAL;
}

int web_yaml_fail(struct yaml_error *error, const struct yaml_node *node, const char *format, ...)
{
	va_list arguments;

	error->line = node ? node->line : 0;
	error->column = node ? node->column : 0;
	va_start(arguments, format);
	vsnprintf(error->text, sizeof(error->text), format, arguments);
	va_end(arguments);
	return -EINVAL;
}

void web_yaml_free(struct yaml_node *root)
{
	for (const struct yaml_node *node = root; node && node->line; node++)
		free(node->text);
	free(root);
}

bool web_yaml_is_null(const struct yaml_node *node)
{
	static const char *const nulls[] = { "", "~", "null", "Null", "NULL" };

	if (!node)
		return true;
	if (node->kind != YAML_TEXT || !node->plain)
		return false;
	for (size_t i = 0; i < COUNT(nulls); i++)
		if (strcmp(node->text, nulls[i]) == 0)
			return true;
	return false;
}

/* Whether all keys of @map are texts, and none is there twice. */
static int map_check_keys(const struct yaml_node *map, struct yaml_error *error)
{
	for (const struct yaml_node *key = map->first; key; key = key->next->next) {
		if (key->kind != YAML_TEXT)
			return web_yaml_fail(error, key, "a key must be a text");
		for (const struct yaml_node *other = map->first; other != key;
		     other = other->next->next)
			if (strcmp(other->text, key->text) == 0)
				return web_yaml_fail(error, key, "key \"%.80s\" is given twice",
						     key->text);
	}
	return 0;
}

static const yaml_char_t *event_tag(const yaml_event_t *event)
{
	if (event->type == YAML_SCALAR_EVENT)
		return event->data.scalar.tag;
	return event->type == YAML_SEQUENCE_START_EVENT ? event->data.sequence_start.tag
							: event->data.mapping_start.tag;
}

/* Adds the node that begins with @event to its parent. */
static int reader_add(struct reader *reader, const yaml_event_t *event)
{
	struct yaml_node *node = &reader->nodes[reader->nodes_len];
	bool is_text = event->type == YAML_SCALAR_EVENT;

	if (event_tag(event))
		return web_yaml_fail_at(reader->error, &event->start_mark, "tags are not allowed");
	if (reader->nodes_len == YAML_NODES_MAX)
		return web_yaml_fail_at(reader->error, &event->start_mark, "too many values");
	if (!is_text && reader->depth == YAML_DEPTH_MAX)
		return web_yaml_fail_at(reader->error, &event->start_mark, "nested too deeply");
	node->line = event->start_mark.line + 1;
	node->column = event->start_mark.column + 1;
	reader->nodes_len++;
	*reader->ends[reader->depth] = node;
	reader->ends[reader->depth] = &node->next;
	if (!is_text) {
		node->kind = event->type == YAML_MAPPING_START_EVENT ? YAML_MAP : YAML_LIST;
		reader->parents[reader->depth++] = node;
		reader->ends[reader->depth] = &node->first;
		return 0;
	}
	if (memchr(event->data.scalar.value, '\0', event->data.scalar.length))
		return web_yaml_fail(reader->error, node, "a NUL byte inside a text");
	node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	node->text = strdup((const char *)event->data.scalar.value);
	return node->text ? 0 : -ENOMEM;
}

static int reader_take(struct reader *reader, const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT:
		return reader->nodes_len ? web_yaml_fail_at(reader->error, &event->start_mark,
							    "a second document begins here")
					 : 0;
	case YAML_ALIAS_EVENT:
		return web_yaml_fail_at(reader->error, &event->start_mark,
					"aliases are not allowed");
	case YAML_SCALAR_EVENT:
	case YAML_SEQUENCE_START_EVENT:
	case YAML_MAPPING_START_EVENT:
		return reader_add(reader, event);
	case YAML_MAPPING_END_EVENT:
		return map_check_keys(reader->parents[--reader->depth], reader->error);
	case YAML_SEQUENCE_END_EVENT:
		reader->depth--;
		return 0;
	default:
		return 0;
	}
}

/* The whole stream. */
static int reader_run(struct reader *reader)
{
	bool ended = false;
	int r = 0;

	while (!r && !ended) {
		yaml_event_t event;

		if (!yaml_parser_parse(&reader->parser, &event))
			return reader->parser.error == YAML_MEMORY_ERROR
				       ? -ENOMEM
				       : web_yaml_fail_at(
						 reader->error, &reader->parser.problem_mark,
						 reader->parser.problem ? reader->parser.problem
									: "not YAML");
		ended = event.type == YAML_STREAM_END_EVENT;
		r = reader_take(reader, &event);
		yaml_event_delete(&event);
	}
	return r;
}

int web_yaml_read(const char *text, size_t len, struct yaml_node **root, struct yaml_error *error)
{
	_cleanup_(web_yaml_freep) struct yaml_node *nodes = NULL;
	struct yaml_node *read = NULL;
	struct reader reader = { .error = error, .ends = { &read } };
	int r;

	if (len > YAML_BYTES_MAX)
		return web_yaml_fail(error, NULL, "larger than %zu bytes", YAML_BYTES_MAX);
	reader.nodes = nodes = calloc(YAML_NODES_MAX + 1, sizeof(*nodes));
	if (!nodes || !yaml_parser_initialize(&reader.parser))
		return -ENOMEM;
	yaml_parser_set_input_string(&reader.parser, (const unsigned char *)text, len);
	r = reader_run(&reader);
	yaml_parser_delete(&reader.parser);
	if (!r && read)
		*root = TAKE_PTR(nodes);
	return r;
}
