/* SPDX-License-Identifier: Apache-2.0 */
/* A profile as people read it. */
#include <criterion/criterion.h>

#include <errno.h>
#include <string.h>

#include "abi/profiles.h"
#include "profiles/report.h"

#define LEN(array) (sizeof(array) / sizeof((array)[0]))
#define FRAME(file, address) ((uint64_t)(file) << 48 | (address))
#define REPORT_BYTES (1U << 20)
#define MAIN FRAME(1, 0x1100)
#define WORK FRAME(1, 0x1010)
#define COPY FRAME(2, 0x1f20)
#define ENTRY FRAME(1, 0x1800)
#define UNNAMED FRAME(1, 0x2000)
#define NO_CODE FRAME(0, STACK_NO_FILE)

static const struct profile_file files[] = {
	{ .number = 1, .path = "/usr/sbin/server" },
	{ .number = 2, .path = "/lib/libc.so.6" },
};
static const struct profile_name names[] = {
	{ NO_CODE, "[code_of_no_file]" }, { WORK, "work" }, { MAIN, "main" },
	{ ENTRY, "server_main" },         { COPY, "work" },
};

static char *report_of_kind(enum profile_kind kind, const struct profile_stack *stacks, size_t len,
			    unsigned int columns)
{
	static char text[REPORT_BYTES];
	struct buffer out = BUFFER_INIT(sizeof(text) - 1);
	struct profile profile = {
		.kind = kind,
		.duration_ns = 2000000000,
		.period_ns = 10000000,
		.files = files,
		.files_len = LEN(files),
		.names = names,
		.names_len = LEN(names),
		.stacks = stacks,
		.stacks_len = len,
	};

	for (size_t i = 0; i < len; i++) {
		profile.samples += stacks[i].count;
		profile.weight += profile_weight(&profile, &stacks[i]);
	}
	profile.complete = profile.weight - (profile.weight > 1);
	profile.lost = len == 1 ? 3 : 0;
	cr_assert_eq(report_write(&profile, "server", columns, &out), 0);
	memcpy(text, out.data, out.len);
	text[out.len] = '\0';
	buffer_free(&out);
	return text;
}

static void expect_begins(const char *text, const char *expected)
{
	cr_expect(!strncmp(text, expected, strlen(expected)), "%s", text);
}

static char *report_of(const struct profile_stack *stacks, size_t len, unsigned int columns)
{
	return report_of_kind(PROFILE_CPU, stacks, len, columns);
}

#define REPORT(stacks, columns) report_of(stacks, LEN(stacks), columns)

Test(report, shows_functions_and_boxes_as_wide_as_their_shares)
{
	static const uint64_t copying[] = { COPY, WORK, MAIN }, working[] = { WORK, MAIN };
	static const uint64_t unnamed[] = { UNNAMED, MAIN }, none[] = { NO_CODE };
	static const struct profile_stack stacks[] = {
		{ none, LEN(none), "server", "jit", "running", 10, 0 },
		{ unnamed, LEN(unnamed), "server", "worker-#", "running", 15, 0 },
		{ working, LEN(working), "server", "worker-#", "running", 25, 0 },
		{ copying, LEN(copying), "server", "worker-#", "running", 50, 0 },
	};

	cr_expect_str_eq(REPORT(stacks, 40),
			 "server, 2.0 s: 100 samples, 0.50 CPUs, 99.0 % of stacks are complete\n"
			 "\n"
			 "   self    total  function\n"
			 " 50.0 %   50.0 %  work  (libc.so.6)\n"
			 " 25.0 %   75.0 %  work  (server)\n"
			 " 15.0 %   15.0 %  server+0x2000\n"
			 " 10.0 %   10.0 %  [code_of_no_file]\n"
			 "\n"
			 "stacks, a thread pool above what it runs, callers above what they call\n"
			 "[worker-#                          ][ji]\n"
			 "[main                              ][[c]\n"
			 "[work                        ][serv]\n"
			 "[work              ]\n");
}

Test(report, adds_up_what_a_function_has_in_several_stacks)
{
	static const uint64_t deep[] = { WORK, WORK, MAIN }, flat[] = { WORK };
	static const uint64_t entry[] = { ENTRY };
	static const struct profile_stack stacks[] = {
		{ deep, LEN(deep), "server", "a", "running", 3, 0 },
		{ flat, LEN(flat), "server", "b", "running", 1, 0 },
		{ entry, LEN(entry), "server", "b", "running", 1, 0 },
	};

	cr_expect_not_null(strstr(REPORT(stacks, 40),
				  "\n 80.0 %   80.0 %  work  (server)\n"
				  " 20.0 %   20.0 %  server_main  (server)\n\n"),
			   "%s", REPORT(stacks, 40));
}

Test(report, tells_what_is_lost_and_of_no_samples)
{
	static const struct profile_stack stack = { .workload = "server",
						    .pool = "a",
						    .state = "running" };
	static const uint64_t frames[] = { WORK };
	static const struct profile_stack one = { frames, 1, "server", "a", "running", 1, 0 };

	cr_expect_str_eq(report_of(&stack, 0, 40), "server, 2.0 s: 0 samples, as it used no CPU\n");
	cr_expect_not_null(
		strstr(report_of(&one, 1, 40),
		       "100.0 % of stacks are complete; 3 of all workloads were lost\n"));
}

