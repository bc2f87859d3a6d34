/* SPDX-License-Identifier: Apache-2.0 */
#include "parse.h"

TestSuite(config, .fini = parsed_free);

static int backend_of(const struct outcome *outcome, const char *feature)
{
	return outcome->config.backends[features_find(feature)];
}

Test(config, has_defaults)
{
	struct outcome outcome = PARSE();

	cr_assert_eq(outcome.result, 0);
	cr_expect_str_eq(outcome.config.listen[0].host, "127.0.0.1");
	cr_expect_str_eq(outcome.config.listen[0].port, "10070");
	cr_expect_str_eq(outcome.config.telemetry_path, "/metrics");
	cr_expect_eq(outcome.config.log_level, LOG_LEVEL_INFO);
	cr_expect_eq(outcome.config.log_format, LOG_FORMAT_LOGFMT);
	cr_expect_eq(outcome.config.grace_period_ns, 300 * NS_PER_S);
	cr_expect_eq(backend_of(&outcome, "requests"), BACKEND_AUTO);
	cr_expect_eq(outcome.config.sandbox, SANDBOX_ON);
	cr_expect_not(outcome.config.optional);
	cr_expect_null(outcome.config.user);
	cr_expect_str_empty(outcome.err);
}

Test(config, takes_values_with_and_without_an_equals_sign)
{
	struct outcome outcome = PARSE("--web.listen-address=[::1]:0", "--web.telemetry-path",
				       "/a/b", "--log.level=debug", "--log.format", "json",
				       "--workloads.grace-period=30s");

	cr_assert_eq(outcome.result, 0, "%s", outcome.err);
	cr_expect_str_eq(outcome.config.listen[0].host, "::1");
	cr_expect_str_eq(outcome.config.listen[0].port, "0");
	cr_expect_str_eq(outcome.config.telemetry_path, "/a/b");
	cr_expect_eq(outcome.config.log_level, LOG_LEVEL_DEBUG);
	cr_expect_eq(outcome.config.log_format, LOG_FORMAT_JSON);
	cr_expect_eq(outcome.config.grace_period_ns, 30 * NS_PER_S);
}

Test(config, listens_on_several_addresses)
{
	struct outcome outcome = PARSE("--web.listen-address=:1", "--web.listen-address=[::1]:2");

	cr_assert_eq(outcome.result, 0, "%s", outcome.err);
	cr_assert_eq(outcome.config.listen_len, 2);
	cr_expect_str_eq(outcome.config.listen[0].host, "");
	cr_expect_str_eq(outcome.config.listen[1].host, "::1");
	cr_expect_str_eq(outcome.config.listen[1].port, "2");
}

Test(config, takes_what_guards_the_endpoint)
{
	struct outcome outcome = PARSE("--web.config.file=web.yml", "--web.systemd-socket",
				       "--web.max-requests", "0");

	cr_assert_eq(outcome.result, 0, "%s", outcome.err);
	cr_expect_str_eq(outcome.config.web_config_file, "web.yml");
	cr_expect(outcome.config.systemd_socket);
	cr_expect_eq(outcome.config.max_requests, 0);
	outcome = PARSE();
	cr_expect_null(outcome.config.web_config_file);
	cr_expect_not(outcome.config.systemd_socket);
	cr_expect_eq(outcome.config.max_requests, 40);
	expect_refused(PARSE("--web.max-requests=-1"), "--web.max-requests", "number");
	expect_refused(PARSE("--web.config.file="), "--web.config.file", "file");
	expect_refused(PARSE("--web.systemd-socket=1"), "--web.systemd-socket", "no value");
}

Test(config, shows_the_version)
{
	struct outcome outcome = PARSE("--version");

	cr_expect_eq(outcome.result, 1);
	cr_expect_eq(strncmp(outcome.out, "workload_exporter, version ", 27), 0);
	cr_expect_not_null(strstr(outcome.out, " (branch: "));
	cr_expect_not_null(strstr(outcome.out, ", revision: "));
	cr_expect_str_empty(outcome.err);
}

Test(config, help_names_every_flag)
{
	static const char *const flags[] = { "--web.listen-address",
					     "--web.telemetry-path",
					     "--web.config.file",
					     "--web.systemd-socket",
					     "--web.max-requests",
					     "--log.level",
					     "--log.format",
					     "--version",
					     "--workloads.grace-period",
					     "--help" };
	struct outcome outcome = PARSE("--help");

	cr_expect_eq(outcome.result, 1);
	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++)
		cr_expect_not_null(strstr(outcome.out, flags[i]), "%s", flags[i]);
	cr_expect_not_null(strstr(outcome.out,
				  "Usage: workload_exporter [flags]\n"
				  "       workload_exporter count [flags] FILE      How many\n"
				  "       workload_exporter two words               Both\n"
				  "                                                 of them\n"
				  "       workload_exporter two others NAME         Another\n"
				  "       workload_exporter of-feature              Nothing\n"
				  "\nFlags "));
	cr_expect_str_empty(outcome.err);
}

