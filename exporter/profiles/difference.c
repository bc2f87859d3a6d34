/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/difference.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "base/utf8.h"
#include "profiles/profile.h"

#define HASH_NONFATAL_OOM 1 /* an element that could not be added has hh.tbl == NULL */
#include <uthash.h>

#define NAME_BYTES 1024 /* of a function */
#define WORD_BYTES 64 /* of a type of values, and of a unit */
#define DEVIATIONS 2 /* of the number of samples, that a change has to be beyond */

enum extent { ITSELF, WITH_CALLS, EXTENTS };

/* What one side has of a function: of the samples that have it innermost, or that have it. */
struct share {
	double value, samples;
};

struct function {
	struct share shares[EXTENTS][DIFFERENCE_SIDES];
	double change; /* per second, of what is shown */
	uint64_t met; /* the last sample that has it */
	UT_hash_handle hh; /* by `name` */
	char name[]; /* with its file, as shown */
};

struct side {
	double seconds;
	double value; /* of all samples */
};

struct difference {
	struct side sides[DIFFERENCE_SIDES];
	char type[WORD_BYTES], unit[WORD_BYTES]; /* what it is of */
	struct function *functions; /* uthash; owned */
	uint64_t samples; /* of both sides */
};

/* Which values of a sample are read. */
struct columns {
	size_t value;
	size_t samples; /* how many it stands for; n_sample_type: they are not told */
};

struct difference *difference_new(void)
{
	return calloc(1, sizeof(struct difference));
}

void difference_free(struct difference *difference)
{
	struct function *function, *next;

	if (!difference)
		return;
	HASH_ITER (hh, difference->functions, function, next) {
		HASH_DEL(difference->functions, function);
		free(function);
	}
	free(difference);
}

/* --- what a profile is of ------------------------------------------------------------------- */

static const char *type_of(const Pprof__Profile *profile, size_t column)
{
	return profile->string_table[profile->sample_type[column]->type];
}

static const char *unit_of(const Pprof__Profile *profile, size_t column)
{
	return profile->string_table[profile->sample_type[column]->unit];
}

static struct columns columns_of(const Pprof__Profile *profile)
{
	const char *wanted = profile->string_table[profile->default_sample_type];
	size_t len = profile->n_sample_type;
	struct columns columns = { len - 1, len };

	for (size_t i = 0; *wanted && i < len; i++)
		if (!strcmp(type_of(profile, i), wanted))
			columns.value = i;
	for (size_t i = 0; i < len; i++)
		if (!strcmp(type_of(profile, i), "samples") &&
		    !strcmp(unit_of(profile, i), "count"))
			columns.samples = i;
	return columns;
}

static bool is_time(const struct difference *difference)
{
	return !strcmp(difference->unit, "nanoseconds");
}

static bool is_cpu_time(const struct difference *difference)
{
	return is_time(difference) && !strcmp(difference->type, "cpu");
}

/* --- functions ------------------------------------------------------------------------------ */

/* NULL without memory. */
static struct function *function_find(struct difference *difference, const char *name)
{
	size_t len = strlen(name);
	struct function *function;

	HASH_FIND(hh, difference->functions, name, len, function);
	if (function)
		return function;
	function = calloc(1, sizeof(*function) + len + 1);
	if (!function)
		return NULL;
	memcpy(function->name, name, len);
	HASH_ADD_KEYPTR(hh, difference->functions, function->name, len, function);
	if (function->hh.tbl)
		return function;
	free(function);
	return NULL;
}

/* "name  (file)", or the name alone. */
static void name_make(const char *text, const char *file, char out[static NAME_BYTES])
{
	char name[NAME_BYTES];

	if (profile_name_has_file(text, file))
		snprintf(name, sizeof(name), "%s", text);
	else
		snprintf(name, sizeof(name), "%s  (%s)", text, file);
	utf8_copy(out, NAME_BYTES, name);
}

