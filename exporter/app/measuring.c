/* SPDX-License-Identifier: Apache-2.0 */
#include "app/measuring.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "app/say.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/memory.h"
#include "base/units.h"
#include "kernel/quotas.h"

#define REFRESH_NS (50 * NS_PER_MS) /* at least between two refreshes after rings */
#define ADOPT_NS (400 * NS_PER_MS) /* for descriptors, and for names: the rest in the loop */
#define CGROUP_ROOT "/sys/fs/cgroup"

/* --- the loop ------------------------------------------------------------------------------- */

static void bell_rung(void *arg)
{
	struct measuring *measuring = arg;

	doorbell_drain(&measuring->doorbell);
	measuring->rung = true;
}

static void namer_heard(void *arg)
{
	struct measuring *measuring = arg;

	collector_answered(&measuring->collector);
	if (!confine_check(&measuring->confinement, measuring->log))
		loop_forget(measuring->loop, &measuring->namer);
}

/* What the doorbell, or the registry, asks for: fast ones share a refresh. */
static uint64_t refresh_due_ns(const void *arg)
{
	const struct measuring *measuring = arg;
	uint64_t due_ns = measuring->refreshed_ns + REFRESH_NS;
	uint64_t asked_ns = measuring->rung ? 0 : registry_due_ns(&measuring->registry);

	return asked_ns > due_ns ? asked_ns : due_ns;
}

/* A walk that failed is counted, and made again. */
static int refresh_run(void *arg)
{
	struct measuring *measuring = arg;

	measuring->rung = false;
	measuring->refreshed_ns = clock_monotonic_ns();
	collector_refresh(&measuring->collector, measuring->refreshed_ns, 0);
	return 0;
}

static int loop_prepare(struct measuring *measuring)
{
	struct helper *namer = namer_helper(measuring->confinement.namer);
	int r;

	measuring->namer = (struct loop_watch){ helper_fd(namer), namer_heard, measuring };
	measuring->bell = (struct loop_watch){ doorbell_fd(&measuring->doorbell), bell_rung,
					       measuring };
	measuring->refresh =
		(struct loop_job){ .due_ns = refresh_due_ns, .run = refresh_run, .arg = measuring };
	loop_add(measuring->loop, &measuring->refresh);
	r = loop_watch(measuring->loop, &measuring->namer, LOOP_READABLE);
	if (!r)
		r = loop_watch(measuring->loop, &measuring->bell, LOOP_READABLE);
	if (r)
		log_error(measuring->log, "cannot wait for services: %s", strerror(-r));
	return r;
}

/* --- start ---------------------------------------------------------------------------------- */

/* One that is too low would be noticed only when no client can be served any more. */
static int descriptors_check(const struct measuring *measuring)
{
	unsigned int needed = DESCRIPTORS_NEEDED +
			      features_descriptors(config_features(measuring->config));
	uint64_t limit = 0;
	int r = descriptors_reserve(needed, &limit);

	if (r)
		log_error(measuring->log,
			  "only %" PRIu64 " descriptors may be open, and %u are needed: raise the "
			  "limit (ulimit -n, LimitNOFILE=)",
			  limit, needed);
	return r;
}

int measuring_open(struct measuring *measuring, const struct config *config, const char *proc_root,
		   const struct log *log)
{
	int r;

	measuring->config = config;
	measuring->log = log;
	measuring->confine = (struct confine_options){
		.user = config->user,
		.sandbox = config->sandbox,
		.proc_root = proc_root,
		.settings = config->settings,
	};
	r = descriptors_check(measuring);
	if (!r)
		r = confine_find_users(&measuring->confinement, &measuring->confine, log);
	return r;
}

static int features_load(struct measuring *measuring)
{
	struct loader_options options = {
		.privileges = &measuring->privileges,
		.proc_root = measuring->confine.proc_root,
	};
	unsigned int wanted = config_features(measuring->config);
	int r;

	features_plan(&options, wanted);
	memcpy(options.backends, measuring->config->backends, sizeof(options.backends));
	/* libbpf reads the types of the kernel, 7 MB, for each object anew. */
	memory_return_large_blocks();
	r = loader_new(&options, &measuring->loader);
	memory_keep_large_blocks();
	if (r) {
		log_error(measuring->log, "cannot load: %s", strerror(-r));
		return r;
	}
	return say_features(measuring->log, measuring->loader, wanted);
}