Test(config, help_names_all_collectors_and_nothing_else_as_such)
{
	struct outcome outcome = PARSE("--help");

	cr_expect_not_null(strstr(outcome.out,
				  "Observe or not: discovery (workload_info and the\n"
				  "                                    like), requests, threads, "
				  "profiles (off unless asked\n"
				  "                                    for), nothing_to_scrape (it "
				  "collects nothing),\n"
				  "                                    on_request. Default: on\n"),
			   "%s", outcome.out);
	cr_expect_null(strchr(outcome.out, '@'));
}

Test(config, help_names_what_keeps_capabilities)
{
	struct outcome outcome = PARSE("--help");

	cr_expect_not_null(strstr(outcome.out, "stays as well, and with\n"
					       "--mutex.backend=uprobe all of them do.\n"));
}

Test(config, help_fits_a_terminal_of_90_columns)
{
	struct outcome outcome = PARSE("--help");

	for (const char *line = outcome.out; *line; line += strcspn(line, "\n") + 1)
		cr_expect_leq(strcspn(line, "\n"), 90, "%.100s", line);
}

Test(config, takes_one_of_a_few_words_as_it_is_spelt)
{
	struct outcome outcome = PARSE("--requests.backend=syscall", "--security.sandbox=log",
				       "--mutex.backend=uprobe", "--log.level=warn");

	cr_assert_eq(outcome.result, 0, "%s", outcome.err);
	cr_expect_eq(backend_of(&outcome, "requests"), 1);
	cr_expect_eq(outcome.config.sandbox, SANDBOX_LOG);
	cr_expect_eq(outcome.config.optional, 1U << features_find("mutex"));
	cr_expect_eq(outcome.config.log_level, LOG_LEVEL_WARN);
	outcome = PARSE("--requests.backend=socket");
	cr_expect_eq(backend_of(&outcome, "requests"), 0);
	cr_expect_eq(PARSE("--security.sandbox=off").config.sandbox, SANDBOX_OFF);
	cr_expect_eq(PARSE("--log.level=error").config.log_level, LOG_LEVEL_ERROR);
	expect_refused(PARSE("--log.level=Debug"), "--log.level", "error, warn, info or debug\n");
	expect_refused(PARSE("--requests.backend=sock"), "\"sock\"", "auto, socket or syscall\n");
	expect_refused(PARSE("--security.sandbox=0"), "\"0\"", "on, log or off\n");
	expect_refused(PARSE("--mutex.backend="), "--mutex.backend", "futex or uprobe\n");
}

Test(config, refuses_unknown_flags)
{
	expect_refused(PARSE("--nonsense"), "--nonsense", "unknown");
	expect_refused(PARSE("--nonsense=x"), "--nonsense=x", "unknown");
	expect_refused(PARSE("-x"), "-x", "unknown");
	expect_refused(PARSE("--help=me"), "--help", "no value");
}

Test(config, refuses_abbreviations)
{
	expect_refused(PARSE("--vers"), "--vers", "unknown");
	expect_refused(PARSE("--web.telemetry=/x"), "--web.telemetry", "unknown");
	expect_refused(PARSE("--web.telemetry", "/x"), "--web.telemetry", "unknown");
	expect_refused(PARSE("--log=debug"), "--log", "unknown");
}

Test(config, refuses_missing_values_and_extra_arguments)
{
	expect_refused(PARSE("--log.level"), "--log.level", "needs a value");
	expect_refused(PARSE("--log.level="), "--log.level", "error, warn, info or debug");
	expect_refused(PARSE("extra"), "extra", "unexpected");
	expect_refused(PARSE("--log.level=info", "--", "extra"), "extra", "unexpected");
	expect_refused(PARSE("--log.level=info", "extra", "--help"), "extra", "unexpected");
	expect_refused(PARSE("-"), "-", "unexpected");
	expect_refused(PARSE("--log.level=info", "check"), "check", "unexpected");
}

Test(config, refuses_wrong_values_by_name)
{
	expect_refused(PARSE("--log.level=loud"), "--log.level", "\"loud\"");
	expect_refused(PARSE("--log.format", "xml"), "--log.format", "logfmt or json");
	expect_refused(PARSE("--web.listen-address=10070"), "--web.listen-address", "HOST:PORT");
	expect_refused(PARSE("--workloads.grace-period=5"), "--workloads.grace-period", "duration");
}

Test(config, refuses_a_flag_given_twice)
{
	expect_refused(PARSE("--log.level=info", "--log.level=debug"), "--log.level", "twice");
}

