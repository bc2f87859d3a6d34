/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <string.h>

#include "base/text.h"
#include "help.h"
#include "http/server.h"
#include "version.h"

#define PATH_BYTES_MAX 256
#define MAX_REQUESTS_MAX 1000
#define LISTEN_INDEX 0 /* of --web.listen-address, which may be given again */
#define NS_PER_MS 1000000ULL
#define DURATION_MAX_MS (365 * 86400000ULL)

/* What getopt_long returns for a flag without a value; and with the number of a part added. */
enum {
	SWITCH_SELF = 256,
	SWITCH_SOCKET,
	SWITCH_DEFAULTS,
	SWITCH_PART,
	SWITCH_NO_PART = SWITCH_PART + PARTS,
};
/* Those with values come first, in the order of config_flags. */
static const struct option config_options[] = {
	{ "web.listen-address", required_argument, NULL, 0 },
	{ "web.telemetry-path", required_argument, NULL, 0 },
	{ "web.config.file", required_argument, NULL, 0 },
	{ "web.max-requests", required_argument, NULL, 0 },
	{ "workloads.grace-period", required_argument, NULL, 0 },
	{ "requests.backend", required_argument, NULL, 0 },
	{ "security.user", required_argument, NULL, 0 },
	{ "security.sandbox", required_argument, NULL, 0 },
	{ "mutex.backend", required_argument, NULL, 0 },
	{ "log.level", required_argument, NULL, 0 },
	{ "log.format", required_argument, NULL, 0 },
	{ "version", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
	{ "web.disable-exporter-metrics", no_argument, NULL, SWITCH_SELF },
	{ "web.systemd-socket", no_argument, NULL, SWITCH_SOCKET },
	{ "collector.disable-defaults", no_argument, NULL, SWITCH_DEFAULTS },
	{ "collector.discovery", no_argument, NULL, SWITCH_PART + PART_DISCOVERY },
	{ "collector.requests", no_argument, NULL, SWITCH_PART + PART_REQUESTS },
	{ "collector.threads", no_argument, NULL, SWITCH_PART + PART_THREADS },
	{ "no-collector.discovery", no_argument, NULL, SWITCH_NO_PART + PART_DISCOVERY },
	{ "no-collector.requests", no_argument, NULL, SWITCH_NO_PART + PART_REQUESTS },
	{ "no-collector.threads", no_argument, NULL, SWITCH_NO_PART + PART_THREADS },
	{ 0 },
};

static int config_set_address(struct config *config, const char *value)
{
	if (config->listen_len == CONFIG_LISTEN_MAX ||
	    config_address_parse(value, &config->listen[config->listen_len]))
		return -EINVAL;
	config->listen_len++;
	return 0;
}

static int config_set_path(struct config *config, const char *value)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789/-._~";

	if (value[0] != '/' || !value[1] || strcmp(value, HTTP_HEALTH_PATH) == 0 ||
	    strlen(value) >= PATH_BYTES_MAX || value[strspn(value, allowed)])
		return -EINVAL;
	config->telemetry_path = value;
	return 0;
}

static int config_set_web_config(struct config *config, const char *value)
{
	if (!*value)
		return -EINVAL;
	config->web_config_file = value;
	return 0;
}

static int config_set_max_requests(struct config *config, const char *value)
{
	uint64_t number;

	if (text_parse_u64(&value, &number) || *value || number > MAX_REQUESTS_MAX)
		return -EINVAL;
	config->max_requests = number;
	return 0;
}

static int config_set_grace(struct config *config, const char *value)
{
	return config_duration_parse(value, &config->grace_period_ns);
}

static int config_set_backend(struct config *config, const char *value)
{
	static const char *const names[] = {
		[BACKEND_AUTO] = "auto",
		[BACKEND_SOCKET] = "socket",
		[BACKEND_SYSCALL] = "syscall",
	};

	for (unsigned int i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (strcmp(value, names[i]) != 0)
			continue;
		config->requests_backend = (enum backend)i;
		return 0;
	}
	return -EINVAL;
}

