/* SPDX-License-Identifier: Apache-2.0 */
#include "config/config.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/text.h"
#include "config/help.h"
#include "config/values.h"
#include "http/handler.h"
#include "version.h"

#define PATH_BYTES_MAX 256
#define NAME_BYTES 64 /* of a flag that names a collector */
#define LEN(array) (sizeof(array) / sizeof(*(array)))

static const char *const sandbox_names[] = {
	[SANDBOX_ON] = "on",
	[SANDBOX_LOG] = "log",
	[SANDBOX_OFF] = "off",
};

/* A flag that is a row of flags.def. */
struct config_flag {
	const char *name; /* without its dashes */
	bool has_value;
	const char *fallback; /* the value if the flag is not given; NULL: none */
	void (*show)(FILE *out); /* writes something, after which the program ends; else: */
	int (*set)(struct config *config, const struct config_flag *flag, const char *value);
	size_t member; /* its offset in struct config */
	const char *const *names; /* of a choice: its values, by their numbers */
	size_t names_len;
	uint64_t max; /* of a number */
	const char *feature; /* of a choice between its backends: its name */
	const char *expected; /* of any other: what @set accepts, in words */
};

static void *config_member(struct config *config, const struct config_flag *flag)
{
	return (char *)config + flag->member;
}

static int config_set_address(struct config *config, const struct config_flag *flag,
			      const char *value)
{
	struct config_address *addresses = config_member(config, flag);

	if (config->listen_len == CONFIG_LISTEN_MAX ||
	    config_address_parse(value, &addresses[config->listen_len]))
		return -EINVAL;
	config->listen_len++;
	return 0;
}

static int config_set_text(struct config *config, const struct config_flag *flag, const char *value)
{
	if (!*value)
		return -EINVAL;
	*(const char **)config_member(config, flag) = value;
	return 0;
}

static int config_set_path(struct config *config, const struct config_flag *flag, const char *value)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789/-._~";

	if (value[0] != '/' || !value[1] || strcmp(value, HTTP_HEALTH_PATH) == 0 ||
	    strlen(value) >= PATH_BYTES_MAX || value[strspn(value, allowed)])
		return -EINVAL;
	return config_set_text(config, flag, value);
}

static int config_set_number(struct config *config, const struct config_flag *flag,
			     const char *value)
{
	return config_number_parse(value, flag->max, config_member(config, flag));
}

static int config_set_duration(struct config *config, const struct config_flag *flag,
			       const char *value)
{
	return config_duration_parse(value, config_member(config, flag));
}

static int config_set_choice(struct config *config, const struct config_flag *flag,
			     const char *value)
{
	for (size_t i = 0; i < flag->names_len; i++) {
		if (strcmp(value, flag->names[i]) != 0)
			continue;
		*(unsigned int *)config_member(config, flag) = (unsigned int)i;
		return 0;
	}
	return -EINVAL;
}

/* The values of --NAME.backend: what leaves the choice, or the feature, out, then the backends. */
static const char *config_backend_name(const struct feature *feature, size_t i)
{
	if (i == 0)
		return feature->off ? feature->off : "auto";
	return i <= FEATURE_BACKENDS_MAX ? feature->plan.backends[i - 1].label : NULL;
}

static int config_set_backend(struct config *config, const struct config_flag *flag,
			      const char *value)
{
	size_t id = (size_t)features_find(flag->feature);
	const char *name;

	for (size_t i = 0; (name = config_backend_name(features_table[id], i)); i++) {
		if (strcmp(value, name) != 0)
			continue;
		config->backends[id] = i ? (int)i - 1 : BACKEND_AUTO;
		if (features_table[id]->plan.optional)
			config->optional = (config->optional & ~(1U << id)) | (i ? 1U << id : 0);
		return 0;
	}
	return -EINVAL;
}

static int config_set_switch(struct config *config, const struct config_flag *flag,
			     const char *value)
{
	(void)value;
	*(bool *)config_member(config, flag) = true;
	return 0;
}

