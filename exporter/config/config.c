/* SPDX-License-Identifier: Apache-2.0 */
#include "config/config.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "config/flags.h"
#include "config/help.h"

#define NAME_BYTES 64 /* of a flag that names a collector */

/* A flag as getopt_long knows it, and what it is. */
struct known_flag {
	const struct flag *flag; /* NULL: --collector.NAME */
	size_t feature; /* whose, or that of the collector */
	void *values; /* where its value goes */
	char name[NAME_BYTES]; /* of one that names a collector */
	bool off; /* --no-collector.NAME */
	bool seen;
};

struct command_line {
	struct config *config;
	struct option *options; /* owned, as known; ends with zeros */
	struct known_flag *known;
	size_t len;
};

/* The values of --NAME.backend: what leaves the choice, or the feature, out, then the backends. */
static const char *config_backend_name(const struct feature *feature, size_t i)
{
	if (i == 0)
		return feature->off ? feature->off : "auto";
	return i <= FEATURE_BACKENDS_MAX ? feature->plan.backends[i - 1].label : NULL;
}

static int config_set_backend(struct config *config, size_t id, const char *value)
{
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

static int config_set(struct config *config, const struct known_flag *known, const char *value)
{
	if (known->flag->backend)
		return config_set_backend(config, known->feature, value);
	return known->flag->set(known->values, known->flag, value);
}

/* --- what getopt_long is told --------------------------------------------------------------- */

static size_t flags_count(void)
{
	struct flags_walk walk = { 0 };
	size_t len = 0;

	while (flags_next(&walk))
		len++;
	return len;
}

/* val only has to be other than 0, by which getopt_long tells an unknown flag. */
static struct known_flag *command_line_add(struct command_line *line, const char *name,
					   bool has_value)
{
	line->options[line->len] = (struct option){
		.name = name,
		.has_arg = has_value ? required_argument : no_argument,
		.val = 1,
	};
	return &line->known[line->len++];
}

static void command_line_add_collector(struct command_line *line, size_t id, bool off)
{
	struct known_flag *known = &line->known[line->len];

	known->feature = id;
	known->off = off;
	snprintf(known->name, sizeof(known->name), "%scollector.%s", off ? "no-" : "",
		 features_table[id]->plan.name);
	command_line_add(line, known->name, false);
}

/* What the flags of feature @id set; NULL: it keeps nothing, or there is no memory. */
static void *config_settings(struct config *config, size_t id)
{
	if (!config->settings[id] && features_table[id]->settings_bytes)
		config->settings[id] = calloc(1, features_table[id]->settings_bytes);
	return config->settings[id];
}

static int command_line_add_flag(struct command_line *line, const struct flags_walk *walk)
{
	const struct flag *flag = walk->flag;
	struct known_flag *known;

	if (flag_is_per_collector(flag))
		return 0;
	known = command_line_add(line, flag->name, flag->metavariable);
	known->flag = flag;
	known->values = line->config;
	if (walk->feature == FLAG_OWN)
		return 0;
	known->feature = (size_t)walk->feature;
	known->values = config_settings(line->config, known->feature);
	return known->values || !features_table[known->feature]->settings_bytes ? 0 : -ENOMEM;
}

/* After the flags come those of each collector. */
static int command_line_fill(struct command_line *line)
{
	size_t most = flags_count() + 2 * features_len + 1;
	struct flags_walk walk = { 0 };
	int r = 0;

	line->options = calloc(most, sizeof(*line->options));
	line->known = calloc(most, sizeof(*line->known));
	if (!line->options || !line->known)
		return -ENOMEM;
	while (!r && flags_next(&walk))
		r = command_line_add_flag(line, &walk);
	for (size_t id = 0; !r && id < features_len; id++) {
		if (!features_table[id]->collector)
			continue;
		command_line_add_collector(line, id, false);
		command_line_add_collector(line, id, true);
	}
	return r;
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
static const char *config_choice(const struct known_flag *known, size_t i)
{
	if (known->flag->backend)
		return config_backend_name(features_table[known->feature], i);
	return i < known->flag->names_len ? known->flag->names[i] : NULL;
}

/* Writes what the flag accepts. */
static void config_print_expected(const struct known_flag *known, FILE *err)
{
	if (known->flag->expected)
		fputs(known->flag->expected, err);
	for (size_t i = 0; config_choice(known, i); i++) {
		const char *before = i == 0 ? "" : config_choice(known, i + 1) ? ", " : " or ";

		fprintf(err, "%s%s", before, config_choice(known, i));
	}
}

/* Does what the flag at hand asks for. */
static int config_apply(struct config *config, const struct known_flag *known, FILE *err)
{
	if (!known->flag) {
		*(known->off ? &config->collectors.off
			     : &config->collectors.on) |= 1U << known->feature;
		return 0;
	}
	if (config_set(config, known, optarg) == 0)
		return 0;
	fprintf(err, "flag --%s: \"%s\" is wrong: expected ", known->flag->name, optarg);
	config_print_expected(known, err);
	fputc('\n', err);
	return -EINVAL;
}

static const char *known_name(const struct known_flag *known)
{
	return known->flag ? known->flag->name : known->name;
}

/* getopt_long takes abbreviations, which would turn into errors with the next flag we add. */
static bool config_is_abbreviated(const char *argument, const char *name)
{
	size_t len = (size_t)config_flag_name_len(argument);

	return len < 2 || strlen(name) != len - 2;
}

/* One turn of getopt_long: 0 go on, 1 done, -EINVAL, -ENOENT at the end of the flags. */
static int config_next(struct command_line *line, int argc, char **argv, FILE *out, FILE *err)
{
	const char *argument = argv[optind ? optind : 1];
	struct known_flag *known;
	int index = 0;
	/* "+": stop at the first argument that is no flag, so that @argument is the one at hand. */
	int result = getopt_long(argc, argv, "+:", line->options, &index);

	if (result == -1)
		return -ENOENT;
	if (result == '?' || result == ':' ||
	    config_is_abbreviated(argument, known_name(&line->known[index])))
		return config_refuse(argument, result, err);
	known = &line->known[index];
	if (known->flag && known->flag->show) {
		known->flag->show(out);
		return 1;
	}
	if (known->seen && !(known->flag && known->flag->repeats)) {
		fprintf(err, "flag --%s is given twice\n", known_name(known));
		return -EINVAL;
	}
	known->seen = true;
	return config_apply(line->config, known, err);
}

/* What is not given is as its row says. */
static void config_set_defaults(struct command_line *line)
{
	for (size_t i = 0; i < line->len; i++) {
		const struct known_flag *known = &line->known[i];

		if (known->flag && known->flag->fallback && !known->seen)
			config_set(line->config, known, known->flag->fallback);
	}
}

static int config_read(struct command_line *line, int argc, char **argv, FILE *out, FILE *err)
{
	int r = command_line_fill(line);

	if (r) {
		fprintf(err, "cannot read the flags: %s\n", strerror(-r));
		return r;
	}
	optind = 0; /* makes getopt_long begin anew */
	opterr = 0;
	do {
		r = config_next(line, argc, argv, out, err);
	} while (!r);
	if (r != -ENOENT)
		return r;
	if (optind < argc) {
		fprintf(err, "unexpected argument \"%s\"; see --help\n", argv[optind]);
		return -EINVAL;
	}
	config_set_defaults(line);
	return config_check_collectors(line->config, err);
}

/* Before any flag is read. */
static struct config config_nothing(void)
{
	struct config config = { 0 };

	for (size_t id = 0; id < features_len; id++)
		config.backends[id] = BACKEND_AUTO;
	return config;
}

int config_parse(struct config *config, int argc, char **argv, FILE *out, FILE *err)
{
	struct config parsed = config_nothing();
	struct command_line line = { .config = &parsed };
	int r = config_read(&line, argc, argv, out, err);

	free(line.options);
	free(line.known);
	if (r)
		config_free(&parsed);
	else
		*config = parsed;
	return r;
}

void config_free(struct config *config)
{
	for (size_t id = 0; id < features_len; id++)
		free(config->settings[id]);
	*config = (struct config){ 0 };
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
