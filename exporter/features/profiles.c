/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles: where workloads spend their CPU time, where they wait and where memory is not there, by
 * call site (bpf/profiles.bpf.c), on pages that take a profile for as long as they are asked to;
 * and metrics of where they wait for locks. Off unless --collector.profiles.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include "base/units.h"
#include "features/profiles.h"
#include "profiles/files.h"
#include "profiles/flame.h"
#include "profiles/opener.h"
#include "profiles/page.h"
#include "profiles/parser.h"
#include "profiles/profiler.h"
#include "profiles/targets.h"
#include "security/privileges.h"

struct profiles {
	struct profiler *profiler;
	struct profile_row rows[PROFILER_ROWS]; /* what the last snapshot points to */
};

struct profiles_settings {
	bool lock_sites, private_maps;
};

static const struct flag profiles_flags[] = {
	FLAG("profiles.lock-sites", NULL, NULL, FLAG_SWITCH(profiles_settings, lock_sites),
	     "With --collector.profiles: show all the time at\n"
	     "which places in their code services wait for locks.",
	     "A function, an offset in it and its file are the label `site` of "
	     "`workload_lock_site_wait_seconds_total`."),
	FLAG("profiles.private-perf-maps", NULL, NULL, FLAG_SWITCH(profiles_settings, private_maps),
	     "With --collector.profiles: read names of functions\n"
	     "also where only their owner may, as of Python. One\n"
	     "process keeps CAP_DAC_READ_SEARCH for that.",
	     "Who may take profiles then reads them; and the process `opener` "
	     "[could read every file](#what-is-left-after-the-start)."),
};

static unsigned int profiled_entries(const struct map_sizes *sizes)
{
	return sizes->cpus * PROFILED_ROWS;
}

static void settings_check(const struct profiles_settings *settings, const struct feature_env *env)
{
	struct privileges mine = { 0 };

	if (!env->on && settings->lock_sites)
		log_warn(env->log, "--profiles.lock-sites: there are none without profiles "
				   "(--collector.profiles)");
	if (!env->on && settings->private_maps)
		log_warn(env->log, "--profiles.private-perf-maps: nothing is read without profiles "
				   "(--collector.profiles)");
	if (!env->on || !settings->private_maps)
		return;
	privileges_read(env->proc_root, &mine);
	if (!privileges_have(&mine, CAP_DAC_READ_SEARCH))
		log_warn(env->log, "--profiles.private-perf-maps: none can be read: "
				   "start with CAP_DAC_READ_SEARCH");
}

static int profiles_open(const struct feature_env *env, void **state)
{
	const struct profiles_settings *settings = env->settings;
	const struct profiler_env own = {
		.loader = env->kernel->loader,
		.registry = env->registry,
		.ledger = env->ledger,
		.loop = env->loop,
		.opener = env->helpers[0],
		.parser = env->helpers[1],
		.lock_sites = settings && settings->lock_sites,
	};
	struct profiles *profiles;
	int r;

	if (settings)
		settings_check(settings, env);
	if (!env->on)
		return -ENOENT;
	profiles = calloc(1, sizeof(*profiles));
	if (!profiles)
		return -ENOMEM;
	r = profiler_new(&own, &profiles->profiler);
	if (r)
		free(profiles);
	else
		*state = profiles;
	return r;
}

static void profiles_close(void *state)
{
	struct profiles *profiles = state;

	profiler_free(profiles->profiler);
	free(profiles);
}

static void profiles_fold(void *state, const struct retirement *retirement)
{
	struct profiles *profiles = state;

	(void)retirement;
	profiler_take(profiles->profiler);
}

static int profiles_retire(void *state, const struct retirement *retirement)
{
	struct profiles *profiles = state;

	(void)retirement;
	return profiler_take(profiles->profiler) ? -EAGAIN : 0;
}

static void profiles_show(void *state, const struct ledger *ledger, struct snapshot *snapshot)
{
	const struct profiles *profiles = state;

	(void)ledger;
	if (profiles)
		profiler_show_sites(profiles->profiler, snapshot);
}

static void profiles_show_self(void *state, struct snapshot *snapshot)
{
	struct profiles *profiles = state;

	profiler_count(profiles->profiler, profiles->rows);
	snapshot->profiles = profiles->rows;
	snapshot->profiles_len = PROFILER_ROWS;
}

static size_t profiles_maps(void *state, struct map_row rows[static FEATURE_MAPS_MAX])
{
	struct profiles *profiles = state;

	return profiler_maps(profiles->profiler, rows);
}

#define PAGE(name, kind)                                                                         \
	static int name(void *state, const struct http_request *request, struct http_page *page) \
	{                                                                                        \
		const struct profiles *profiles = state;                                         \
                                                                                                 \
		return profile_page(profiles->profiler, kind, request, page);                    \
	}
