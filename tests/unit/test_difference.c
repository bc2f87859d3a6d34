/* SPDX-License-Identifier: Apache-2.0 */
/* Two profiles side by side. */
#include <criterion/criterion.h>

#include <errno.h>
#include <string.h>

#include "abi/profiles.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "profiles/difference.h"
#include "profiles/pprof.h"

#define FRAME(address) ((uint64_t)1 << 48 | (address))
#define BYTES (1U << 20)

static const uint64_t work[] = { FRAME(0x1010), FRAME(0x1100) };
static const uint64_t rest[] = { FRAME(0x1020), FRAME(0x1010), FRAME(0x1010), FRAME(0x1100) };
static const uint64_t nowhere[] = { FRAME(0x1800) };
static const struct profile_file file = {
	.number = 1, .path = "/opt/web", .begin = 0x1000, .end = 0x9000
};
static const struct profile_name names[] = {
	{ FRAME(0x1010), "work" },
	{ FRAME(0x1020), "web+0x1020" },
	{ FRAME(0x1100), "main\x1b[31m" },
};

/* Its three stacks have these counts; a sample is 10 ms, a wait a second. */
static struct profile profile_of(enum profile_kind kind, uint64_t seconds,
				 struct profile_stack stacks[3], const uint64_t counts[3])
{
	static const struct {
		const uint64_t *frames;
		size_t len;
	} rows[] = { { work, COUNT(work) }, { rest, COUNT(rest) }, { nowhere, COUNT(nowhere) } };
	uint64_t each_ns = profile_kinds[kind].waits ? NS_PER_S : NS_PER_S / 100;

	for (size_t i = 0; i < COUNT(rows); i++)
		stacks[i] = (struct profile_stack){ .frames = rows[i].frames,
						    .len = rows[i].len,
						    .workload = "web",
						    .pool = "web",
						    .state = "running",
						    .count = counts[i],
						    .ns = counts[i] * each_ns };
	return (struct profile){
		.kind = kind,
		.duration_ns = seconds * NS_PER_S,
		.files = &file,
		.files_len = 1,
		.names = names,
		.names_len = COUNT(names),
		.stacks = stacks,
		.stacks_len = 3,
	};
}

static int add(struct difference *difference, enum difference_side side, enum profile_kind kind,
	       uint64_t seconds, const uint64_t counts[3])
{
	_cleanup_(buffer_free) struct buffer out = BUFFER_INIT(BYTES);
	struct profile_stack stacks[3];
	struct profile made = profile_of(kind, seconds, stacks, counts);
	Pprof__Profile *profile;
	int r;

	cr_assert_eq(pprof_write_gzip(&made, &out), 0);
	cr_assert_eq(pprof_read(out.data, out.len, &profile), 0);
	r = difference_add(difference, side, profile);
	pprof_free(profile);
	return r;
}

/* Of 10 s and of 20 s. */
static void write_of(enum profile_kind kind, const uint64_t before[3], const uint64_t after[3],
		     struct buffer *out)
{
	static const char *const paths[] = { "a.pb.gz", "b\x1b.pb.gz" };
	struct difference *difference = difference_new();

	cr_assert_not_null(difference);
	cr_assert_eq(add(difference, BEFORE, kind, 10, before), 0);
	cr_assert_eq(add(difference, AFTER, kind, 20, after), 0);
	cr_assert_eq(difference_write(difference, paths, out), 0);
	difference_free(difference);
}

static void expect(enum profile_kind kind, const char *expected)
{
	static const uint64_t before[] = { 100, 100, 0 }, after[] = { 440, 160, 200 };
	_cleanup_(buffer_free) struct buffer out = BUFFER_INIT(BYTES);

	write_of(kind, before, after, &out);
	buffer_char(&out, '\0');
	cr_expect_str_eq(out.data, expected, "%s", out.data);
}