static int config_set_user(struct config *config, const char *value)
{
	if (!*value)
		return -EINVAL;
	config->user = value; /* whether there is one is looked up at the start */
	return 0;
}

static int config_set_sandbox(struct config *config, const char *value)
{
	static const char *const names[] = {
		[SANDBOX_ON] = "on",
		[SANDBOX_LOG] = "log",
		[SANDBOX_OFF] = "off",
	};

	for (unsigned int i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (strcmp(value, names[i]) != 0)
			continue;
		config->sandbox = (enum sandbox_mode)i;
		return 0;
	}
	return -EINVAL;
}

static int config_set_mutex(struct config *config, const char *value)
{
	if (strcmp(value, "futex") != 0 && strcmp(value, "uprobe") != 0)
		return -EINVAL;
	config->mutex_probes = value[0] == 'u';
	return 0;
}

static int config_set_level(struct config *config, const char *value)
{
	return log_level_parse(value, &config->log_level);
}

static int config_set_format(struct config *config, const char *value)
{
	return log_format_parse(value, &config->log_format);
}

/* What the flags with values set, in the order of config_options. */
static const struct config_flag {
	int (*set)(struct config *config, const char *value);
	const char *expected;
} config_flags[] = {
	{ config_set_address, "HOST:PORT, [IPv6]:PORT or :PORT with a port from 0 to 65535, and at "
			      "most 16 of them" },
	{ config_set_path, "a path such as /metrics: it begins with /, has only letters, digits "
			   "and /-._~, and is neither / nor " HTTP_HEALTH_PATH },
	{ config_set_web_config, "the name of a file" },
	{ config_set_max_requests, "a number up to 1000; 0 is no limit" },
	{ config_set_grace, "a duration such as 30s, 5m or 1h30m, at most 365d" },
	{ config_set_backend, "auto, socket or syscall" },
	{ config_set_user, "the name of a user" },
	{ config_set_sandbox, "on, log or off" },
	{ config_set_mutex, "futex or uprobe" },
	{ config_set_level, "error, warn, info or debug" },
	{ config_set_format, "logfmt or json" },
};

#define CONFIG_FLAGS (sizeof(config_flags) / sizeof(*config_flags))
_Static_assert(sizeof(config_options) / sizeof(*config_options) <= 32, "a flag without its bit");

/* Appends @digit to @value; -EINVAL, with @value untouched, if that exceeds @max. */
static int config_add_digit(uint64_t *value, char digit, uint64_t max)
{
	uint64_t sum = *value * 10 + (uint64_t)(digit - '0');

	if (sum > max)
		return -EINVAL;
	*value = sum;
	return 0;
}

static int config_port_check(const char *port)
{
	uint64_t number = 0;

	if (!*port || strlen(port) >= CONFIG_PORT_BYTES)
		return -EINVAL;
	for (; *port; port++) {
		if (*port < '0' || *port > '9' || config_add_digit(&number, *port, 65535) < 0)
			return -EINVAL;
	}
	return 0;
}

int config_address_parse(const char *text, struct config_address *address)
{
	const char *colon = strrchr(text, ':'), *host = text, *end = colon;
	struct config_address parsed = { 0 };

	if (!colon || config_port_check(colon + 1) < 0)
		return -EINVAL;
	if (*host == '[') {
		host++;
		end--;
		if (end <= host || *end != ']' || !memchr(host, ':', (size_t)(end - host)))
			return -EINVAL;
	} else if (memchr(host, ':', (size_t)(end - host))) {
		return -EINVAL;
	}
	if ((size_t)(end - host) >= sizeof(parsed.host) ||
	    memchr(host, ']', (size_t)(end - host)) || memchr(host, '[', (size_t)(end - host)))
		return -EINVAL;
	memcpy(parsed.host, host, (size_t)(end - host));
	memcpy(parsed.port, colon + 1, strlen(colon + 1));
	*address = parsed;
	return 0;
}

