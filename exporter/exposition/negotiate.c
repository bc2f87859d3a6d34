/* SPDX-License-Identifier: Apache-2.0 */
#include "exposition/negotiate.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#define WEIGHT_MAX 1000 /* q=1, in thousandths: a weight has three decimals at most */
#define PARAMETERS_MAX 8 /* of an element; further ones are not looked at */

/* A part of a header: not terminated. */
struct span {
	const char *text;
	size_t len;
};

struct parameter {
	struct span name;
	struct span value; /* without the quotes */
};

/* One element of a list: `name;parameter=value;q=0.5`. */
struct element {
	struct span name;
	struct parameter parameters[PARAMETERS_MAX];
	size_t parameters_len;
	int weight;
};

/* What is known of an alternative so far. */
struct preference {
	int specificity; /* of the element that decided; 0: none */
	int weight;
	size_t position; /* of that element */
};

enum { MATCH_NONE, MATCH_ANY, MATCH_TYPE, MATCH_EXACT };

/* How elements name a format. */
static const struct {
	const char *type, *name;
	struct {
		const char *name, *value;
	} parameters[2]; /* none may have another value */
	bool required; /* each must be there: there are other messages, and other encodings */
} formats[EXPOSITION_FORMATS] = {
	[EXPOSITION_TEXT] = { "text/*", "text/plain", { { "version", "0.0.4" } }, false },
	[EXPOSITION_OPENMETRICS] = { "application/*",
				     "application/openmetrics-text",
				     { { "version", "1.0.0" } },
				     false },
	[EXPOSITION_PROTOBUF] = { "application/*",
				  "application/vnd.google.protobuf",
				  { { "proto", "io.prometheus.client.MetricFamily" },
				    { "encoding", "delimited" } },
				  true },
};

static bool span_is(struct span span, const char *text)
{
	return span.len == strlen(text) && strncasecmp(span.text, text, span.len) == 0;
}

/* Length of what is between quotes at the start, with them; 0 if they do not end. */
static size_t quoted_len(struct span span)
{
	for (size_t i = 1; i < span.len; i++) {
		if (span.text[i] == '"')
			return i + 1;
		i += span.text[i] == '\\';
	}
	return 0;
}

/* Takes from @rest what comes before the next @separator outside quotes, without spaces around. */
static struct span take_part(struct span *rest, char separator)
{
	struct span part = { rest->text, 0 };

	while (part.len < rest->len && rest->text[part.len] != separator) {
		struct span behind = { rest->text + part.len, rest->len - part.len };
		size_t quoted = *behind.text == '"' ? quoted_len(behind) : 1;

		part.len += quoted ? quoted : behind.len;
	}
	rest->text += part.len;
	rest->len -= part.len;
	if (rest->len)
		*rest = (struct span){ rest->text + 1, rest->len - 1 };
	for (; part.len && strchr(" \t", part.text[0]); part.len--)
		part.text++;
	while (part.len && strchr(" \t", part.text[part.len - 1]))
		part.len--;
	return part;
}

/* Whether it has no separators, which an element that can be read has between its words only. */
static bool span_is_word(struct span span)
{
	for (size_t i = 0; i < span.len; i++)
		if (strchr(" \t\"=", span.text[i]))
			return false;
	return true;
}

/* `0`, `1`, or either with decimals, of which three count; -1 if it is anything else or above 1. */
static int parse_weight(struct span value)
{
	int weight = 0, unit = WEIGHT_MAX;

	for (size_t i = 0; i < value.len; i++) {
		if (i == 1 ? value.text[i] != '.' : value.text[i] < '0' || value.text[i] > '9')
			return -1;
		if (i == 1)
			continue;
		weight += (value.text[i] - '0') * unit;
		unit /= 10;
	}
	return value.len && weight <= WEIGHT_MAX ? weight : -1;
}

