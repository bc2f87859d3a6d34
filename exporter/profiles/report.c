/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "abi/profiles.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "base/units.h"
#include "base/utf8.h"
#include "profiles/folded.h"

#define HASH_NONFATAL_OOM 1 /* an element that could not be added has hh.tbl == NULL */
#include <uthash.h>

#define PLACE_BYTES 1024 /* of what a place is called */
#define PLACES_MAX (FRAMES_MAX + 3) /* in a path: pool, state, frames, why there are no more */
#define ROWS_MAX PLACES_MAX
#define NO_FILE UINT32_MAX /* of a pool, */
#define NO_STACK (UINT32_MAX - 1) /* and of a state; 0 is that of frames */

/* A function, a thread pool, or what is waited for. */
struct place {
	uint32_t file, id; /* id: in the order in which they were met */
	char *name; /* owned */
	const char *module; /* base name of its file; "": none; borrowed */
	uint64_t self, total; /* weight of what has it innermost; of what has it */
	const void *met; /* the last path that has it */
	UT_hash_handle hh; /* by `name`, which begins with the file */
};

/* A stack, outermost first, from its pool on. */
struct path {
	uint64_t weight;
	size_t len;
	struct place *places[PLACES_MAX];
};

struct report {
	const struct profile *profile;
	unsigned int columns;
	struct place *places; /* uthash; owned */
	struct path *paths; /* owned */
	size_t paths_len;
	uint64_t weight; /* samples, of waits nanoseconds */
	char *rows; /* ROWS_MAX of `columns` bytes; owned */
	struct buffer *out;
};

/* --- what was met --------------------------------------------------------------------------- */

/* The key is the number of the file and the name, as functions of two files may have one name. */
static const char *place_text(const struct place *place)
{
	return place->name + sizeof(place->file);
}

static struct place *place_add(struct report *report, uint32_t file, const char *key, size_t len)
{
	struct place *place = calloc(1, sizeof(*place));

	if (!place)
		return NULL;
	place->file = file;
	place->id = HASH_COUNT(report->places);
	place->name = calloc(1, len + 1);
	if (place->name) {
		memcpy(place->name, key, len);
		HASH_ADD_KEYPTR(hh, report->places, place->name, len, place);
	}
	if (!place->name || !place->hh.tbl) {
		free(place->name);
		free(place);
		return NULL;
	}
	return place;
}

static struct place *place_of(struct report *report, uint32_t file, const char *text)
{
	char key[sizeof(file) + PLACE_BYTES];
	struct place *place;
	size_t len;

	memcpy(key, &file, sizeof(file));
	utf8_copy(key + sizeof(file), PLACE_BYTES, text);
	len = sizeof(file) + strlen(key + sizeof(file));
	HASH_FIND(hh, report->places, key, len, place);
	return place ? place : place_add(report, file, key, len);
}

static struct place *frame_place(struct report *report, uint64_t frame)
{
	_cleanup_(buffer_free) struct buffer text = BUFFER_INIT(2 * PLACE_BYTES);
	const struct profile_file *file = profile_file(report->profile, frame);
	struct place *place;

	folded_frame(report->profile, frame, &text);
	buffer_char(&text, '\0');
	place = place_of(report, frame_file(frame), text.error ? "" : text.data);
	if (place)
		place->module = file ? text_base_name(file->path) : "";
	return place;
}

static int path_read(struct report *report, const struct profile_stack *stack, struct path *path)
{
	path->weight = profile_weight(report->profile, stack);
	path->places[path->len++] = place_of(report, NO_FILE, stack->pool);
	if (report->profile->kind != PROFILE_CPU)
		path->places[path->len++] = place_of(report, NO_STACK, stack->state);
	for (size_t i = stack->len; i-- > 0 && path->len < PLACES_MAX;)
		path->places[path->len++] = frame_place(report, stack->frames[i]);
	for (size_t i = 0; i < path->len; i++) {
		struct place *place = path->places[i];

		if (!place)
			return -ENOMEM;
		if (place->met != path)
			place->total += path->weight;
		place->met = path;
	}
	path->places[path->len - 1]->self += path->weight;
	report->weight += path->weight;
	return 0;
}