/* An address is told as its file has it. */
static void address_make(const Pprof__Location *location, const Pprof__Mapping *mapping,
			 const char *file, char out[static NAME_BYTES])
{
	uint64_t address = location->address;

	if (mapping)
		address += mapping->file_offset - mapping->memory_start;
	snprintf(out, NAME_BYTES, "%s%s%#llx", file, *file ? "+" : "", (unsigned long long)address);
}

/* What is added of a sample. */
struct adding {
	struct difference *difference;
	enum difference_side side;
	const Pprof__Profile *profile;
	double value, samples;
	bool innermost; /* so far there was no function */
};

static void share_add(struct function *function, enum extent extent, const struct adding *adding)
{
	struct share *share = &function->shares[extent][adding->side];

	share->value += adding->value;
	share->samples += adding->samples;
}

static int function_add(struct adding *adding, const char *name)
{
	struct function *function = function_find(adding->difference, name);

	if (!function)
		return -ENOMEM;
	if (function->met != adding->difference->samples)
		share_add(function, WITH_CALLS, adding);
	if (adding->innermost)
		share_add(function, ITSELF, adding);
	function->met = adding->difference->samples;
	adding->innermost = false;
	return 0;
}

/* A place in code is in several functions where some are compiled into others. */
static int location_add(struct adding *adding, const Pprof__Location *location)
{
	const Pprof__Profile *profile = adding->profile;
	const Pprof__Mapping *mapping = pprof_mapping(profile, location->mapping_id);
	const char *path = mapping ? profile->string_table[mapping->filename] : "";
	const char *file = text_base_name(path);
	char text[NAME_BYTES], name[NAME_BYTES];
	int r = 0;

	for (size_t i = 0; !r && i < location->n_line; i++) {
		const Pprof__Function *function = pprof_function(profile,
								 location->line[i]->function_id);

		name_make(profile->string_table[function->name], file, name);
		r = function_add(adding, name);
	}
	if (location->n_line)
		return r;
	address_make(location, mapping, file, text);
	name_make(text, file, name);
	return function_add(adding, name);
}

static int sample_add(struct adding *adding, const Pprof__Sample *sample)
{
	int r = 0;

	adding->innermost = true;
	adding->difference->samples++;
	adding->difference->sides[adding->side].value += adding->value;
	for (size_t i = 0; !r && i < sample->n_location_id; i++)
		r = location_add(adding, pprof_location(adding->profile, sample->location_id[i]));
	return r;
}

int difference_add(struct difference *difference, enum difference_side side,
		   const Pprof__Profile *profile)
{
	struct columns columns = columns_of(profile);
	struct adding adding = { .difference = difference, .side = side, .profile = profile };
	char type[WORD_BYTES], unit[WORD_BYTES];
	int r = 0;

	if (profile->duration_nanos <= 0)
		return -EINVAL;
	utf8_copy(type, sizeof(type), type_of(profile, columns.value));
	utf8_copy(unit, sizeof(unit), unit_of(profile, columns.value));
	if (side == AFTER &&
	    (strcmp(difference->type, type) != 0 || strcmp(difference->unit, unit) != 0))
		return -EMEDIUMTYPE;
	text_copy(difference->type, sizeof(difference->type), type);
	text_copy(difference->unit, sizeof(difference->unit), unit);
	difference->sides[side].seconds = (double)profile->duration_nanos / (double)NS_PER_S;
	for (size_t i = 0; !r && i < profile->n_sample; i++) {
		const Pprof__Sample *sample = profile->sample[i];

		adding.value = (double)sample->value[columns.value];
		if (columns.samples < sample->n_value)
			adding.samples = (double)sample->value[columns.samples];
		r = sample_add(&adding, sample);
	}
	return r;
}

/* --- what is shown -------------------------------------------------------------------------- */

/* CPUs, or threads; or how many in a second. */
static double rate(const struct difference *difference, enum difference_side side, double value)
{
	double unit = is_time(difference) ? (double)NS_PER_S : 1;

	return value / unit / difference->sides[side].seconds;
}

static double change(const struct difference *difference, double before, double after)
{
	return rate(difference, AFTER, after) - rate(difference, BEFORE, before);
}

