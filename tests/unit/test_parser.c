/* SPDX-License-Identifier: Apache-2.0 */
/* What the parser answers about real files, by the word of nm(1), strip(1) and dladdr(3). */
#include "parsing.h"
#include "unwinding.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "helpers/helper.h"
#include "unwind/store.h"

/* --- symbols by the word of nm(1) ------------------------------------------------------------ */

#define NM_MAX 60000

struct nm_symbol {
	uint64_t begin, bytes;
	char name[512];
};

struct nm {
	struct nm_symbol *symbols;
	size_t len;
};

static void nm_free(struct nm *nm)
{
	free(nm->symbols);
}

/* Functions that say their size: what is global in a section of code is a function here. */
static struct nm nm_read(const char *options, const char *path)
{
	struct nm nm = { .symbols = calloc(NM_MAX, sizeof(*nm.symbols)) };
	char command[512], line[4096], type;
	FILE *out;

	snprintf(command, sizeof(command), "nm %s --defined-only --print-size --no-demangle %s",
		 options, path);
	out = popen(command, "r");
	cr_assert(out && nm.symbols);
	while (fgets(line, sizeof(line), out) && nm.len < NM_MAX) {
		struct nm_symbol *symbol = &nm.symbols[nm.len];

		if (sscanf(line, "%lx %lx %c %511s", &symbol->begin, &symbol->bytes, &type,
			   symbol->name) == 4 &&
		    strchr("TtWwi", type) && symbol->bytes && strlen(symbol->name) < 500) {
			symbol->name[strcspn(symbol->name, "@")] = '\0'; /* its version */
			nm.len++;
		}
	}
	pclose(out);
	return nm;
}

static int address_compare(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b;

	return *left < *right ? -1 : *left > *right;
}

/* Whether @name is of those that have @address and begin last, by nm(1)'s word. */
static bool nm_says(const struct nm *nm, uint64_t address, const char *name)
{
	uint64_t last = 0;
	bool said = false;

	for (size_t i = 0; i < nm->len; i++) {
		const struct nm_symbol *symbol = &nm->symbols[i];

		if (address < symbol->begin || address - symbol->begin >= symbol->bytes ||
		    symbol->begin < last)
			continue;
		said = (said && symbol->begin == last) || strcmp(symbol->name, name) == 0;
		last = symbol->begin;
	}
	return said;
}

/* The first, the middle and the last byte of up to @most symbols. */
static void expect_as_nm(const char *options, const char *path, size_t most)
{
	_cleanup_(nm_free) struct nm nm = nm_read(options, path);
	static uint64_t addresses[NAMES_MAX];
	_cleanup_(parsed_names_free) struct parsed_names names;
	size_t bytes, len = 0, step = nm.len / most + 1;
	const void *image = image_of(path, &bytes);

	cr_assert_gt(nm.len, 100, "%s", path);
	for (size_t i = 0; i < nm.len; i += step) {
		addresses[len++] = nm.symbols[i].begin;
		addresses[len++] = nm.symbols[i].begin + nm.symbols[i].bytes / 2;
		addresses[len++] = nm.symbols[i].begin + nm.symbols[i].bytes - 1;
	}
	qsort(addresses, len, sizeof(*addresses), address_compare);
	names = names_in(image, bytes, addresses, len);
	cr_expect_eq(names.no_room, 0);
	for (size_t i = 0; i < len; i++)
		cr_expect(nm_says(&nm, addresses[i], name_in(&names, i)), "%s: %#lx is not %s",
			  path, addresses[i], name_in(&names, i));
}

static const char *library_path(const char *name, const char *function)
{
	void *library = dlopen(name, RTLD_NOW);
	Dl_info info;

	cr_assert_not_null(library, "%s", name);
	cr_assert(dladdr(dlsym(library, function), &info), "%s", function);
	return info.dli_fname;
}

Test(parser, names_all_functions_of_the_c_library_as_nm_does, .timeout = 120)
{
	expect_as_nm("-D", library_path("libc.so.6", "qsort"), 4000);
}

Test(parser, names_functions_of_other_libraries_as_nm_does, .timeout = 120)
{
	expect_as_nm("-D", library_path("libelf.so.1", "elf_begin"), 4000);
	expect_as_nm("-D", library_path("libgnutls.so.30", "gnutls_init"), 1500);
}

Test(parser, names_functions_of_this_program_as_nm_does, .timeout = 120)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/exe", getpid());
	expect_as_nm("", path, 1500);
}

/* --- this program ---------------------------------------------------------------------------- */

