/* SPDX-License-Identifier: Apache-2.0 */
#include "config/config.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/command_line.h"
#include "config/flags.h"

#define NAME_BYTES 64 /* of a flag that names a collector */

/* Texts of those flags that are made of what features say; good while flags are read. */
struct texts {
	char collectors[2 * LOADER_FEATURES_MAX][NAME_BYTES];
	size_t collectors_len;
	/* What leaves the choice, or the feature, out; then the backends. */
	const char *backends[LOADER_FEATURES_MAX][FEATURE_BACKENDS_MAX + 1];
};

/* --- setters of those, whose member is the index of their feature ------------------------------
 */

static int set_backend(void *values, const struct flag *flag, const char *value)
{
	struct config *config = values;
	unsigned int bit = 1U << flag->member;

	for (size_t i = 0; i < flag->names_len; i++) {
		if (strcmp(value, flag->names[i]) != 0)
			continue;
		config->backends[flag->member] = i ? (int)i - 1 : BACKEND_AUTO;
		if (features_table[flag->member]->plan.optional)
			config->optional = (config->optional & ~bit) | (i ? bit : 0);
		return 0;
	}
	return -EINVAL;
}

static int set_collector_on(void *values, const struct flag *flag, const char *value)
{
	struct config *config = values;

	(void)value;
	config->collectors.on |= 1U << flag->member;
	return 0;
}

static int set_collector_off(void *values, const struct flag *flag, const char *value)
{
	struct config *config = values;

	(void)value;
	config->collectors.off |= 1U << flag->member;
	return 0;
}

/* --- what may be given ------------------------------------------------------------------------ */

static void add_backend(struct command_line *line, struct flag flag, size_t id,
			struct config *config, struct texts *texts)
{
	const struct feature *feature = features_table[id];
	const char **names = texts->backends[id];

	names[0] = feature->off ? feature->off : "auto";
	for (flag.names_len = 1; flag.names_len <= FEATURE_BACKENDS_MAX; flag.names_len++) {
		const char *label = feature->plan.backends[flag.names_len - 1].label;

		if (!label)
			break;
		names[flag.names_len] = label;
	}
	flag.names = names;
	flag.member = id;
	flag.set = set_backend;
	command_line_add(line, &flag, config);
}

/* What the flags of feature @id set; NULL: it keeps nothing, or there is no memory. */
static void *config_settings(struct config *config, size_t id)
{
	if (!config->settings[id] && features_table[id]->settings_bytes)
		config->settings[id] = calloc(1, features_table[id]->settings_bytes);
	return config->settings[id];
}

static void add_of_feature(struct command_line *line, const struct flag *flag, size_t id,
			   struct config *config, struct texts *texts)
{
	void *settings = config_settings(config, id);

	if (!settings && features_table[id]->settings_bytes)
		line->error = -ENOMEM;
	else if (flag->backend)
		add_backend(line, *flag, id, config, texts);
	else
		command_line_add(line, flag, settings);
}

static void add_collector(struct command_line *line, size_t id, bool on, struct config *config,
			  struct texts *texts)
{
	char *name = texts->collectors[texts->collectors_len++];
	const struct flag flag = {
		.name = name,
		.set = on ? set_collector_on : set_collector_off,
		.member = id,
	};

	snprintf(name, NAME_BYTES, "%scollector.%s", on ? "" : "no-",
		 features_table[id]->plan.name);
	command_line_add(line, &flag, config);
}

static void add_flags(struct command_line *line, struct config *config, struct texts *texts)
{
	struct flags_walk walk = { 0 };

	while (flags_next(&walk)) {
		if (walk.feature != FLAG_OWN)
			add_of_feature(line, walk.flag, (size_t)walk.feature, config, texts);
		else if (!flag_is_per_collector(walk.flag))
			command_line_add(line, walk.flag, config);
	}
	for (size_t id = 0; id < features_len; id++) {
		if (!features_table[id]->collector)
			continue;
		add_collector(line, id, true, config, texts);
		add_collector(line, id, false, config, texts);
	}
}

/* --- what was given --------------------------------------------------------------------------- */

unsigned int config_collectors(const struct config *config)
{
	const struct config_collectors *named = &config->collectors;

	return ((named->defaults_off ? 0 : features_defaults()) | named->on) & ~named->off;
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
	struct command_line line = { 0 };
	struct texts texts = { 0 };
	int r;

	add_flags(&line, &parsed, &texts);
	r = command_line_read(&line, argc, argv, NULL, out, err);
	command_line_free(&line);
	if (!r)
		r = config_check_collectors(&parsed, err);
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
