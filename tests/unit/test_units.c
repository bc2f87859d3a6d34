/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <errno.h>
#include <inttypes.h>

#include "base/units.h"

#define MOST_NS (36500ULL * 86400 * NS_PER_S)

Test(units, reads_durations_as_go_writes_them)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = {
		{ "0", 0 },
		{ "0s", 0 },
		{ "1s", 1000000000 },
		{ "1.5s", 1500000000 },
		{ ".5s", 500000000 },
		{ "1.s", 1000000000 },
		{ "100ms", 100000000 },
		{ "1h1m1s", 3661000000000 },
		{ "5us", 5000 },
		{ "5\302\265s", 5000 },
		{ "7ns", 7 },
		{ "1d2h3m4s5ms", 93784005000000 },
		{ "5m5m", 600000000000 },
		{ "36500d", 36500ULL * 86400 * NS_PER_S },
	};
	static const char *const bad[] = { "",
					   "s",
					   "1",
					   ".s",
					   "1 s",
					   "1D",
					   "+1s",
					   "1s ",
					   "1e3s",
					   "1.",
					   "99999999999h",
					   "876000h876000h",
					   "36500d1ns",
					   "-5m",
					   "5mm",
					   "00",
					   "9999999999999999999999s" };
	uint64_t ns;

	for (size_t i = 0; i < COUNT(good); i++) {
		ns = 42;
		cr_expect_eq(duration_parse(good[i].text, true, MOST_NS, &ns), 0, "%s",
			     good[i].text);
		cr_expect_eq(ns, good[i].ns, "%s: %ju", good[i].text, (uintmax_t)ns);
	}
	for (size_t i = 0; i < COUNT(bad); i++) {
		ns = 42;
		cr_expect_eq(duration_parse(bad[i], true, MOST_NS, &ns), -EINVAL, "%s", bad[i]);
		cr_expect_eq(ns, 42);
	}
}

/* The web configuration file is Go's, which knows no days. */
Test(units, days_are_read_where_they_are_said)
{
	uint64_t ns = 42;

	cr_expect_eq(duration_parse("1d", false, MOST_NS, &ns), -EINVAL);
	cr_expect_eq(duration_parse("1h0.5d", false, MOST_NS, &ns), -EINVAL);
	cr_expect_eq(ns, 42);
	cr_expect_eq(duration_parse("1h", false, MOST_NS, &ns), 0);
	cr_expect_eq(ns, 3600 * NS_PER_S);
}