/* Where @function is as linked. */
static uint64_t linked(const void *function, const char **path)
{
	struct link_map *map;
	Dl_info info;

	cr_assert(dladdr1(function, &info, (void **)&map, RTLD_DL_LINKMAP));
	*path = info.dli_fname;
	return (uint64_t)function - map->l_addr;
}

Test(parser, names_functions_of_a_library_as_the_dynamic_linker_does)
{
	static const char *const functions[] = { "malloc", "qsort", "pthread_create", "getenv" };
	void *library = dlopen("libc.so.6", RTLD_NOW);

	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		_cleanup_(parsed_names_free) struct parsed_names names;
		const char *path;
		uint64_t address = linked(dlsym(library, functions[i]), &path);
		size_t bytes;
		const void *image = image_of(path, &bytes);

		names = names_in(image, bytes, &address, 1);
		cr_expect_str_eq(name_in(&names, 0), functions[i]);
		cr_expect_eq(names.names[0].begin, address);
	}
}

Test(parser, names_functions_that_are_in_no_dynamic_table)
{
	_cleanup_(parsed_names_free) struct parsed_names names;
	const char *path;
	size_t bytes;
	const void *image = image_of("/proc/self/exe", &bytes);
	const uint64_t begin = linked((const void *)nm_says, &path);
	const uint64_t addresses[] = { begin, begin + 1, begin + 5 };

	names = names_in(image, bytes, addresses, 3);
	for (size_t i = 0; i < 3; i++) {
		cr_expect_str_eq(name_in(&names, i), "nm_says");
		cr_expect_eq(names.names[i].begin, begin);
		cr_expect_eq(names.names[i].text, names.names[0].text, "it is written once");
	}
}

/* What begins where is the same by symbols as by frame information. */
Test(parser, tells_where_functions_begin_that_are_stripped_of_their_names)
{
	_cleanup_(parsed_names_free) struct parsed_names names;
	char path[64], command[128];
	const char *ours;
	size_t bytes;
	const void *image;
	const uint64_t begin = linked((const void *)nm_says, &ours);
	const uint64_t addresses[] = { 1, begin, begin + 5, UINT64_MAX };

	snprintf(path, sizeof(path), "/tmp/test_parser.%d", getpid());
	snprintf(command, sizeof(command), "strip -o %s /proc/%d/exe", path, getpid());
	cr_assert_eq(system(command), 0);
	image = image_of(path, &bytes);
	unlink(path);
	names = names_in(image, bytes, addresses, 4);
	for (size_t i = 0; i < 4; i++)
		cr_expect_null(parsed_names_text(&names, i), "%zu: %s", i, name_in(&names, i));
	cr_expect_eq(names.names[0].begin, 0);
	cr_expect_eq(names.names[1].begin, begin);
	cr_expect_eq(names.names[2].begin, begin);
	cr_expect_eq(names.names[3].begin, 0);
}

/* --- tables ---------------------------------------------------------------------------------- */

static struct unwind_arrays arrays_make(void)
{
	return (struct unwind_arrays){
		.rows = calloc(UNWIND_ROWS_MAX_ALL / 2, sizeof(uint64_t)),
		.rules = calloc(UNWIND_RULES_MAX_ALL, sizeof(struct unwind_rule)),
		.pages = calloc(UNWIND_PAGES_MAX, sizeof(struct unwind_page)),
		.files = calloc(UNWIND_FILES_MAX, sizeof(struct unwind_file)),
	};
}

static void arrays_free(struct unwind_arrays *arrays)
{
	free(arrays->rows);
	free(arrays->rules);
	free(arrays->pages);
	free(arrays->files);
}

Test(parser, gives_the_table_that_is_made_of_the_file)
{
	_cleanup_(cleanup_close) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	_cleanup_(unwind_table_free) struct unwind_table made = table_of("/proc/self/exe"), told;
	_cleanup_(arrays_free) struct unwind_arrays arrays = arrays_make();
	const struct parser_question question = { .what = PARSER_TABLE };
	union parser_shared *shared = shared_make();
	struct parser_answer answer = { 0 };
	struct unwind_store *store;
	uint32_t file = 0;

	cr_assert_eq(parser_read_file(&question, fd, shared, &answer), 0);
	cr_assert_eq(parsed_table(&answer, shared, &told), 0);
	cr_assert_eq(told.rows_len, made.rows_len);
	cr_expect_arr_eq(told.rows, made.rows, made.rows_len * sizeof(*made.rows));
	cr_assert_eq(told.rules_len, made.rules_len);
	cr_expect_arr_eq(told.rules, made.rules, made.rules_len * sizeof(*made.rules));
	cr_expect_eq(told.functions, made.functions);
	cr_expect_gt(answer.table.program.segments_len, 0);
	cr_assert_eq(unwind_store_new(&arrays, &store), 0);
	cr_expect_eq(unwind_store_add(store, &told, &file), 0);
	unwind_store_free(store);
}

