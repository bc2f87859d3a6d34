/* SPDX-License-Identifier: Apache-2.0 */
#include "model/metrics.h"

#include <stdbool.h>
#include <string.h>

#include "base/units.h"

static const char *const stage_names[] = {
	[STAGE_QUEUED] = "queued",
	[STAGE_SERVICE] = "service",
};
_Static_assert(COUNT(stage_names) == STAGES, "a stage without a name");

static const char *const io_model_names[] = {
	[IO_BLOCKING] = "blocking",
	[IO_NONBLOCKING] = "nonblocking",
	[IO_EPOLL] = "epoll",
	[IO_URING] = "io_uring",
};
_Static_assert(COUNT(io_model_names) == IO_MODELS, "an io_model without a name");

static const char *const state_names[] = {
#define STATE(id, label) [STATE_##id] = label,
	STATE_LIST(STATE)
#undef STATE
};

static const char *const drop_names[] = {
#define DROP(id, label, help) [DROP_##id] = label,
	DROP_LIST(DROP)
#undef DROP
};

/* A member of a row that is a label, under its own name. */
struct metric_label_source {
	const char *name;
	size_t offset;
};

/* Where the rows of a family are in the snapshot. */
struct metric_rows {
	size_t pointer; /* offset of the pointer in struct snapshot */
	size_t count; /* offset of its length; NO_COUNT: the pointer leads to one row, or is NULL */
	size_t row_bytes;
	const struct metric_label_source *labels;
	size_t labels_len;
};
#define NO_COUNT SIZE_MAX

/* What a member of a row becomes. */
struct metric_view {
	enum metric_unit unit;
	bool one; /* the value is 1 */
	bool skip_zero; /* nothing is shown of a value of 0, or of a histogram without observations
			 */
	bool sparse; /* no buckets below +Inf while nothing was observed */
	size_t len; /* the member is an array of so many, told apart by label */
	const char *label;
	const char *const *values;
	signed char bounds[METRIC_BOUNDS_MAX];
	size_t bounds_len;
};

struct metric {
	struct metric_family family;
	const struct metric_rows *rows;
	const struct metric_view *view;
	size_t member; /* offset in the row */
};

#define ROW_TYPE(array) __typeof__(*((struct snapshot *)0)->array)
#define LABEL(array, member)                               \
	{                                                  \
#member, offsetof(ROW_TYPE(array), member) \
	}
#define BOUNDS(...) \
	.bounds = { __VA_ARGS__ }, .bounds_len = sizeof((const signed char[]){ __VA_ARGS__ })

#define ROWS_OF(set, array, count_offset, ...)                                           \
	static const struct metric_label_source labels_##set[] = { __VA_ARGS__ };        \
	_Static_assert(sizeof(labels_##set) / sizeof(*labels_##set) < METRIC_LABELS_MAX, \
		       "more labels than struct metric_labels holds");                   \
	static const struct metric_rows rows_##set = {                                   \
		.pointer = offsetof(struct snapshot, array),                             \
		.count = count_offset,                                                   \
		.row_bytes = sizeof(ROW_TYPE(array)),                                    \
		.labels = labels_##set,                                                  \
		.labels_len = sizeof(labels_##set) / sizeof(*labels_##set),              \
	};                                                                               \
	struct rows_type_##set {                                                         \
		ROW_TYPE(array) row;                                                     \
	};

#define ROWS(set, array, ...) \
	ROWS_OF(set, array, offsetof(struct snapshot, array##_len), __VA_ARGS__)
#define ROW(set, pointer, ...) ROWS_OF(set, pointer, NO_COUNT, __VA_ARGS__)
#define VIEW(view, type, ...)                                                                   \
	struct view_type_##view {                                                               \
		__typeof__(type) member;                                                        \
	};                                                                                      \
	static const struct metric_view view_##view = { .len = sizeof(type) / sizeof(uint64_t), \
							__VA_ARGS__ };
#include "model/metrics.def"

/* The same types where the kernel side has declared a counter. */
#define uint64_t __u64
#define VIEW(view, type, ...)            \
	struct counted_type_##view {     \
		__typeof__(type) member; \
	};
#include "model/metrics.def"
#undef uint64_t

/* The type of each member is the one that its view reads. */
#define IS_TYPE(set, from, type) \
	__builtin_types_compatible_p(MEMBER_TYPE(set, from), __typeof__(((type *)0)->member))