/* The unit that @text begins with, as milliseconds; 0 if it is none. @len becomes its length. */
static uint64_t config_unit_ms(const char *text, size_t *len)
{
	static const struct {
		const char *name;
		uint64_t ms;
	} units[] = {
		{ "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 }, { "d", 86400000 }
	};

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		*len = strlen(units[i].name);
		if (strncmp(text, units[i].name, *len) == 0)
			return units[i].ms;
	}
	return 0;
}

/* Reads one number with its unit from *@text, and moves it on. */
static int config_duration_part(const char **text, uint64_t *unit_ms, uint64_t *part_ms)
{
	uint64_t number = 0;
	const char *at = *text;
	size_t len;

	if (*at < '0' || *at > '9')
		return -EINVAL;
	for (; *at >= '0' && *at <= '9'; at++) {
		if (config_add_digit(&number, *at, DURATION_MAX_MS) < 0)
			return -EINVAL;
	}
	*unit_ms = config_unit_ms(at, &len);
	if (!*unit_ms || number > DURATION_MAX_MS / *unit_ms)
		return -EINVAL;
	*part_ms = number * *unit_ms;
	*text = at + len;
	return 0;
}

int config_duration_parse(const char *text, uint64_t *ns)
{
	uint64_t total_ms = 0, part_ms = 0, unit_ms = 0, last_unit_ms = UINT64_MAX;

	if (strcmp(text, "0") == 0)
		text = "0s";
	do {
		if (config_duration_part(&text, &unit_ms, &part_ms) < 0 || unit_ms >= last_unit_ms)
			return -EINVAL;
		last_unit_ms = unit_ms;
		total_ms += part_ms;
	} while (*text);
	if (total_ms > DURATION_MAX_MS)
		return -EINVAL;
	*ns = total_ms * NS_PER_MS;
	return 0;
}

static void config_print_version(FILE *out)
{
	fputs("workload_exporter, version " VERSION " (branch: " BRANCH ", revision: " REVISION
	      ")\n  compiler: " __VERSION__ "\n",
	      out);
}

/* The flag as it was written, without its value. */
static int config_flag_name_len(const char *argument)
{
	return (int)strcspn(argument, "=");
}

/* What getopt_long refused, in words. @argument is the one at which it stopped. */
static int config_refuse(const char *argument, int result, FILE *err)
{
	int len = config_flag_name_len(argument);

	if (result == ':')
		fprintf(err, "flag %.*s needs a value; see --help\n", len, argument);
	else if (argument[len] == '=' && optopt)
		fprintf(err, "flag %.*s takes no value, but has \"%s\"\n", len, argument,
			argument + len + 1);
	else
		fprintf(err, "unknown flag %.*s; see --help\n", len, argument);
	return -EINVAL;
}

static int config_switch(struct config *config, int which)
{
	if (which >= SWITCH_NO_PART)
		config->parts.off |= 1U << (which - SWITCH_NO_PART);
	else if (which >= SWITCH_PART)
		config->parts.on |= 1U << (which - SWITCH_PART);
	else if (which == SWITCH_DEFAULTS)
		config->parts.defaults_off = true;
	else if (which == SWITCH_SOCKET)
		config->systemd_socket = true;
	else
		config->self_hidden = true;
	return 0;
}

unsigned int config_parts_enabled(const struct config *config)
{
	const struct config_parts *parts = &config->parts;

	return ((parts->defaults_off ? 0 : PARTS_ALL) | parts->on) & ~parts->off;
}

static int config_check_parts(const struct config *config, FILE *err)
{
	unsigned int twice = config->parts.on & config->parts.off;

	if (twice) {
		const char *name = part_name((enum part)__builtin_ctz(twice));

		fprintf(err, "flags --collector.%s and --no-collector.%s contradict each other\n",
			name, name);
		return -EINVAL;
	}
	if (!(config_parts_enabled(config) & (1U << PART_REQUESTS | 1U << PART_THREADS))) {
		fputs("nothing would be measured: enable collector requests or threads\n", err);
		return -EINVAL;
	}
	return 0;
}