static void config_print_version(FILE *out)
{
	fputs("workload_exporter, version " VERSION " (branch: " BRANCH ", revision: " REVISION
	      ")\n  compiler: " __VERSION__ "\n",
	      out);
}

/* The offset of a member, which does not compile if it has another type than the setter writes. */
#define MEMBER(type, at) \
	.member = _Generic(((struct config *)0)->at, type : offsetof(struct config, at))
#define ADDRESSES(at)                                                                      \
	.set = config_set_address, .member = offsetof(struct config, at),                  \
	.expected = "HOST:PORT, [IPv6]:PORT or :PORT with a port from 0 to 65535, and at " \
		    "most 16 of them"
#define TEXT(at, what) .set = config_set_text, .expected = (what), MEMBER(const char *, at)
#define PATH(at)                                                                               \
	.set = config_set_path, MEMBER(const char *, at),                                      \
	.expected = "a path such as /metrics: it begins with /, has only letters, digits and " \
		    "/-._~, and is neither / nor " HTTP_HEALTH_PATH
#define NUMBER(at, most, what) \
	.set = config_set_number, .max = (most), .expected = (what), MEMBER(uint64_t, at)
#define DURATION(at)                                      \
	.set = config_set_duration, MEMBER(uint64_t, at), \
	.expected = "a duration such as 30s, 5m or 1h30m, at most 365d"
#define CHOICE(at, list) \
	.set = config_set_choice, MEMBER(unsigned int, at), .names = (list), .names_len = LEN(list)
#define BACKEND(name) .set = config_set_backend, .feature = (name)
#define SWITCH(at) .set = config_set_switch, MEMBER(bool, at)
#define SHOWS(function) .show = (function)

static const struct config_flag config_flags[] = {
#define FLAG(option, metavariable, standard, sets, ...) \
	{ .name = (option), .has_value = (metavariable) != NULL, .fallback = (standard), sets },
#include "config/flags.def"
};
#define FLAGS LEN(config_flags)
/* After the flags come --collector.NAME and --no-collector.NAME of each collector. */
#define OPTIONS_MAX (FLAGS + 2 * (size_t)LOADER_FEATURES_MAX)

struct config_options {
	struct option list[OPTIONS_MAX + 1];
	char collectors[2 * LOADER_FEATURES_MAX][NAME_BYTES];
	size_t features[2 * LOADER_FEATURES_MAX]; /* which one each of these names */
	size_t collectors_len;
	bool seen[OPTIONS_MAX];
};

static void config_options_add(struct config_options *options, const char *before, size_t id)
{
	size_t i = options->collectors_len++;

	options->features[i] = id;
	snprintf(options->collectors[i], NAME_BYTES, "%scollector.%s", before,
		 features_table[id]->plan.name);
	options->list[FLAGS + i] = (struct option){ .name = options->collectors[i], .val = 1 };
}

/* val only has to be other than 0, by which getopt_long tells an unknown flag. */
static void config_options_fill(struct config_options *options)
{
	for (size_t i = 0; i < FLAGS; i++) {
		options->list[i] = (struct option){
			.name = config_flags[i].name,
			.has_arg = config_flags[i].has_value ? required_argument : no_argument,
			.val = 1,
		};
	}
	for (size_t id = 0; id < features_len; id++) {
		if (!features_table[id]->collector)
			continue;
		config_options_add(options, "", id);
		config_options_add(options, "no-", id);
	}
}

