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
	size_t nodes;
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

void web_yaml_free(struct yaml_node *node)
{
	while (node) {
		struct yaml_node *next = node->next;

		web_yaml_free(node->first); /* no deeper than YAML_DEPTH_MAX */
		free(node->text);
		free(node);
		node = next;
	}
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

static int reader_next(struct reader *reader, yaml_event_t *event)
{
	if (yaml_parser_parse(&reader->parser, event))
		return 0;
	if (reader->parser.error == YAML_MEMORY_ERROR)
		return -ENOMEM;
	return web_yaml_fail_at(reader->error, &reader->parser.problem_mark,
				reader->parser.problem ? reader->parser.problem : "not YAML");
}

static int reader_text(struct reader *reader, const yaml_event_t *event, struct yaml_node *node)
{
	const char *text = (const char *)event->data.scalar.value;

	if (memchr(text, '\0', event->data.scalar.length))
		return web_yaml_fail_at(reader->error, &event->start_mark,
					"a NUL byte inside a text");
	node->kind = YAML_TEXT;
	node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	node->text = strdup(text);
	return node->text ? 0 : -ENOMEM;
}

/* The node that begins with @event, without its children. */
static int reader_begin(struct reader *reader, const yaml_event_t *event, struct yaml_node *node)
{
	const yaml_char_t *tag = NULL;

	node->line = event->start_mark.line + 1;
	node->column = event->start_mark.column + 1;
	if (event->type == YAML_ALIAS_EVENT)
		return web_yaml_fail_at(reader->error, &event->start_mark,
					"aliases are not allowed");
	if (event->type == YAML_SCALAR_EVENT)
		tag = event->data.scalar.tag;
	else if (event->type == YAML_SEQUENCE_START_EVENT)
		tag = event->data.sequence_start.tag;
	else
		tag = event->data.mapping_start.tag;
	if (tag)
		return web_yaml_fail_at(reader->error, &event->start_mark, "tags are not allowed");
	if (event->type == YAML_SCALAR_EVENT)
		return reader_text(reader, event, node);
	node->kind = event->type == YAML_MAPPING_START_EVENT ? YAML_MAP : YAML_LIST;
	return 0;
}

static int reader_children(struct reader *reader, int depth, struct yaml_node *parent);

/* The node that begins with @event; the event is released. */
static int reader_node(struct reader *reader, yaml_event_t *event, int depth,
		       struct yaml_node **out)
{
	_cleanup_(web_yaml_freep) struct yaml_node *node = calloc(1, sizeof(*node));
	int r = node ? 0 : -ENOMEM;

	if (!r && ++reader->nodes > YAML_NODES_MAX)
		r = web_yaml_fail_at(reader->error, &event->start_mark, "too many values");
	if (!r)
		r = reader_begin(reader, event, node);
	yaml_event_delete(event);
	if (!r && node->kind != YAML_TEXT)
		r = depth < YAML_DEPTH_MAX
			    ? reader_children(reader, depth + 1, node)
			    : web_yaml_fail(reader->error, node, "nested too deeply");
	if (!r)
		*out = TAKE_PTR(node);
	return r;
}

static int reader_children(struct reader *reader, int depth, struct yaml_node *parent)
{
	struct yaml_node **end = &parent->first;
	yaml_event_t event;
	int r;

	for (;;) {
		r = reader_next(reader, &event);
		if (r)
			return r;
		if (event.type == YAML_MAPPING_END_EVENT || event.type == YAML_SEQUENCE_END_EVENT) {
			yaml_event_delete(&event);
			return 0;
		}
		r = reader_node(reader, &event, depth, end);
		if (r)
			return r;
		end = &(*end)->next;
	}
}

/* The whole stream: at most one document. */
static int reader_stream(struct reader *reader, struct yaml_node **out)
{
	yaml_event_t event;
	int r;

	for (;;) {
		yaml_event_type_t type;

		r = reader_next(reader, &event);
		if (r)
			return r;
		type = event.type;
		if (type == YAML_DOCUMENT_START_EVENT && *out)
			r = web_yaml_fail_at(reader->error, &event.start_mark,
					     "a second document begins here");
		if (type == YAML_SCALAR_EVENT || type == YAML_ALIAS_EVENT ||
		    type == YAML_SEQUENCE_START_EVENT || type == YAML_MAPPING_START_EVENT)
			r = reader_node(reader, &event, 0, out);
		else
			yaml_event_delete(&event);
		if (r || type == YAML_STREAM_END_EVENT || type == YAML_NO_EVENT)
			return r;
	}
}

/* By name, and those of one name as they follow each other in the file. */
static int keys_compare(const void *a, const void *b)
{
	const struct yaml_node *one = *(const struct yaml_node *const *)a;
	const struct yaml_node *other = *(const struct yaml_node *const *)b;
	int order = strcmp(one->text, other->text);

	if (!order)
		order = (one->line > other->line) - (one->line < other->line);
	return order ? order : (one->column > other->column) - (one->column < other->column);
}

/* Sorted, because a hostile file has thousands of keys. */
static int map_check_keys(const struct yaml_node *map, struct yaml_error *error)
{
	_cleanup_(cleanup_free) const struct yaml_node **keys = NULL;
	size_t len = 0;

	keys = calloc(YAML_NODES_MAX, sizeof(struct yaml_node *));
	if (!keys)
		return -ENOMEM;
	for (const struct yaml_node *key = map->first; key; key = key->next->next) {
		if (key->kind != YAML_TEXT)
			return web_yaml_fail(error, key, "a key must be a text");
		keys[len++] = key;
	}
	qsort(keys, len, sizeof(struct yaml_node *), keys_compare);
	for (size_t i = 1; i < len; i++)
		if (strcmp(keys[i - 1]->text, keys[i]->text) == 0)
			return web_yaml_fail(error, keys[i], "key \"%.80s\" is given twice",
					     keys[i]->text);
	return 0;
}

static int tree_check_keys(const struct yaml_node *node, struct yaml_error *error)
{
	int r = node->kind == YAML_MAP ? map_check_keys(node, error) : 0;

	for (const struct yaml_node *child = node->first; !r && child; child = child->next)
		if (child->kind != YAML_TEXT)
			r = tree_check_keys(child, error);
	return r;
}

int web_yaml_read(const char *text, size_t len, struct yaml_node **root, struct yaml_error *error)
{
	_cleanup_(web_yaml_freep) struct yaml_node *read = NULL;
	struct reader reader = { .error = error };
	int r;

	if (len > YAML_BYTES_MAX)
		return web_yaml_fail(error, NULL, "larger than %zu bytes", YAML_BYTES_MAX);
	if (!yaml_parser_initialize(&reader.parser))
		return -ENOMEM;
	yaml_parser_set_input_string(&reader.parser, (const unsigned char *)text, len);
	r = reader_stream(&reader, &read);
	yaml_parser_delete(&reader.parser);
	if (!r && read)
		r = tree_check_keys(read, error);
	if (!r)
		*root = TAKE_PTR(read);
	return r;
}