static int config_apply(struct config *config, size_t index, FILE *err)
{
	if (config_flags[index].set(config, optarg) == 0)
		return 0;
	fprintf(err, "flag --%s: \"%s\" is wrong: expected %s\n", config_options[index].name,
		optarg, config_flags[index].expected);
	return -EINVAL;
}

/* getopt_long takes abbreviations, which would turn into errors with the next flag we add. */
static bool config_is_abbreviated(const char *argument, int index)
{
	size_t len = (size_t)config_flag_name_len(argument);

	return len < 2 || strlen(config_options[index].name) != len - 2;
}

/* One turn of getopt_long: 0 go on, 1 done, -EINVAL, -ENOENT at the end of the flags. */
static int config_next(struct config *config, int argc, char **argv, unsigned *seen, FILE *out,
		       FILE *err)
{
	const char *argument = argv[optind ? optind : 1];
	int index = 0;
	/* "+": stop at the first argument that is no flag, so that @argument is the one at hand. */
	int result = getopt_long(argc, argv, "+:", config_options, &index);

	if (result == -1)
		return -ENOENT;
	if (result == '?' || result == ':' || config_is_abbreviated(argument, index))
		return config_refuse(argument, result, err);
	if (result == 'h')
		fputs(help_text, out);
	else if (result == 'v')
		config_print_version(out);
	if (result == 'h' || result == 'v')
		return 1;
	if (index != LISTEN_INDEX && *seen & 1U << index) {
		fprintf(err, "flag --%s is given twice\n", config_options[index].name);
		return -EINVAL;
	}
	*seen |= 1U << index;
	return result ? config_switch(config, result) : config_apply(config, (size_t)index, err);
}

int config_parse(struct config *config, int argc, char **argv, FILE *out, FILE *err)
{
	struct config parsed = {
		.telemetry_path = DEFAULT_PATH,
		.log_level = LOG_LEVEL_INFO,
		.log_format = LOG_FORMAT_LOGFMT,
		.max_requests = HTTP_MAX_REQUESTS,
		.grace_period_ns = 300000 * NS_PER_MS,
	};
	unsigned seen = 0; /* one bit per flag */
	int result;

	optind = 0; /* makes getopt_long begin anew */
	opterr = 0;
	do {
		result = config_next(&parsed, argc, argv, &seen, out, err);
	} while (!result);
	if (result != -ENOENT)
		return result;
	if (optind < argc) {
		fprintf(err, "unexpected argument \"%s\"; see --help\n", argv[optind]);
		return -EINVAL;
	}
	if (!parsed.listen_len)
		config_set_address(&parsed, DEFAULT_ADDRESS);
	result = config_check_parts(&parsed, err);
	if (!result)
		*config = parsed;
	return result;
}

bool config_is_check(int argc, char *const *argv)
{
	return argc > 1 && strcmp(argv[1], "check") == 0;
}

int config_check_parse(bool *json, int argc, char *const *argv, FILE *out, FILE *err)
{
	bool seen = false;

	for (int i = 2; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0) {
			fputs(help_check_text, out);
			return 1;
		}
		if (strcmp(argv[i], "--json") != 0) {
			fprintf(err, "check: unknown argument %s; see check --help\n", argv[i]);
			return -EINVAL;
		}
		if (seen) {
			fprintf(err, "check: flag --json is given twice\n");
			return -EINVAL;
		}
		seen = true;
	}
	*json = seen;
	return 0;
}

int config_web_check_parse(const char **path, int argc, char *const *argv, FILE *out, FILE *err)
{
	if (argc < 2 || strcmp(argv[1], "web-config") != 0)
		return 0;
	if (argc == 3 && strcmp(argv[2], "--help") == 0) {
		fputs(help_web_config_text, out);
		*path = NULL;
		return 1;
	}
	if (argc != 4 || strcmp(argv[2], "check") != 0) {
		fprintf(err, "web-config: expected: workload_exporter web-config check FILE\n");
		return -EINVAL;
	}
	*path = argv[3];
	return 1;
}