static void config_set_collector(struct config *config, const struct config_options *options,
				 size_t i)
{
	*(i % 2 ? &config->collectors.off : &config->collectors.on) |= 1U << options->features[i];
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

unsigned int config_collectors(const struct config *config)
{
	const struct config_collectors *named = &config->collectors;

	return ((named->defaults_off ? 0 : features_collectors()) | named->on) & ~named->off;
}

unsigned int config_features(const struct config *config)
{
	return config_collectors(config) | features_always() | config->optional;
}

static int config_check_collectors(const struct config *config, FILE *err)
{
	unsigned int twice = config->collectors.on & config->collectors.off;
	unsigned int measuring = features_collectors() & features_measuring();
	char names[FEATURES_NAMES_BYTES];

	if (twice) {
		const char *name = features_table[__builtin_ctz(twice)]->plan.name;

		fprintf(err, "flags --collector.%s and --no-collector.%s contradict each other\n",
			name, name);
		return -EINVAL;
	}
	if (!(config_collectors(config) & measuring)) {
		fprintf(err, "nothing would be measured: enable one of the collectors %s\n",
			features_names(measuring, names, sizeof(names)));
		return -EINVAL;
	}
	return 0;
}

/* The values of a choice, one by one; NULL at their end. */
static const char *config_choice(const struct config_flag *flag, size_t i)
{
	if (flag->feature)
		return config_backend_name(features_table[features_find(flag->feature)], i);
	return i < flag->names_len ? flag->names[i] : NULL;
}

/* Writes what the flag accepts. */
static void config_print_expected(const struct config_flag *flag, FILE *err)
{
	if (flag->expected)
		fputs(flag->expected, err);
	for (size_t i = 0; config_choice(flag, i); i++) {
		const char *before = i == 0 ? "" : config_choice(flag, i + 1) ? ", " : " or ";

		fprintf(err, "%s%s", before, config_choice(flag, i));
	}
}

static int config_apply(struct config *config, const struct config_flag *flag, FILE *err)
{
	if (flag->set(config, flag, optarg) == 0)
		return 0;
	fprintf(err, "flag --%s: \"%s\" is wrong: expected ", flag->name, optarg);
	config_print_expected(flag, err);
	fputc('\n', err);
	return -EINVAL;
}

static bool config_may_repeat(size_t index)
{
	return index < FLAGS && config_flags[index].set == config_set_address;
}

/* getopt_long takes abbreviations, which would turn into errors with the next flag we add. */
static bool config_is_abbreviated(const char *argument, const char *name)
{
	size_t len = (size_t)config_flag_name_len(argument);

	return len < 2 || strlen(name) != len - 2;
}

/* One turn of getopt_long: 0 go on, 1 done, -EINVAL, -ENOENT at the end of the flags. */
static int config_next(struct config *config, int argc, char **argv, struct config_options *options,
		       FILE *out, FILE *err)
{
	const char *argument = argv[optind ? optind : 1];
	int found = 0;
	/* "+": stop at the first argument that is no flag, so that @argument is the one at hand. */
	int result = getopt_long(argc, argv, "+:", options->list, &found);
	size_t index = (size_t)found;

	if (result == -1)
		return -ENOENT;
	if (result == '?' || result == ':' ||
	    config_is_abbreviated(argument, options->list[index].name))
		return config_refuse(argument, result, err);
	if (index < FLAGS && config_flags[index].show) {
		config_flags[index].show(out);
		return 1;
	}
	if (options->seen[index] && !config_may_repeat(index)) {
		fprintf(err, "flag --%s is given twice\n", options->list[index].name);
		return -EINVAL;
	}
	options->seen[index] = true;
	if (index < FLAGS)
		return config_apply(config, &config_flags[index], err);
	config_set_collector(config, options, index - FLAGS);
	return 0;
}

/* What is not given is as flags.def says. */
static void config_set_defaults(struct config *config, const struct config_options *options)
{
	for (size_t i = 0; i < FLAGS; i++) {
		const struct config_flag *flag = &config_flags[i];

		if (flag->fallback && !options->seen[i])
			flag->set(config, flag, flag->fallback);
	}
}

int config_parse(struct config *config, int argc, char **argv, FILE *out, FILE *err)
{
	struct config_options options = { 0 };
	struct config parsed = { 0 };
	int result;

	config_options_fill(&options);
	optind = 0; /* makes getopt_long begin anew */
	opterr = 0;
	do {
		result = config_next(&parsed, argc, argv, &options, out, err);
	} while (!result);
	if (result != -ENOENT)
		return result;
	if (optind < argc) {
		fprintf(err, "unexpected argument \"%s\"; see --help\n", argv[optind]);
		return -EINVAL;
	}
	config_set_defaults(&parsed, &options);
	result = config_check_collectors(&parsed, err);
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