PAGE(cpu_page, PROFILE_CPU)
PAGE(offcpu_page, PROFILE_OFFCPU)
PAGE(block_page, PROFILE_BLOCK)
PAGE(mutex_page, PROFILE_LOCK)
PAGE(fault_page, PROFILE_FAULT)

static int list_page(void *state, const struct http_request *request, struct http_page *page)
{
	const struct profiles *profiles = state;

	return targets_page(profiles->profiler, request, page);
}

static const struct sandbox_call profiles_calls[] = {
	HELPER_PASSING_CALLS,
	SANDBOX_CALL(SYS_bpf, INT_IS(0, BPF_MAP_LOOKUP_AND_DELETE_BATCH)),
	SANDBOX_CALL(SYS_ioctl, INT_IS(1, PERF_EVENT_IOC_DISABLE)),
	SANDBOX_CALL(SYS_ioctl, INT_IS(1, PERF_EVENT_IOC_ENABLE)),
	SANDBOX_ANY(SYS_pidfd_open),
};

static const struct needs profiles_needs = {
	.calls = profiles_calls,
	.calls_len = COUNT(profiles_calls),
	.descriptors = 2 * FILES_MAX + 2048, /* and of three perf events for each CPU */
};

static uint64_t profiles_helper_holds(const struct helper_kind *kind, const void *settings)
{
	const struct profiles_settings *own = settings;

	return kind == &opener_kind && own->private_maps ? CAPABILITY(CAP_DAC_READ_SEARCH) : 0;
}

extern const struct feature feature_profiles;

#define PRIVATE_LATER                                                                             \
	.access = HTTP_PRIVATE, .later_ms = PROFILE_PAGE_LATE_MS, .later_max = PROFILE_PAGES_MAX, \
	.later_pool = &feature_profiles

static const struct http_route profiles_routes[] = {
	{ .path = "/debug/pprof/profile",
	  .about = "a profile of CPU time by function, for go tool pprof",
	  .page = cpu_page,
	  PRIVATE_LATER },
	{ .path = "/debug/pprof/offcpu",
	  .about = "a profile of waits by function, but of those for work",
	  .page = offcpu_page,
	  PRIVATE_LATER },
	{ .path = "/debug/pprof/block",
	  .about = "the same without waits for a CPU",
	  .page = block_page,
	  PRIVATE_LATER },
	{ .path = "/debug/pprof/mutex",
	  .about = "a profile of waits for locks",
	  .page = mutex_page,
	  PRIVATE_LATER },
	{ .path = "/debug/pprof/fault",
	  .about = "a profile of page faults",
	  .page = fault_page,
	  PRIVATE_LATER },
	{ .path = "/debug/targets",
	  .about = "the workloads as targets of profiles, for service discovery",
	  .page = list_page,
	  .access = HTTP_PRIVATE },
	{ .path = "/flame",
	  .about = "takes a profile and draws it",
	  .title = "Flame graphs",
	  .page = flame_page,
	  .access = HTTP_PRIVATE },
	{ .path = "/flame.css",
	  .about = "the style of that page",
	  .page = flame_style,
	  .access = HTTP_PRIVATE },
	{ .path = "/flame.js",
	  .about = "its script",
	  .page = flame_script,
	  .access = HTTP_PRIVATE },
};

const struct feature feature_profiles = {
	.plan = {
		.name = "profiles",
		.requires = "threads",
		.optional = true,
		.supports = true,
		.backends = { { .object = "profiles" } },
		.walks = { { "profiles_waits", WALK_LASTING } },
		.perf = { { "profiles_sample", PERF_CLOCK, 0 },
			  { "profiles_minor", PERF_MINOR_FAULTS, MINOR_FAULTS_EACH },
			  { "profiles_major", PERF_MAJOR_FAULTS, 1 } },
		.maps = { { "profiled", profiled_entries } },
	},
	.collector = true,
	.hint = "off unless asked for",
	.flags = profiles_flags,
	.flags_len = COUNT(profiles_flags),
	.settings_bytes = sizeof(struct profiles_settings),
	.routes = profiles_routes,
	.routes_len = COUNT(profiles_routes),
	.helpers = { &opener_kind, &parser_kind },
	.helper_holds = profiles_helper_holds,
	.open = profiles_open,
	.close = profiles_close,
	.show = profiles_show,
	.show_self = profiles_show_self,
	.maps = profiles_maps,
	.fold = profiles_fold,
	.retire = profiles_retire,
	.needs = &profiles_needs,
};

struct profiler *profiles_profiler(const struct features *features)
{
	const struct profiles *profiles =
		features->states[features_find(feature_profiles.plan.name)];

	return profiles ? profiles->profiler : NULL;
}
