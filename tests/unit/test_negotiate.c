/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exposition/negotiate.h"

#define OM "application/openmetrics-text"
#define PROTO "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding="

static const char *const names[] = {
	[EXPOSITION_TEXT] = "text",
	[EXPOSITION_OPENMETRICS] = "openmetrics",
	[EXPOSITION_PROTOBUF] = "protobuf",
};

static void expect_format(const char *accept, enum exposition_format expected)
{
	cr_expect_str_eq(names[exposition_negotiate(accept)], names[expected], "%s", accept);
}

Test(negotiate, prometheus_gets_openmetrics)
{
	expect_format(OM ";version=1.0.0," OM
			 ";version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,"
			 "*/*;q=0.1",
		      EXPOSITION_OPENMETRICS); /* 2.42, 2.53 */
	expect_format(OM ";version=1.0.0;escaping=allow-utf-8;q=0.6," OM
			 ";version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
			 "text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
		      EXPOSITION_OPENMETRICS); /* 3.5 */
}

Test(negotiate, prometheus_with_native_histograms_gets_protobuf)
{
	expect_format(PROTO "delimited," OM ";version=1.0.0;q=0.8," OM
			    ";version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
		      EXPOSITION_PROTOBUF); /* 2.42 */
	expect_format(PROTO "delimited;q=0.6," OM ";version=1.0.0;escaping=allow-utf-8;q=0.5," OM
			    ";version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;"
			    "q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
		      EXPOSITION_PROTOBUF); /* 3.5 */
}

Test(negotiate, others_get_text)
{
	expect_format("", EXPOSITION_TEXT);
	expect_format("*/*", EXPOSITION_TEXT); /* curl, python-requests */
	expect_format("text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,"
		      "*/*;q=0.8",
		      EXPOSITION_TEXT); /* Firefox */
	expect_format("text/plain", EXPOSITION_TEXT);
	expect_format("text/*", EXPOSITION_TEXT);
	expect_format("application/json", EXPOSITION_TEXT);
	expect_format("text/plain;version=0.0.4;q=0", EXPOSITION_TEXT);
}

Test(negotiate, the_highest_weight_wins)
{
	expect_format("text/plain;q=0.3," OM ";q=0.4", EXPOSITION_OPENMETRICS);
	expect_format("text/plain;q=0.4," OM ";q=0.3", EXPOSITION_TEXT);
	expect_format("text/plain;q=0.399," OM ";q=0.4", EXPOSITION_OPENMETRICS);
	expect_format(OM ";q=0.9,text/plain", EXPOSITION_TEXT);
	expect_format("*/*;q=0.9," OM ";q=0.5", EXPOSITION_TEXT);
	expect_format(PROTO "delimited;q=0.2," OM ";q=0.1", EXPOSITION_PROTOBUF);
	expect_format(OM ";q=1.000,text/plain;q=1.0", EXPOSITION_OPENMETRICS);
}

Test(negotiate, of_equal_weights_what_is_named_first_wins)
{
	expect_format(OM ",text/plain", EXPOSITION_OPENMETRICS);
	expect_format("text/plain," OM, EXPOSITION_TEXT);
	expect_format("*/*," OM, EXPOSITION_OPENMETRICS);
	expect_format("application/*", EXPOSITION_OPENMETRICS);
	expect_format("*/*,application/*", EXPOSITION_OPENMETRICS);
}

Test(negotiate, a_weight_of_zero_excludes)
{
	expect_format(OM ";q=0,text/plain;q=0.1", EXPOSITION_TEXT);
	expect_format("text/plain;q=0,*/*", EXPOSITION_OPENMETRICS);
	expect_format("text/plain;q=0," OM ";q=0.000," PROTO "delimited;q=0.001",
		      EXPOSITION_PROTOBUF);
}

