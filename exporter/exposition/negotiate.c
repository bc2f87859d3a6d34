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

static bool span_is(struct span span, const char *text)
{
	return span.len == strlen(text) && strncasecmp(span.text, text, span.len) == 0;
}

static const char *skip_space(const char *at)
{
	return at + strspn(at, " \t");
}

/* A token, or anything else up to a separator: the caller decides whether it is any good. */
static struct span take_word(const char **at)
{
	struct span word = { .text = *at, .len = strcspn(*at, " \t,;=\"") };

	*at += word.len;
	return word;
}

/* What is between quotes, backslashes as they are; -1 if the quotes do not end. */
static int take_quoted(const char **at, struct span *value)
{
	const char *end = *at + 1;

	while (*end && *end != '"')
		end += end[0] == '\\' && end[1] ? 2 : 1;
	if (!*end)
		return -1;
	*value = (struct span){ .text = *at + 1, .len = (size_t)(end - *at) - 1 };
	*at = end + 1;
	return 0;
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

static int element_add(struct element *element, const struct parameter *parameter)
{
	if (span_is(parameter->name, "q")) {
		element->weight = parse_weight(parameter->value);
		return element->weight < 0 ? -1 : 0;
	}
	if (element->parameters_len < PARAMETERS_MAX)
		element->parameters[element->parameters_len++] = *parameter;
	return 0;
}

static int take_parameter(const char **at, struct element *element)
{
	struct parameter parameter;

	*at = skip_space(*at + 1);
	parameter.name = take_word(at);
	if (!parameter.name.len)
		return 0; /* an empty one, as in `a;;b`, is allowed */
	if (**at != '=')
		return -1;
	++*at;
	if (**at != '"')
		parameter.value = take_word(at);
	else if (take_quoted(at, &parameter.value) < 0)
		return -1;
	return element_add(element, &parameter);
}

/* Moves behind the next comma outside quotes, or to the end; quotes that do not end reach there. */
static void skip_element(const char **at)
{
	struct span quoted;

	while (**at && **at != ',') {
		if (**at != '"')
			++*at;
		else if (take_quoted(at, &quoted) < 0)
			*at += strlen(*at);
	}
	if (**at)
		++*at;
}

static int take_element(const char **at, struct element *element)
{
	*element = (struct element){ .weight = WEIGHT_MAX };
	*at = skip_space(*at);
	element->name = take_word(at);
	for (*at = skip_space(*at); **at == ';'; *at = skip_space(*at)) {
		if (take_parameter(at, element) < 0)
			return -1;
	}
	return element->name.len && (!**at || **at == ',') ? 0 : -1;
}

/* The next element that can be read; false at the end. */
static bool next_element(const char **at, struct element *element)
{
	while (**at) {
		int r = take_element(at, element);

		skip_element(at);
		if (!r)
			return true;
	}
	return false;
}

/* Whether @element has parameter @name with another value than @wanted. */
static bool element_contradicts(const struct element *element, const char *name, const char *wanted)
{
	for (size_t i = 0; i < element->parameters_len; i++) {
		if (span_is(element->parameters[i].name, name) &&
		    !span_is(element->parameters[i].value, wanted))
			return true;
	}
	return false;
}

static bool element_has(const struct element *element, const char *name, const char *value)
{
	for (size_t i = 0; i < element->parameters_len; i++) {
		if (span_is(element->parameters[i].name, name) &&
		    span_is(element->parameters[i].value, value))
			return true;
	}
	return false;
}

static int match_text(const struct element *element)
{
	if (span_is(element->name, "text/*"))
		return MATCH_TYPE;
	return span_is(element->name, "text/plain") &&
			       !element_contradicts(element, "version", "0.0.4")
		       ? MATCH_EXACT
		       : MATCH_NONE;
}

static int match_openmetrics(const struct element *element)
{
	if (span_is(element->name, "application/*"))
		return MATCH_TYPE;
	return span_is(element->name, "application/openmetrics-text") &&
			       !element_contradicts(element, "version", "1.0.0")
		       ? MATCH_EXACT
		       : MATCH_NONE;
}

/* There are other messages and other encodings: both must be asked for by name. */
static int match_protobuf(const struct element *element)
{
	if (span_is(element->name, "application/*"))
		return MATCH_TYPE;
	return span_is(element->name, "application/vnd.google.protobuf") &&
			       element_has(element, "proto", "io.prometheus.client.MetricFamily") &&
			       element_has(element, "encoding", "delimited")
		       ? MATCH_EXACT
		       : MATCH_NONE;
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
	static int (*const match[EXPOSITION_FORMATS])(const struct element *element) = {
		[EXPOSITION_TEXT] = match_text,
		[EXPOSITION_OPENMETRICS] = match_openmetrics,
		[EXPOSITION_PROTOBUF] = match_protobuf,
	};
	struct preference preferences[EXPOSITION_FORMATS] = { 0 };
	enum exposition_format best = EXPOSITION_TEXT;
	struct element element;

	for (size_t position = 0; next_element(&accept, &element); position++) {
		bool any = span_is(element.name, "*/*");

		for (int format = 0; format < EXPOSITION_FORMATS; format++)
			preference_update(&preferences[format],
					  any ? MATCH_ANY : match[format](&element), element.weight,
					  position);
	}
	for (int format = 0; format < EXPOSITION_FORMATS; format++) {
		if (preference_is_better(&preferences[format], &preferences[best]))
			best = (enum exposition_format)format;
	}
	return best;
}

bool exposition_accepts_gzip(const char *accept_encoding)
{
	struct preference gzip = { 0 }, identity = { 0 };
	struct element element;

	while (next_element(&accept_encoding, &element)) {
		bool any = span_is(element.name, "*");

		if (any || span_is(element.name, "gzip") || span_is(element.name, "x-gzip"))
			preference_update(&gzip, any ? MATCH_ANY : MATCH_EXACT, element.weight, 0);
		if (span_is(element.name, "identity"))
			preference_update(&identity, MATCH_EXACT, element.weight, 0);
	}
	return gzip.weight && gzip.weight >= identity.weight;
}
