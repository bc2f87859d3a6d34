/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line: flags in the manner of Prometheus exporters (--flag=value or --flag value, no
 * abbreviations, no flag twice but for --web.listen-address).
 */
#ifndef WORKLOAD_CONFIG_CONFIG_H
#define WORKLOAD_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/log.h"
#include "config/address.h"
#include "features/features.h"
#include "security/sandbox.h"

#define CONFIG_LISTEN_MAX 16

/* Which collectors were named, as masks of features.h. */
struct config_collectors {
	unsigned int on; /* --collector.NAME */
	unsigned int off; /* --no-collector.NAME */
	bool defaults_off; /* --collector.disable-defaults */
};

struct config {
	struct config_address listen[CONFIG_LISTEN_MAX];
	size_t listen_len; /* at least one */
	bool systemd_socket; /* the sockets come from systemd, and listen counts for nothing */
	bool health_open; /* the health path asks for no password */
	const char *web_config_file; /* borrowed from argv; NULL if there is none */
	uint64_t max_requests; /* pages sent at the same time; 0: no limit */
	const char *telemetry_path; /* borrowed from argv or constant */
	enum log_level log_level;
	enum log_format log_format;
	struct config_collectors collectors;
	unsigned int optional; /* features that are on only if asked for, and were */
	int backends[LOADER_FEATURES_MAX]; /* as in loader_options */
	void *settings[LOADER_FEATURES_MAX]; /* owned; as feature.h says, by feature */
	bool self_hidden; /* no metrics of the exporter itself */
	const char *user; /* to become after the start; NULL: stay. Borrowed from argv */
	enum sandbox_mode sandbox;
	uint64_t grace_period_ns; /* how long a workload without processes stays visible */
};

/*
 * Reads the flags in @argv. 0: go on, with @config filled. 1: --help or --version was asked for and
 * written to @out. -EINVAL: one line on @err names the flag, its value and what is expected.
 * -ENOMEM, also said. @config is untouched unless 0 is returned.
 */
int config_parse(struct config *config, int argc, char **argv, FILE *out, FILE *err);
/* One that is zeroed, or was not filled, is nothing. */
void config_free(struct config *config);

/* The collectors that are enabled, as a mask: at least one of them measures by itself. */
unsigned int config_collectors(const struct config *config);

/* The features to load: those, what they rely on, and optional ones that were asked for. */
unsigned int config_features(const struct config *config);

#endif
