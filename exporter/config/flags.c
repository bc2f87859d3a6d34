/* SPDX-License-Identifier: Apache-2.0 */
#include "config/flags.h"

#include <errno.h>
#include <string.h>

#include "base/units.h"
#include "config/config.h"
#include "config/help.h"
#include "http/handler.h"
#include "version.h"

#define PATH_BYTES_MAX 256

static const char *const sandbox_names[] = {
	[SANDBOX_ON] = "on",
	[SANDBOX_LOG] = "log",
	[SANDBOX_OFF] = "off",
};

static int set_address(void *values, const struct flag *flag, const char *value)
{
	struct config *config = values;

	(void)flag;
	if (config->listen_len == CONFIG_LISTEN_MAX ||
	    config_address_parse(value, &config->listen[config->listen_len]))
		return -EINVAL;
	config->listen_len++;
	return 0;
}

static int set_path(void *values, const struct flag *flag, const char *value)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789/-._~";

	if (value[0] != '/' || !value[1] || strcmp(value, HTTP_HEALTH_PATH) == 0 ||
	    features_have_page(value) || strlen(value) >= PATH_BYTES_MAX ||
	    value[strspn(value, allowed)])
		return -EINVAL;
	return flag_set_text(values, flag, value);
}

static void print_version(const void *values, FILE *out)
{
	(void)values;
	fputs("workload_exporter, version " VERSION " (branch: " BRANCH ", revision: " REVISION
	      ")\n  compiler: " __VERSION__ "\n",
	      out);
}

#define ADDRESSES                                                                          \
	.set = set_address, .repeats = true,                                               \
	.expected = "HOST:PORT, [IPv6]:PORT or :PORT with a port from 0 to 65535, and at " \
		    "most 16 of them"
#define PATH(at)                                                                               \
	.set = set_path, FLAG_MEMBER(const char *, config, at),                                \
	.expected = "a path such as /metrics: it begins with /, has only letters, digits and " \
		    "/-._~, and is neither / nor " HTTP_HEALTH_PATH
#define SHOWS(function) .show = (function)
#define PER_COLLECTOR .set = NULL
#define FLAGS_OF_FEATURES    \
	{                    \
		.name = NULL \
	} /* here are those of the features */

/* In the order of --help. */
static const struct flag own_flags[] = {
	FLAG("web.listen-address", "ADDRESS", "127.0.0.1:10070", ADDRESSES,
	     "Where to serve: HOST:PORT, [IPv6]:PORT, or :PORT for\n"
	     "every interface. Port 0 takes a free one and logs it.\n"
	     "May be given up to 16 times.",
	     "Every interface means IPv6 and IPv4."),
	FLAG("web.telemetry-path", "PATH", "/metrics", PATH(telemetry_path),
	     "Path of the metrics."),
	FLAG("web.disable-exporter-metrics", NULL, NULL, FLAG_SWITCH(config, self_hidden),
	     "Leave out the metrics of the exporter itself.",
	     "These are `process_*` and `workload_exporter_*`; the version stays."),
	FLAG("[no-]collector.NAME", NULL, "on", PER_COLLECTOR, "Observe or not: @COLLECTORS@.",
	     "Of @MEASURING@ one must be on. What is off is not attached and costs nothing; "
	     "@ALWAYS@ is only not shown."),
	FLAG("collector.disable-defaults", NULL, NULL, FLAG_SWITCH(config, collectors.defaults_off),
	     "Only those that --collector.NAME names."),
	FLAG("web.config.file", "FILE", NULL,
	     FLAG_TEXT(config, web_config_file, "the name of a file"),
	     "TLS, users, headers and rate limit, in the format of\n"
	     "Prometheus' exporter-toolkit. Read again when changed."),
	FLAG("web.systemd-socket", NULL, NULL, FLAG_SWITCH(config, systemd_socket),
	     "Serve on the sockets that systemd passes instead of\n"
	     "--web.listen-address."),
	FLAG("web.health-unauthenticated", NULL, NULL, FLAG_SWITCH(config, health_open),
	     "/-/healthy asks for no password, so that\n"
	     "probes work beside users.",
	     "It has no rate limit either."),
	FLAG("web.max-requests", "N", "40",
	     FLAG_NUMBER(config, max_requests, 1000, "a number up to 1000; 0 is no limit"),
	     "Pages sent at the same time; who asks beyond it\n"
	     "waits, and gets 503 after a second. 0 is no limit."),
	FLAG("workloads.grace-period", "DURATION", "5m", FLAG_DURATION(config, grace_period_ns),
	     "How long a workload without processes, a port without\n"
	     "sockets and a pool without threads stay visible, such\n"
	     "as 30s, 5m or 1h30m."),
	FLAGS_OF_FEATURES,
	FLAG("security.user", "NAME", NULL, FLAG_TEXT(config, user, "the name of a user"),
	     "User to become after the start, with its groups. It\n"
	     "must be able to read what --web.config.file names.\n"
	     "Default: the one that starts it; helpers of root that\n"
	     "need no files become nobody (65534)."),
	FLAG("security.sandbox", "MODE", "on", FLAG_CHOICE(config, sandbox, sandbox_names),
	     "on: after the start only the system calls that are\n"
	     "needed work; log: the kernel logs the others; off."),
	FLAG("log.level", "LEVEL", "info", FLAG_CHOICE(config, log_level, log_level_names),
	     "error, warn, info or debug."),
	FLAG("log.format", "FORMAT", "logfmt", FLAG_CHOICE(config, log_format, log_format_names),
	     "logfmt or json."),
	FLAG("version", NULL, NULL, SHOWS(print_version), "Show the version and exit."),
	FLAG("help", NULL, NULL, SHOWS(help_print), "Show this help and exit."),
};

static bool is_of_features(const struct flag *flag)
{
	return !flag->name;
}

bool flags_next(struct flags_walk *walk)
{
	while (walk->own < COUNT(own_flags)) {
		const struct flag *own = &own_flags[walk->own];

		if (!is_of_features(own)) {
			walk->own++;
			walk->flag = own;
			walk->feature = FLAG_OWN;
			return true;
		}
		for (; walk->next_feature < features_len; walk->next_feature++, walk->next = 0) {
			const struct feature *feature = features_table[walk->next_feature];

			if (walk->next == feature->flags_len)
				continue;
			walk->flag = &feature->flags[walk->next++];
			walk->feature = (int)walk->next_feature;
			return true;
		}
		walk->own++;
	}
	return false;
}