Test(negotiate, versions_and_encodings_that_are_not_ours_do_not_match)
{
	expect_format(OM ";version=0.0.1", EXPOSITION_TEXT);
	expect_format(OM ";version=2.0.0", EXPOSITION_TEXT);
	expect_format(OM ";version=1.0.0", EXPOSITION_OPENMETRICS);
	expect_format(OM ";version=\"1.0.0\"", EXPOSITION_OPENMETRICS);
	expect_format("text/plain;version=1.0.0," OM ";q=0.1", EXPOSITION_OPENMETRICS);
	expect_format(PROTO "text", EXPOSITION_TEXT);
	expect_format(PROTO "compact-text", EXPOSITION_TEXT);
	expect_format("application/vnd.google.protobuf", EXPOSITION_TEXT);
	expect_format("application/vnd.google.protobuf;proto=io.prometheus.client.Other;"
		      "encoding=delimited",
		      EXPOSITION_TEXT);
}

Test(negotiate, spaces_and_letter_case_do_not_matter)
{
	expect_format("  Application/OpenMetrics-Text ;\tVersion=1.0.0 ; Q=0.9 ,text/plain;q=0.1",
		      EXPOSITION_OPENMETRICS);
}

Test(negotiate, elements_that_cannot_be_read_are_skipped)
{
	static const char *const broken[] = {
		";",           ",",           "text",     "a b",       OM ";q=",     OM ";q=2",
		OM ";q=1.001", OM ";q=-1",    OM ";q=.5", OM ";q=nan", OM ";q=0x1",  OM ";q",
		OM ";v=\"1",   OM ";v=\"1\\", OM "=1",    OM "\"",     OM ";a=b\"c", OM ";q=1;q=9"
	};
	char accept[256];

	for (size_t i = 0; i < sizeof(broken) / sizeof(*broken); i++) {
		expect_format(broken[i], EXPOSITION_TEXT);
		snprintf(accept, sizeof(accept), OM ";q=0.5,%s", broken[i]);
		expect_format(accept, EXPOSITION_OPENMETRICS);
	}
}

Test(negotiate, quotes_hide_separators)
{
	expect_format("text/html;a=\",;\\\"," OM "\"," OM ";q=0", EXPOSITION_TEXT);
	expect_format("text/html;a=\"," OM ",\"", EXPOSITION_TEXT);
}

/* A header that is as long as a request may be, of bytes that restart the reading again and again.
 */
Test(negotiate, hostile_headers_take_linear_time, .timeout = 5)
{
	static const char *const pieces[] = { ";",      ",",      "\"", "\\\"",
					      "a=\"\\", "\"\\\"", " ",  "a;q=" };
	size_t size = 1 << 20;
	char *accept = malloc(size + 16);

	cr_assert_not_null(accept);
	for (size_t i = 0; i < sizeof(pieces) / sizeof(*pieces); i++) {
		size_t len = strlen(pieces[i]), at = 0;

		for (accept[at++] = '"'; at < size; at += len)
			memcpy(accept + at, pieces[i], len);
		accept[at] = '\0';
		expect_format(accept, EXPOSITION_TEXT);
		expect_format(accept + 1, EXPOSITION_TEXT);
	}
	free(accept);
}

Test(negotiate, gzip_only_if_it_is_accepted)
{
	cr_expect(exposition_accepts_gzip("gzip"));
	cr_expect(exposition_accepts_gzip("gzip, deflate, br"));
	cr_expect(exposition_accepts_gzip("deflate, GZip;q=0.1"));
	cr_expect(exposition_accepts_gzip("x-gzip"));
	cr_expect(exposition_accepts_gzip("*"));
	cr_expect(exposition_accepts_gzip("identity;q=0.5, *;q=0.6"));
	cr_expect_not(exposition_accepts_gzip(""));
	cr_expect_not(exposition_accepts_gzip("identity"));
	cr_expect_not(exposition_accepts_gzip("deflate"));
	cr_expect_not(exposition_accepts_gzip("gzip;q=0"));
	cr_expect_not(exposition_accepts_gzip("gzip;q=0.000"));
	cr_expect_not(exposition_accepts_gzip("gzip;q=0, *"));
	cr_expect_not(exposition_accepts_gzip("*;q=0"));
	cr_expect_not(exposition_accepts_gzip("gzip;q=0.5, identity"));
	cr_expect_not(exposition_accepts_gzip("gzipped"));
}