/* Whether it can be read. */
static bool element_add(struct element *element, struct span text)
{
	struct span value = text, name = take_part(&value, '=');
	bool quoted = value.len && *value.text == '"' && quoted_len(value) == value.len;

	if (!name.len || !span_is_word(name) || name.len == text.len ||
	    (!quoted && !span_is_word(value)))
		return false;
	if (quoted)
		value = (struct span){ value.text + 1, value.len - 2 };
	if (span_is(name, "q"))
		element->weight = parse_weight(value);
	else if (element->parameters_len < PARAMETERS_MAX)
		element->parameters[element->parameters_len++] = (struct parameter){ name, value };
	return element->weight >= 0;
}

/* The next element that can be read; false at the end. */
static bool next_element(struct span *header, struct element *element)
{
	while (header->len) {
		struct span rest = take_part(header, ',');
		bool good;

		*element = (struct element){ take_part(&rest, ';'), .weight = WEIGHT_MAX };
		good = element->name.len && span_is_word(element->name);
		while (good && rest.len) {
			struct span text = take_part(&rest, ';');

			/* An empty one, as in `a;;b`, is allowed. */
			good = !text.len || element_add(element, text);
		}
		if (good)
			return true;
	}
	return false;
}

static int element_match(const struct element *element, enum exposition_format format)
{
	size_t seen = 0;

	if (span_is(element->name, "*/*"))
		return MATCH_ANY;
	if (span_is(element->name, formats[format].type))
		return MATCH_TYPE;
	if (!span_is(element->name, formats[format].name))
		return MATCH_NONE;
	for (size_t i = 0; i < 2 * element->parameters_len; i++) {
		const struct parameter *parameter = &element->parameters[i / 2];
		const char *name = formats[format].parameters[i % 2].name;

		if (!name || !span_is(parameter->name, name))
			continue;
		if (!span_is(parameter->value, formats[format].parameters[i % 2].value))
			return MATCH_NONE;
		seen |= 1U << i % 2;
	}
	return !formats[format].required || seen == 3 ? MATCH_EXACT : MATCH_NONE;
}

static void preference_update(struct preference *preference, int specificity, int weight,
			      size_t position)
{
	if (specificity > preference->specificity)
		*preference = (struct preference){ specificity, weight, position };
}

static bool preference_is_better(const struct preference *a, const struct preference *b)
{
	if (a->weight != b->weight || !a->weight)
		return a->weight > b->weight;
	if (a->specificity != b->specificity)
		return a->specificity > b->specificity;
	return a->position < b->position;
}

enum exposition_format exposition_negotiate(const char *accept)
{
	struct preference preferences[EXPOSITION_FORMATS] = { 0 };
	enum exposition_format best = EXPOSITION_TEXT;
	struct span header = { accept, strlen(accept) };
	struct element element;

	for (size_t position = 0; next_element(&header, &element); position++)
		for (int format = 0; format < EXPOSITION_FORMATS; format++)
			preference_update(&preferences[format],
					  element_match(&element, (enum exposition_format)format),
					  element.weight, position);
	for (int format = 0; format < EXPOSITION_FORMATS; format++) {
		if (preference_is_better(&preferences[format], &preferences[best]))
			best = (enum exposition_format)format;
	}
	return best;
}

bool exposition_accepts_gzip(const char *accept_encoding)
{
	struct span header = { accept_encoding, strlen(accept_encoding) };
	struct preference gzip = { 0 }, identity = { 0 };
	struct element element;

	while (next_element(&header, &element)) {
		bool any = span_is(element.name, "*");

		if (any || span_is(element.name, "gzip") || span_is(element.name, "x-gzip"))
			preference_update(&gzip, any ? MATCH_ANY : MATCH_EXACT, element.weight, 0);
		if (span_is(element.name, "identity"))
			preference_update(&identity, MATCH_EXACT, element.weight, 0);
	}
	return gzip.weight && gzip.weight >= identity.weight;
}