static int report_read(struct report *report)
{
	const struct profile *profile = report->profile;
	int r = 0;

	report->paths = calloc(profile->stacks_len + 1, sizeof(*report->paths));
	report->rows = calloc(ROWS_MAX, report->columns);
	if (!report->paths || !report->rows)
		return -ENOMEM;
	memset(report->rows, ' ', (size_t)ROWS_MAX * report->columns);
	for (size_t i = 0; !r && i < profile->stacks_len; i++)
		r = path_read(report, &profile->stacks[i], &report->paths[report->paths_len++]);
	return r;
}

/* --- functions ------------------------------------------------------------------------------ */

static double percent(const struct report *report, uint64_t weight)
{
	return 100.0 * (double)weight / (double)report->weight;
}

static int place_compare(const struct place *a, const struct place *b)
{
	if (a->self != b->self)
		return a->self < b->self ? 1 : -1;
	if (a->total != b->total)
		return a->total < b->total ? 1 : -1;
	return strcmp(place_text(a), place_text(b));
}

static void function_write(const struct report *report, const struct place *place)
{
	const char *text = place_text(place);

	buffer_printf(report->out, "%5.1f %%  %5.1f %%  %s", percent(report, place->self),
		      percent(report, place->total), text);
	if (!profile_name_has_file(text, place->module))
		buffer_printf(report->out, "  (%s)", place->module);
	buffer_char(report->out, '\n');
}

static void functions_write(struct report *report)
{
	uint64_t rest = report->weight;
	const struct place *place;
	size_t shown = 0;

	HASH_SORT(report->places, place_compare);
	buffer_text(report->out, "\n   self    total  function\n");
	for (place = report->places; place; place = place->hh.next) {
		if (place->file >= NO_STACK || !place->self || shown++ == REPORT_FUNCTIONS)
			break;
		function_write(report, place);
		rest -= place->self;
	}
	if (rest)
		buffer_printf(report->out, "%5.1f %%           others\n", percent(report, rest));
}

/* --- flame graph ---------------------------------------------------------------------------- */

static int path_compare(const void *a, const void *b)
{
	const struct path *one = a, *other = b;

	for (size_t i = 0; i < one->len && i < other->len; i++)
		if (one->places[i] != other->places[i])
			return one->places[i]->id < other->places[i]->id ? -1 : 1;
	return one->len < other->len ? -1 : one->len > other->len;
}

/* Paths that have the same places up to a row. */
struct box {
	const struct path *paths;
	size_t paths_len;
	uint64_t weight;
};

static int box_compare(const void *a, const void *b)
{
	const struct box *one = a, *other = b;

	if (one->weight != other->weight)
		return one->weight < other->weight ? 1 : -1;
	return one->paths < other->paths ? -1 : one->paths > other->paths;
}

/* "[name   ]", cut; of what is no plain letter there stands one for each, as wide as it. */
static void box_draw(char *at, size_t columns, const char *name)
{
	size_t i = 1;

	if (columns == 1) {
		*at = '|';
		return;
	}
	at[0] = '[';
	for (; *name && i + 1 < columns; i++) {
		size_t len = utf8_length(name);

		at[i] = len == 1 ? *name : '?';
		name += len ? len : 1;
	}
	at[columns - 1] = ']';
}

/* The boxes of row @depth among these paths, which are in order: the widest first. Returns how
 * many. */
static size_t boxes_find(const struct box *above, size_t depth, struct box *boxes)
{
	size_t len = 0;

	for (size_t i = 0; i < above->paths_len; i++) {
		const struct path *path = &above->paths[i];

		if (path->len <= depth)
			continue;
		if (!len || boxes[len - 1].paths->places[depth] != path->places[depth])
			boxes[len++] = (struct box){ .paths = path };
		boxes[len - 1].paths_len++;
		boxes[len - 1].weight += path->weight;
	}
	qsort(boxes, len, sizeof(*boxes), box_compare);
	return len;
}