/* A function that calls itself is counted once. */
Test(difference, of_cpu_time_is_in_cpus_and_says_what_may_be_chance)
{
	expect(PROFILE_CPU,
	       "before  a.pb.gz: 10.0 s, 0.200 CPUs\n"
	       "after   b\xef\xbf\xbd.pb.gz: 20.0 s, 0.400 CPUs\n"
	       "\n"
	       "   before     after    change   function, in itself (~ may be chance)\n"
	       "    0.100     0.220    +0.120   work  (web)\n"
	       "    0.000     0.100    +0.100   web+0x1800\n"
	       "    0.100     0.080    -0.020 ~ web+0x1020\n"
	       "    0.000     0.000    +0.000   others\n"
	       "\n"
	       "   before     after    change   function, with what it calls (~ may be chance)\n"
	       "    0.000     0.100    +0.100   web+0x1800\n"
	       "    0.200     0.300    +0.100   main\xef\xbf\xbd[31m  (web)\n"
	       "    0.200     0.300    +0.100   work  (web)\n"
	       "    0.100     0.080    -0.020 ~ web+0x1020\n");
}

Test(difference, of_waits_is_in_threads)
{
	expect(PROFILE_LOCK, "before  a.pb.gz: 10.0 s, 20.000 threads at a time\n"
			     "after   b\xef\xbf\xbd.pb.gz: 20.0 s, 40.000 threads at a time\n"
			     "\n"
			     "   before     after    change   function, in itself\n"
			     "   10.000    22.000   +12.000   work  (web)\n"
			     "    0.000    10.000   +10.000   web+0x1800\n"
			     "   10.000     8.000    -2.000   web+0x1020\n"
			     "    0.000     0.000    +0.000   others\n"
			     "\n"
			     "   before     after    change   function, with what it calls\n"
			     "   20.000    30.000   +10.000   main\xef\xbf\xbd[31m  (web)\n"
			     "    0.000    10.000   +10.000   web+0x1800\n"
			     "   20.000    30.000   +10.000   work  (web)\n"
			     "   10.000     8.000    -2.000   web+0x1020\n");
}

Test(difference, of_counts_is_a_second)
{
	expect(PROFILE_FAULT, "before  a.pb.gz: 10.0 s, 20.0 faults a second\n"
			      "after   b\xef\xbf\xbd.pb.gz: 20.0 s, 40.0 faults a second\n"
			      "\n"
			      "   before     after    change   function, in itself\n"
			      "     10.0      22.0     +12.0   work  (web)\n"
			      "      0.0      10.0     +10.0   web+0x1800\n"
			      "     10.0       8.0      -2.0   web+0x1020\n"
			      "      0.0       0.0      +0.0   others\n"
			      "\n"
			      "   before     after    change   function, with what it calls\n"
			      "     20.0      30.0     +10.0   main\xef\xbf\xbd[31m  (web)\n"
			      "      0.0      10.0     +10.0   web+0x1800\n"
			      "     20.0      30.0     +10.0   work  (web)\n"
			      "     10.0       8.0      -2.0   web+0x1020\n");
}

Test(difference, is_of_two_of_one_kind_that_say_how_long_they_took)
{
	static const uint64_t counts[3] = { 1, 1, 1 };
	struct difference *difference = difference_new();

	cr_assert_not_null(difference);
	cr_expect_eq(add(difference, BEFORE, PROFILE_CPU, 0, counts), -EINVAL);
	cr_expect_eq(add(difference, BEFORE, PROFILE_CPU, 1, counts), 0);
	cr_expect_eq(add(difference, AFTER, PROFILE_OFFCPU, 1, counts), -EMEDIUMTYPE);
	cr_expect_eq(add(difference, AFTER, PROFILE_CPU, 1, counts), 0);
	difference_free(difference);
}

Test(difference, of_nothing_is_nothing)
{
	static const uint64_t none[3];
	_cleanup_(buffer_free) struct buffer out = BUFFER_INIT(BYTES);

	write_of(PROFILE_CPU, none, none, &out);
	cr_expect_null(memmem(out.data, out.len, "web", 3));
}