/* --- as a process of its own ------------------------------------------------------------------ */

static void helper_answer(struct helper *helper, const struct parser_question *question, int fd,
			  struct parser_answer *answer)
{
	struct pollfd readable = { .fd = helper_fd(helper), .events = POLLIN };

	cr_assert_eq(helper_ask_with(helper, question, fd, UINT64_MAX), 0);
	cr_assert_eq(poll(&readable, 1, 30000), 1);
	cr_assert_eq(helper_take(helper, clock_monotonic_ns(), answer), 0);
}

Test(parser, answers_as_a_process_of_its_own, .timeout = 60)
{
	static const struct user nobody_else;
	const struct helper_options options = {
		.kind = &parser_kind,
		.user = &nobody_else,
		.sandbox = SANDBOX_OFF, /* a sanitizer's own calls are not on its list */
	};
	_cleanup_(cleanup_close) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	_cleanup_(unwind_table_free) struct unwind_table made = table_of("/proc/self/exe"), told;
	_cleanup_(parsed_names_free) struct parsed_names names;
	struct parser_answer answer;
	struct helper *helper;
	union parser_shared *shared;
	const char *path;
	const uint64_t address = linked((const void *)nm_says, &path);

	cr_assert_eq(helper_start(&options, &helper), 0);
	shared = helper_shared(helper);
	helper_answer(helper, &(struct parser_question){ .what = PARSER_TABLE }, fd, &answer);
	cr_assert_eq(parsed_table(&answer, shared, &told), 0);
	cr_assert_eq(told.rows_len, made.rows_len);
	cr_expect_arr_eq(told.rows, made.rows, made.rows_len * sizeof(*made.rows));
	shared->names.addresses[0] = address;
	helper_answer(helper, &(struct parser_question){ .what = PARSER_NAMES, .len = 1 }, fd,
		      &answer);
	cr_assert_eq(parsed_names(&answer, shared, &address, 1, &names), 0);
	cr_expect_str_eq(name_in(&names, 0), "nm_says");
	helper_stop(helper);
}

/* --- questions and files that are none ------------------------------------------------------- */

static int memory_file(const void *bytes, size_t len)
{
	int fd = memfd_create("parser", MFD_CLOEXEC);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, bytes, len), (ssize_t)len);
	return fd;
}

Test(parser, reads_programs_only)
{
	_cleanup_(cleanup_close) int empty = memory_file("", 0), text = memory_file("#!/bin/sh", 9);
	_cleanup_(cleanup_close) int directory = open("/", O_RDONLY | O_CLOEXEC);
	_cleanup_(cleanup_close) int large = memory_file("", 0);
	const struct parser_question question = { .what = PARSER_TABLE };
	union parser_shared *shared = shared_make();
	struct parser_answer answer = { 0 };

	cr_assert_eq(ftruncate(large, PARSER_FILE_BYTES_MAX), 0);
	cr_expect_eq(parser_read_file(&question, empty, shared, &answer), -ENOEXEC);
	cr_expect_eq(parser_read_file(&question, text, shared, &answer), -ENOEXEC);
	cr_expect_eq(parser_read_file(&question, directory, shared, &answer), -ENOEXEC);
	cr_expect_eq(parser_read_file(&question, -1, shared, &answer), -EBADF);
	cr_expect_eq(parser_read_file(&question, large, shared, &answer), -ENOEXEC);
	cr_assert_eq(ftruncate(large, PARSER_FILE_BYTES_MAX + 1), 0);
	cr_expect_eq(parser_read_file(&question, large, shared, &answer), -EFBIG);
}

Test(parser, answers_questions_only)
{
	static const struct parser_question none = { .what = PARSER_PERF_MAP + 1 },
					    many = { .what = PARSER_NAMES, .len = NAMES_MAX + 1 },
					    two = { .what = PARSER_NAMES, .len = 2 };
	union parser_shared *shared = shared_make();
	struct parser_answer answer = { 0 };
	size_t bytes;
	const void *image = image_of("/proc/self/exe", &bytes);

	cr_expect_eq(parser_read(&none, image, bytes, shared, &answer), -EINVAL);
	cr_expect_eq(parser_read(&many, image, bytes, shared, &answer), -EINVAL);
	shared->names.addresses[0] = 2;
	shared->names.addresses[1] = 1;
	cr_expect_eq(parser_read(&two, image, bytes, shared, &answer), -EINVAL, "they descend");
	shared->names.addresses[1] = 2;
	cr_expect_eq(parser_read(&two, image, bytes, shared, &answer), 0);
}