#define MEMBER_TYPE(set, member) __typeof__(((struct rows_type_##set *)0)->row.member)
#define METRIC(name, type, set, from, view, help)                              \
	_Static_assert(IS_TYPE(set, from, struct view_type_##view) ||          \
			       IS_TYPE(set, from, struct counted_type_##view), \
		       #name ": the view does not read this type");
#include "model/metrics.def"

static const struct metric metrics[] = {
#define METRIC(name_, type_, set, from, reading, help_)                              \
	{                                                                            \
		.family = { .name = #name_, .help = help_, .type = METRIC_##type_ }, \
		.rows = &rows_##set,                                                 \
		.view = &view_##reading,                                             \
		.member = offsetof(struct rows_type_##set, row.from),                \
	},
#include "model/metrics.def"
};

/* A walk in progress. */
struct metrics_walk {
	const struct metrics_writer *writer;
	void *arg;
	const struct metric_view *view;
	struct metric_family family;
	bool begun; /* the writer knows of the family */
};

static void walk_begin_family(struct metrics_walk *walk)
{
	if (!walk->begun)
		walk->writer->family(walk->arg, &walk->family);
	walk->begun = true;
}

static const char *row_text(const char *row, size_t offset)
{
	const char *text;

	memcpy(&text, row + offset, sizeof(text));
	return text ? text : "";
}

static void row_labels(const char *row, const struct metric_rows *rows,
		       struct metric_labels *labels)
{
	labels->len = rows->labels_len;
	for (size_t i = 0; i < rows->labels_len; i++) {
		labels->label[i].name = rows->labels[i].name;
		labels->label[i].value = row_text(row, rows->labels[i].offset);
	}
}

static void walk_samples(struct metrics_walk *walk, const char *member,
			 struct metric_labels *labels)
{
	const struct metric_view *view = walk->view;
	struct metric_value value = { .unit = view->unit };

	labels->len += view->label != NULL;
	for (size_t i = 0; i < view->len; i++) {
		memcpy(&value.amount, member + i * sizeof(value.amount), sizeof(value.amount));
		if (view->one)
			value.amount = 1;
		if (view->skip_zero && !value.amount)
			continue;
		if (view->label) {
			labels->label[labels->len - 1].name = view->label;
			labels->label[labels->len - 1].value = view->values[i];
		}
		walk_begin_family(walk);
		walk->writer->sample(walk->arg, &walk->family, labels, value);
	}
}

/* The last cell that a classic bucket up to 2^@exponent seconds covers. */
static size_t hist_last_cell(int exponent)
{
	return (size_t)(exponent * HIST_PER_OCTAVE - HIST_MIN_INDEX + 1);
}

static void walk_histogram(struct metrics_walk *walk, const struct hist *hist,
			   const struct metric_labels *labels)
{
	const struct metric_view *view = walk->view;
	struct metric_histogram histogram = { .hist = hist, .bounds_len = view->bounds_len };
	size_t bound = 0;

	for (size_t cell = 0; cell < HIST_BUCKETS; cell++) {
		histogram.count += hist->bucket[cell];
		if (bound < view->bounds_len && cell == hist_last_cell(view->bounds[bound]))
			histogram.cumulative[bound++] = histogram.count;
	}
	if (view->skip_zero && !histogram.count)
		return;
	if (view->sparse && !histogram.count)
		histogram.bounds_len = 0;
	walk_begin_family(walk);
	walk->writer->histogram(walk->arg, &walk->family, labels, &histogram);
}

static size_t snapshot_rows(const struct snapshot *snapshot, const struct metric_rows *rows,
			    const char **first)
{
	size_t count = 1;

	memcpy(first, (const char *)snapshot + rows->pointer, sizeof(*first));
	if (rows->count != NO_COUNT)
		memcpy(&count, (const char *)snapshot + rows->count, sizeof(count));
	return *first ? count : 0;
}

static void walk_metric(struct metrics_walk *walk, const struct snapshot *snapshot,
			const struct metric *metric)
{
	struct metric_labels labels;
	const char *row;
	size_t count = snapshot_rows(snapshot, metric->rows, &row);

	walk->view = metric->view;
	walk->family = metric->family;
	walk->family.bounds = metric->view->bounds;
	walk->family.bounds_len = metric->view->bounds_len;
	walk->begun = false;
	for (; count; count--, row += metric->rows->row_bytes) {
		row_labels(row, metric->rows, &labels);
		if (metric->family.type == METRIC_HISTOGRAM)
			walk_histogram(walk, (const void *)(row + metric->member), &labels);
		else
			walk_samples(walk, row + metric->member, &labels);
	}
}

void metrics_walk(const struct snapshot *snapshot, const struct metrics_writer *writer, void *arg)
{
	struct metrics_walk walk = { .writer = writer, .arg = arg };

	for (size_t i = 0; i < COUNT(metrics); i++)
		walk_metric(&walk, snapshot, &metrics[i]);
}