/* One wait that is long, beside many short ones. */
Test(report, of_waits_is_by_time_with_a_row_of_what_is_waited_for)
{
	static const uint64_t copying[] = { COPY, WORK, MAIN }, working[] = { WORK, MAIN };
	static const struct profile_stack stacks[] = {
		{ working, LEN(working), "server", "worker-#", "lock", 1, 3000000000 },
		{ copying, LEN(copying), "server", "worker-#", "disk", 900, 1000000000 },
	};

	cr_expect_str_eq(
		report_of_kind(PROFILE_OFFCPU, stacks, LEN(stacks), 40),
		"server, 2.0 s: 901 waits, 2.00 threads at a time, 100.0 % of them, by time, "
		"are complete\n"
		"\n"
		"   self    total  function\n"
		" 75.0 %  100.0 %  work  (server)\n"
		" 25.0 %   25.0 %  work  (libc.so.6)\n"
		"\n"
		"stacks, a thread pool above what it runs, callers above what they call\n"
		"[worker-#                              ]\n"
		"[lock                        ][disk    ]\n"
		"[main                        ][main    ]\n"
		"[work                        ][work    ]\n"
		"                              [work    ]\n");
	cr_expect_str_eq(report_of_kind(PROFILE_LOCK, stacks, 0, 40), "server, 2.0 s: 0 waits\n");
}

Test(report, of_page_faults_is_by_number_with_a_row_of_their_kind)
{
	static const uint64_t working[] = { WORK, MAIN };
	static const struct profile_stack stacks[] = {
		{ working, LEN(working), "server", "worker-#", "minor", 96, 0 },
		{ working, LEN(working), "server", "worker-#", "major", 4, 0 },
	};
	char *text = report_of_kind(PROFILE_FAULT, stacks, LEN(stacks), 40);

	expect_begins(text,
		      "server, 2.0 s: 100 page faults, 50 a second, 99.0 % of their stacks are "
		      "complete\n");
	cr_expect_not_null(strstr(text, "100.0 %  100.0 %  work  (server)\n"), "%s", text);
	cr_expect_not_null(strstr(text, "\n[minor"), "%s", text);
}

/* So many functions that most are not shown, and so narrow that most have no box. */
Test(report, is_bounded)
{
	static uint64_t frames[1000];
	static struct profile_stack stacks[LEN(frames)];
	char *text, *line;
	size_t lines = 0;

	for (size_t i = 0; i < LEN(frames); i++) {
		frames[i] = frame_make(1, 0x10000 + i);
		stacks[i] = (struct profile_stack){ &frames[i], 1, "server", "a", "running", 1, 0 };
	}
	for (unsigned int columns = 0; columns < 1200; columns += 60) {
		size_t most = columns < REPORT_COLUMNS_MIN ? REPORT_COLUMNS_MIN : columns;

		text = REPORT(stacks, columns);
		lines = 0;
		for (line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), lines++)
			if (lines > REPORT_FUNCTIONS + 3)
				cr_expect_leq(strlen(line), most);
		cr_expect_eq(lines, 1 + 1 + REPORT_FUNCTIONS + 1 + 1 + 2, "%u: %zu", columns,
			     lines);
	}
	cr_expect_not_null(strstr(REPORT(stacks, 40), "\n 98.0 %           others\n"));
}

Test(report, shows_a_stack_as_deep_as_there_can_be)
{
	static uint64_t frames[FRAMES_MAX + 1];
	static const struct profile_stack stack = { frames,    LEN(frames), "server", "a",
						    "running", 5,           0 };
	size_t boxes = 0;

	for (size_t i = 0; i < LEN(frames); i++)
		frames[i] = i % 2 ? MAIN : WORK;
	for (const char *at = report_of(&stack, 1, 40); (at = strstr(at, "\n[")); at++)
		boxes++;
	cr_expect_eq(boxes, LEN(frames) + 1);
}

/* Names are whatever a program says: on a terminal they would be commands. */
Test(report, shows_no_bytes_that_are_no_characters)
{
	static const uint64_t frames[] = { MAIN };
	static const struct profile_stack stacks[] = {
		{ frames, 1, "server", "\033[2J\xff\x7f\xc2\x9b", "running", 1, 0 },
		{ frames, 1, "server",
		  "p\xc3\xb6"
		  "ol",
		  "running", 2, 0 },
	};
	const char *text = REPORT(stacks, 40);

	for (const char *at = text; *at; at++)
		cr_expect(*at == '\n' || (*at >= ' ' && *at < 0x7f), "%#x", (unsigned char)*at);
	cr_expect_not_null(strstr(text, "[p?ol"), "%s", text);
}

Test(report, fails_without_room)
{
	static const uint64_t frames[] = { MAIN };
	static const struct profile_stack stack = { frames, 1, "server", "a", "running", 1, 0 };
	const struct profile profile = { .samples = 1, .stacks = &stack, .stacks_len = 1 };
	struct buffer out = BUFFER_INIT(20);

	cr_expect_eq(report_write(&profile, "server", 40, &out), -ENOBUFS);
	buffer_free(&out);
}
