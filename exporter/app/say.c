/* SPDX-License-Identifier: Apache-2.0 */
#include "app/say.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "commands/preflight.h"
#include "features/features.h"

#define SAY_BYTES 1000 /* of services named at the start */

/* "requests on (socket backend), threads on": those that are not optional, or on. */
static const char *say_measuring(const struct loader *loader, struct buffer *out)
{
	for (size_t i = 0; i < features_len; i++) {
		const struct feature_status *feature = loader_feature(loader, i);

		if (feature->supports || feature->optional)
			continue;
		buffer_printf(out, "%s%s %s", out->len ? ", " : "", feature->name,
			      feature->on ? "on" : "off");
		if (feature->on && feature->backend)
			buffer_printf(out, " (%s backend)", feature->backend);
	}
	buffer_char(out, '\0');
	return out->error ? "" : (const char *)out->data;
}

/* A feature that another one's absence keeps off is not worth a line of its own. */
static bool needs_one_that_is_off(const struct loader *loader, size_t id)
{
	const char *requires = features_table[id]->plan.requires;

	return requires && !loader_feature(loader, (size_t)features_find(requires))->on;
}

int say_features(const struct log *log, const struct loader *loader, unsigned int wanted)
{
	_cleanup_(buffer_free) struct buffer measuring = BUFFER_INIT(SAY_BYTES);
	size_t probes_len, attached = 0, useful = 0;
	const struct probe_row *probes = loader_probes(loader, &probes_len);

	for (size_t i = 0; i < probes_len; i++)
		attached += probes[i].attached;
	for (size_t id = 0; id < features_len; id++) {
		const struct feature_status *feature = loader_feature(loader, id);

		if (!feature->on && wanted & 1U << id && !needs_one_that_is_off(loader, id))
			log_warn(log, "feature %s is off: %s; %s", feature->name, feature->reason,
				 feature->remedy);
		useful += feature->on && !feature->supports;
	}
	if (!useful) {
		log_error(log, "nothing can be measured on this machine: "
			       "\"workload_exporter check\" says what to do");
		return -EOPNOTSUPP;
	}
	log_info(log, "attached %zu of %zu probes: %s", attached, probes_len,
		 say_measuring(loader, &measuring));
	return 0;
}

void say_limits(const struct log *log, const struct privileges *privileges, const char *proc_root)
{
	_cleanup_(preflight_free) struct preflight preflight = { 0 };
	struct preflight_machine machine;

	preflight_machine_read(proc_root, &machine);
	if (privileges->known)
		preflight_add_privileges(&preflight, privileges);
	preflight_add_machine(&preflight, &machine);
	for (size_t i = 0; i < preflight.rows_len; i++) {
		const struct preflight_row *row = &preflight.rows[i];

		if (!row->ok)
			log_warn(log, "%s: no: %s; %s", row->name, row->reason, row->remedy);
	}
	if (preflight.error)
		log_warn(log, "other limits of this machine: %s", strerror(-preflight.error));
}

void say_memory(const struct log *log, const struct memory_limit *limit,
		const struct quotas_fit *fit)
{
	log_info(log,
		 "memory limit of %" PRIu64 " MiB, %" PRIu64 " in use: room for %" PRIu64
		 " sockets and %" PRIu64 " threads",
		 limit->limit_bytes >> 20, limit->used_bytes >> 20, fit->max[QUOTA_SOCKETS],
		 fit->max[QUOTA_THREADS]);
}

void say_workloads(const struct log *log, const struct snapshot *snapshot)
{
	_cleanup_(buffer_free) struct buffer line = BUFFER_INIT(SAY_BYTES);
	const char *before = "";

	for (size_t i = 0; i < snapshot->endpoints_len; i++) {
		const struct endpoint_row *row = &snapshot->endpoints[i];

		if (strcmp(row->workload, before) != 0)
			buffer_printf(&line, "%s%s", i ? ", " : "", row->workload);
		buffer_printf(&line, ":%s", row->port);
		before = row->workload;
	}
	log_info(log, "watching %zu services on %zu ports: %.*s%s", snapshot->workloads_len,
		 snapshot->endpoints_len, (int)line.len, line.data ? line.data : "",
		 line.error ? " ..." : "");
}