static int features_start(struct measuring *measuring)
{
	const struct feature_env env = {
		.kernel = &measuring->kernel,
		.proc_root = measuring->confine.proc_root,
		.log = measuring->log,
		.loop = measuring->loop,
		.registry = &measuring->registry,
		.ledger = measuring->ledger,
	};
	int r = kernel_open(&measuring->kernel, measuring->loader, env.proc_root);

	if (!r)
		r = features_open(&measuring->features, &env, measuring->config->settings);
	if (!r)
		r = doorbell_open(&measuring->doorbell, measuring->loader);
	if (r)
		log_error(measuring->log, "cannot read what the kernel measures: %s", strerror(-r));
	return r;
}

/* Before services that run are adopted: they may be too large already. */
static void memory_bound(struct measuring *measuring)
{
	struct memory_limit limit;
	uint32_t bytes[QUOTAS];
	struct quotas_fit fit = { .max = { [QUOTA_SOCKETS] = SOCKETS_MOST } };

	quotas_set(&measuring->kernel, &fit);
	if (memory_limit_read(measuring->confine.proc_root, CGROUP_ROOT, &limit) ||
	    limit.limit_bytes == UINT64_MAX)
		return; /* there is no limit */
	features_bytes(&measuring->features, bytes);
	quotas_fit(&limit, bytes, &fit);
	quotas_set(&measuring->kernel, &fit);
	say_memory(measuring->log, &limit, &fit);
}

/* What runs already: its listeners, their names, and their connections. */
static void adopt_running(struct measuring *measuring)
{
	struct collector *collector = &measuring->collector;
	int r;

	registry_init(&measuring->registry, &measuring->kernel, measuring->ledger,
		      measuring->confinement.namer);
	collector->kernel = &measuring->kernel;
	collector->features = &measuring->features;
	collector->registry = &measuring->registry;
	collector->ledger = measuring->ledger;
	collector->proc_root = measuring->confine.proc_root;
	r = collector_adopt(collector, clock_monotonic_ns(), ADOPT_NS);
	if (r)
		log_warn(measuring->log, "services that run already are not found: %s",
			 strerror(-r));
}

int measuring_start(struct measuring *measuring)
{
	int r = confine_prepare(&measuring->confinement, &measuring->confine, &measuring->features,
				config_features(measuring->config), measuring->log);

	if (r)
		return r;
	r = loop_new(&measuring->loop);
	if (r) {
		log_error(measuring->log, "cannot wait for anything: %s", strerror(-r));
		return r;
	}
	/* Where they are unknown, reasons say less. */
	privileges_read(measuring->confine.proc_root, &measuring->privileges);
	r = features_load(measuring);
	if (r)
		return r;
	say_limits(measuring->log, &measuring->privileges, measuring->confine.proc_root);
	measuring->ledger = ledger_new(measuring->config->grace_period_ns);
	if (!measuring->ledger) {
		log_error(measuring->log, "no memory for what is measured");
		return -ENOMEM;
	}
	r = features_start(measuring);
	if (r)
		return r;
	memory_bound(measuring);
	adopt_running(measuring);
	return loop_prepare(measuring);
}

int measuring_confine(struct measuring *measuring, const struct needs *own)
{
	return confine_enter(&measuring->confinement, &measuring->kernel, &measuring->features, own,
			     measuring->log);
}

void measuring_stop(struct measuring *measuring)
{
	loop_free(measuring->loop);
	if (measuring->doorbell.ring)
		doorbell_close(&measuring->doorbell);
	features_close(&measuring->features);
	ledger_free(measuring->ledger);
	kernel_close(&measuring->kernel);
	loader_free(measuring->loader);
	namer_stop(measuring->confinement.namer);
}