Test(config, refuses_telemetry_paths_that_cannot_be_served)
{
	static const char *const paths[] = { "/",    "/-/healthy", "metrics", "",        "/a b",
					     "/a?b", "/%41",       "/a\"b",   "/made-up" };
	char flag[64];

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		snprintf(flag, sizeof(flag), "--web.telemetry-path=%s", paths[i]);
		expect_refused(PARSE(flag), "--web.telemetry-path", paths[i]);
	}
}

Test(config, splits_addresses)
{
	static const struct {
		const char *text, *host, *port;
	} good[] = {
		{ ":9100", "", "9100" },
		{ "localhost:0", "localhost", "0" },
		{ "[fe80::1%eth0]:65535", "fe80::1%eth0", "65535" },
	};
	static const char *const bad[] = {
		"",
		"localhost",
		"localhost:",
		"localhost:65536",
		"localhost:-1",
		"a:+1",
		"a: 1",
		"::1",
		"::1:80",
		"[::1]",
		"[::1]80",
		"[]:80",
		"[:80",
		"a]:80",
		"[a]:1",
		"a:99999999999999999999",
	};
	struct config_address address;

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		cr_assert_eq(config_address_parse(good[i].text, &address), 0, "%s", good[i].text);
		cr_expect_str_eq(address.host, good[i].host);
		cr_expect_str_eq(address.port, good[i].port);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		cr_expect_eq(config_address_parse(bad[i], &address), -EINVAL, "%s", bad[i]);
}

Test(config, refuses_a_host_name_without_end)
{
	char text[600];
	struct config_address address;

	memset(text, 'a', sizeof(text));
	memcpy(text + 500, ":80", 4);
	cr_expect_eq(config_address_parse(text, &address), -EINVAL);
}

Test(config, reads_durations)
{
	cr_expect_eq(PARSE("--workloads.grace-period=365d").config.grace_period_ns,
		     365 * 86400 * NS_PER_S);
	cr_expect_eq(PARSE("--workloads.grace-period=1h30m").config.grace_period_ns,
		     5400 * NS_PER_S);
	cr_expect_eq(PARSE("--workloads.grace-period=0").config.grace_period_ns, 0);
	cr_expect_eq(PARSE("--workloads.grace-period=1.5h").config.grace_period_ns,
		     5400 * NS_PER_S);
	expect_refused(PARSE("--workloads.grace-period=365d1ns"), "365d1ns", "at most 365d");
	expect_refused(PARSE("--workloads.grace-period="), "\"\"", "duration");
}

#define ONE(name) (1U << features_find(name))
#define ALL (ONE("discovery") | ONE("requests") | ONE("threads") | ONE("nothing_to_scrape"))

static unsigned int enabled(struct outcome outcome)
{
	cr_assert_eq(outcome.result, 0, "%s", outcome.err);
	return config_collectors(&outcome.config);
}

Test(config, collectors_are_switched_on_and_off)
{
	cr_expect_eq(enabled(PARSE()), ALL);
	cr_expect_eq(enabled(PARSE("--no-collector.threads")), ALL & ~ONE("threads"));
	cr_expect_eq(enabled(PARSE("--collector.disable-defaults", "--collector.requests")),
		     ONE("requests"));
	cr_expect_eq(enabled(PARSE("--collector.threads", "--collector.disable-defaults")),
		     ONE("threads"));
	cr_expect_eq(enabled(PARSE("--collector.threads")), ALL);
}

static unsigned int features_of(struct outcome outcome)
{
	unsigned int features = config_features(&outcome.config);

	cr_expect_eq(outcome.result, 0);
	return features;
}

Test(config, what_is_optional_is_off_and_what_no_flag_names_is_on)
{
	unsigned int optional = 1U << (unsigned int)features_find("on_request");
	unsigned int nameless = 1U << (unsigned int)features_find("nameless");

	cr_expect_eq(features_of(PARSE("--log.level=info")) & (optional | nameless), nameless);
	cr_expect_eq(features_of(PARSE("--collector.on_request")) & optional, optional);
	cr_expect_eq(features_of(PARSE("--no-collector.on_request")) & optional, 0);
}

Test(config, collectors_that_make_no_sense_are_refused)
{
	expect_refused(PARSE("--no-collector.cpu"), "--no-collector.cpu", "unknown");
	expect_refused(PARSE("--collector.threads=1"), "--collector.threads", "takes no value");
	expect_refused(PARSE("--collector.threads", "--no-collector.threads"),
		       "--no-collector.threads", "contradict");
	expect_refused(PARSE("--no-collector.threads", "--no-collector.threads"),
		       "--no-collector.threads", "twice");
	expect_refused(PARSE("--collector.disable-defaults", "--collector.discovery"), "nothing",
		       "enable");
}

Test(config, metrics_of_the_exporter_can_be_left_out)
{
	cr_expect_not(PARSE().config.self_hidden);
	cr_expect(PARSE("--web.disable-exporter-metrics").config.self_hidden);
}