/* Draws what is below @above, which begins after @before of the graph's weight. 0 or -ENOMEM. */
static int boxes_draw(struct report *report, const struct box *above, size_t depth, uint64_t before)
{
	_cleanup_(cleanup_free) struct box *boxes = calloc(above->paths_len, sizeof(*boxes));
	size_t len = boxes ? boxes_find(above, depth, boxes) : 0;
	int r = boxes ? 0 : -ENOMEM;

	for (size_t i = 0; !r && i < len; i++) {
		size_t begin = before * report->columns / report->weight, end;

		before += boxes[i].weight;
		end = before * report->columns / report->weight;
		if (begin == end)
			continue;
		box_draw(report->rows + depth * report->columns + begin, end - begin,
			 place_text(boxes[i].paths->places[depth]));
		r = boxes_draw(report, &boxes[i], depth + 1, before - boxes[i].weight);
	}
	return r;
}

static int flame_write(struct report *report)
{
	const struct box all = { .paths = report->paths, .paths_len = report->paths_len };
	int r;

	qsort(report->paths, report->paths_len, sizeof(*report->paths), path_compare);
	r = boxes_draw(report, &all, 0, 0);
	buffer_text(report->out, "\nstacks, a thread pool above what it runs, callers above what "
				 "they call\n");
	for (size_t row = 0; !r && row < ROWS_MAX; row++) {
		const char *cells = report->rows + row * report->columns;
		size_t len = report->columns;

		while (len && cells[len - 1] == ' ')
			len--;
		if (!len)
			break;
		buffer_append(report->out, cells, len);
		buffer_char(report->out, '\n');
	}
	return r;
}

/* --- all of it ------------------------------------------------------------------------------ */

static void head_cpu(const struct profile *profile, double seconds, struct buffer *out)
{
	double busy = (double)profile->samples * (double)profile->period_ns / (double)NS_PER_S;

	buffer_printf(out, "%" PRIu64 " samples", profile->samples);
	if (profile->samples)
		buffer_printf(out, ", %.2f CPUs", busy / seconds);
}

static void head_waits(const struct profile *profile, double seconds, struct buffer *out)
{
	double waited = (double)profile->weight / (double)NS_PER_S;

	buffer_printf(out, "%" PRIu64 " waits", profile->samples);
	if (profile->weight)
		buffer_printf(out, ", %.2f threads at a time", waited / seconds);
}

static void head_faults(const struct profile *profile, double seconds, struct buffer *out)
{
	buffer_printf(out, "%" PRIu64 " page faults", profile->samples);
	if (profile->samples)
		buffer_printf(out, ", %.0f a second", (double)profile->samples / seconds);
}

static void head_write(const struct profile *profile, const char *workload, struct buffer *out)
{
	double seconds = (double)profile->duration_ns / (double)NS_PER_S;
	bool cpu = profile->kind == PROFILE_CPU, waits = profile_kinds[profile->kind].waits;
	char name[PLACE_BYTES];

	utf8_copy(name, sizeof(name), workload);
	buffer_printf(out, "%s, %.1f s: ", name, seconds);
	if (cpu)
		head_cpu(profile, seconds, out);
	else if (waits)
		head_waits(profile, seconds, out);
	else
		head_faults(profile, seconds, out);
	if (profile->weight)
		buffer_printf(out, ", %.1f %% of %s are complete",
			      100.0 * (double)profile->complete / (double)profile->weight,
			      cpu     ? "stacks"
			      : waits ? "them, by time,"
				      : "their stacks");
	else if (cpu && !profile->lost)
		buffer_text(out, ", as it used no CPU");
	if (profile->lost)
		buffer_printf(out, "; %" PRIu64 " of all workloads were lost", profile->lost);
	buffer_char(out, '\n');
}

static void report_free(struct report *report)
{
	struct place *place, *next;

	HASH_ITER (hh, report->places, place, next) {
		HASH_DEL(report->places, place);
		free(place->name);
		free(place);
	}
	free(report->paths);
	free(report->rows);
}

int report_write(const struct profile *profile, const char *workload, unsigned int columns,
		 struct buffer *out)
{
	_cleanup_(report_free) struct report report = {
		.profile = profile,
		.columns = columns < REPORT_COLUMNS_MIN   ? REPORT_COLUMNS_MIN
			   : columns > REPORT_COLUMNS_MAX ? REPORT_COLUMNS_MAX
							  : columns,
		.out = out,
	};
	int r = report_read(&report);

	if (r)
		return r;
	head_write(profile, workload, out);
	if (report.weight) {
		functions_write(&report);
		r = flame_write(&report);
	}
	return r ? r : out->error;
}