/* Of a rate of so many samples, as if each came by chance. */
static double variance(const struct difference *difference, enum difference_side side,
		       const struct share *share)
{
	double per_second = rate(difference, side, share->value);

	return share->samples > 0 ? per_second * per_second / share->samples : 0;
}

static bool may_be_chance(const struct difference *difference, const struct share shares[],
			  double changed)
{
	double expected = sqrt(variance(difference, BEFORE, &shares[BEFORE]) +
			       variance(difference, AFTER, &shares[AFTER]));

	return is_cpu_time(difference) && fabs(changed) < DEVIATIONS * expected;
}

static int change_compare(const struct function *a, const struct function *b)
{
	double one = fabs(a->change), other = fabs(b->change);

	if (one != other)
		return one < other ? 1 : -1;
	return strcmp(a->name, b->name);
}

static void row_write(const struct difference *difference, const double values[], const char *mark,
		      const char *name, struct buffer *out)
{
	int digits = is_time(difference) ? 3 : 1;

	buffer_printf(out, "%9.*f %9.*f %+9.*f %s %s\n", digits,
		      rate(difference, BEFORE, values[BEFORE]), digits,
		      rate(difference, AFTER, values[AFTER]), digits,
		      change(difference, values[BEFORE], values[AFTER]), mark, name);
}

static void functions_sort(struct difference *difference, enum extent extent)
{
	struct function *function;

	for (function = difference->functions; function; function = function->hh.next)
		function->change = change(difference, function->shares[extent][BEFORE].value,
					  function->shares[extent][AFTER].value);
	HASH_SORT(difference->functions, change_compare);
}

/* What is in the functions that are shown themselves is in no other one. */
static void functions_write(struct difference *difference, enum extent extent, struct buffer *out)
{
	double rest[] = { difference->sides[BEFORE].value, difference->sides[AFTER].value };
	const struct function *function;
	size_t shown = 0;

	functions_sort(difference, extent);
	for (function = difference->functions; function; function = function->hh.next) {
		const struct share *shares = function->shares[extent];
		const double values[] = { shares[BEFORE].value, shares[AFTER].value };

		if (function->change == 0 || shown++ == DIFFERENCE_FUNCTIONS)
			break;
		row_write(difference, values,
			  may_be_chance(difference, shares, function->change) ? "~" : " ",
			  function->name, out);
		rest[BEFORE] -= values[BEFORE];
		rest[AFTER] -= values[AFTER];
	}
	if (extent == ITSELF)
		row_write(difference, rest, " ", "others", out);
}

static void unit_write(const struct difference *difference, struct buffer *out)
{
	if (is_cpu_time(difference))
		buffer_text(out, "CPUs");
	else if (is_time(difference))
		buffer_text(out, "threads at a time");
	else
		buffer_printf(out, "%s a second", difference->type);
}

static void side_write(const struct difference *difference, enum difference_side side,
		       const char *path, struct buffer *out)
{
	char name[NAME_BYTES];

	utf8_copy(name, sizeof(name), path);
	buffer_printf(out, "%s  %s: %.1f s, ", side == BEFORE ? "before" : "after ", name,
		      difference->sides[side].seconds);
	buffer_printf(out, "%.*f ", is_time(difference) ? 3 : 1,
		      rate(difference, side, difference->sides[side].value));
	unit_write(difference, out);
	buffer_char(out, '\n');
}

int difference_write(struct difference *difference, const char *const names[DIFFERENCE_SIDES],
		     struct buffer *out)
{
	static const char *const heads[] = { "in itself", "with what it calls" };

	side_write(difference, BEFORE, names[BEFORE], out);
	side_write(difference, AFTER, names[AFTER], out);
	for (int extent = 0; extent < EXTENTS; extent++) {
		buffer_printf(out, "\n%9s %9s %9s   function, %s%s\n", "before", "after", "change",
			      heads[extent], is_cpu_time(difference) ? " (~ may be chance)" : "");
		functions_write(difference, (enum extent)extent, out);
	}
	return out->error;
}
