/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wiring: flags, what is loaded, what is watched, and what the loop waits for: scrapes, new or
 * ended services, and signals. One thread.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sysexits.h>
#include <unistd.h>

#include "app/confine.h"
#include "app/say.h"
#include "app/scrape.h"
#include "app/serving.h"
#include "app/systemd.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/memory.h"
#include "base/units.h"
#include "collect/collector.h"
#include "commands/commands.h"
#include "config/config.h"
#include "features/features.h"
#include "kernel/doorbell.h"
#include "kernel/kernel.h"
#include "kernel/loader.h"
#include "kernel/quotas.h"
#include "model/ledger.h"
#include "registry/registry.h"
#include "security/privileges.h"
#include "version.h"

#define EXIT_USAGE 2
#define REFRESH_NS (50 * NS_PER_MS) /* at least between two refreshes after rings */
#define ADOPT_NS (400 * NS_PER_MS) /* for descriptors, and for names: the rest while serving */
#define PROC_ROOT "/proc"
#define CGROUP_ROOT "/sys/fs/cgroup"

struct app {
	struct config config;
	struct log log;
	struct build_row build;
	struct privileges privileges;
	struct loader *loader;
	struct kernel kernel;
	struct features features;
	struct ledger *ledger;
	struct confinement confinement;
	struct registry registry;
	struct collector collector;
	struct scrape scrape;
	struct doorbell_reader doorbell;
	struct serving serving;
	struct systemd systemd;
	struct http_routes routes;
	struct loop *loop;
	struct loop_watch signals, namer, bell;
	bool rung; /* the doorbell: the registry is to be refreshed */
	uint64_t refreshed_ns; /* when it was, after a ring */
};

/* --- pages ---------------------------------------------------------------------------------- */

static int page_done(const struct app *app, const char *name, int r)
{
	if (r && r != -EAGAIN)
		log_error(&app->log, "cannot render the %s page: %s", name, strerror(-r));
	return r;
}

static int page_metrics(void *arg, const struct http_request *request, struct http_page *page)
{
	struct app *app = arg;

	return page_done(app, "metrics", scrape_page(&app->scrape, request, page));
}

static int page_landing(void *arg, const struct http_request *request, struct http_page *page)
{
	struct app *app = arg;

	return page_done(app, "landing", scrape_landing(&app->scrape, request, page));
}

static int page_health(void *arg, const struct http_request *request, struct http_page *page)
{
	(void)arg;
	(void)request;
	return http_page_text(page, 200, "Healthy\n");
}

/* --- start ---------------------------------------------------------------------------------- */

/* What runs already: its listeners, their names, and their connections. */
static void adopt_running(struct app *app)
{
	int r = collector_adopt(&app->collector, clock_monotonic_ns(), ADOPT_NS);

	if (r)
		log_warn(&app->log, "services that run already are not found: %s", strerror(-r));
}

static int features_load(struct app *app)
{
	struct loader_options options = {
		.privileges = &app->privileges,
		.proc_root = PROC_ROOT,
	};

	features_plan(&options, config_features(&app->config));
	memcpy(options.backends, app->config.backends, sizeof(options.backends));
	return loader_new(&options, &app->loader);
}

static int features_start(struct app *app)
{
	const struct feature_env env = {
		.kernel = &app->kernel,
		.proc_root = PROC_ROOT,
		.log = &app->log,
		.loop = app->loop,
		.registry = &app->registry,
		.ledger = app->ledger,
	};
	int r = kernel_open(&app->kernel, app->loader, PROC_ROOT);

	if (!r)
		r = features_open(&app->features, &env, app->config.settings);
	if (!r)
		r = doorbell_open(&app->doorbell, app->loader);
	if (r)
		log_error(&app->log, "cannot read what the kernel measures: %s", strerror(-r));
	return r;
}

/* Before services that run are adopted: they may be too large already. */
static void memory_bound(struct app *app)
{
	struct memory_limit limit;
	uint32_t bytes[QUOTAS];
	struct quotas_fit fit;

	if (memory_limit_read(PROC_ROOT, CGROUP_ROOT, &limit) || limit.limit_bytes == UINT64_MAX)
		return; /* there is no limit */
	features_bytes(&app->features, bytes);
	quotas_fit(&limit, bytes, &fit);
	quotas_set(&app->kernel, &fit);
	say_memory(&app->log, &limit, &fit);
}

static int measure_start(struct app *app)
{
	struct snapshot snapshot;
	int r;

	privileges_read(PROC_ROOT, &app->privileges); /* where unknown, reasons say less */
	/* libbpf reads the types of the kernel, 7 MB, for each object anew. */
	memory_return_large_blocks();
	r = features_load(app);
	memory_keep_large_blocks();
	if (r) {
		log_error(&app->log, "cannot load: %s", strerror(-r));
		return r;
	}
	r = say_features(&app->log, app->loader, config_features(&app->config));
	if (r)
		return r;
	say_limits(&app->log, &app->privileges, PROC_ROOT);
	app->ledger = ledger_new(app->config.grace_period_ns);
	if (!app->ledger)
		return -ENOMEM;
	r = features_start(app);
	if (r)
		return r;
	memory_bound(app);
	registry_init(&app->registry, &app->kernel, app->ledger, app->confinement.namer);
	app->collector.kernel = &app->kernel;
	app->collector.features = &app->features;
	app->collector.registry = &app->registry;
	app->collector.ledger = app->ledger;
	app->collector.build = &app->build;
	app->collector.proc_root = PROC_ROOT;
	app->collector.self_hidden = app->config.self_hidden;
	app->scrape.collector = &app->collector;
	app->scrape.enabled = config_collectors(&app->config);
	app->scrape.routes = &app->routes;
	adopt_running(app);
	collector_collect(&app->collector, features_collectors(), UINT64_MAX, &snapshot);
	say_workloads(&app->log, &snapshot);
	return 0;
}

/* Pages of the exporter, then those of the features that are on. */
static int routes_make(struct app *app)
{
	const struct http_route own[] = {
		{ .path = app->config.telemetry_path,
		  .title = "Metrics",
		  .page = page_metrics,
		  .arg = app },
		{ .path = "/", .page = page_landing, .arg = app },
		{ .path = HTTP_HEALTH_PATH,
		  .title = "Health",
		  .page = page_health,
		  .prompt = true,
		  .access = app->config.health_open ? HTTP_OPEN : HTTP_GUARDED },
	};
	int r = 0;

	for (size_t i = 0; !r && i < COUNT(own); i++)
		r = http_routes_add(&app->routes, &own[i]);
	if (!r)
		r = features_routes(&app->features, &app->routes);
	if (r)
		log_error(&app->log, "cannot serve all pages: %s",
			  r == -EEXIST ? "two have the same path" : strerror(-r));
	return r;
}

static int server_start(struct app *app)
{
	int r = routes_make(app);

	if (!r)
		r = serving_start(&app->serving, app->loop, &app->routes);
	if (!r)
		app->collector.http_refusals = http_server_refusals(
			app->serving.server, &app->collector.http_refusals_len);
	return r;
}

/* Before the features are opened: they may wait for something as well. */
static int loop_make(struct app *app)
{
	int r = loop_new(&app->loop);

	if (r)
		log_error(&app->log, "cannot wait for clients: %s", strerror(-r));
	return r;
}

/* --- the loop ------------------------------------------------------------------------------- */

static void stop_asked(void *arg)
{
	loop_end(((struct app *)arg)->loop);
}

static void bell_rung(void *arg)
{
	struct app *app = arg;

	doorbell_drain(&app->doorbell);
	app->rung = true;
}

static void namer_heard(void *arg)
{
	struct app *app = arg;

	collector_answered(&app->collector);
	if (!confine_check(&app->confinement, &app->log))
		loop_forget(app->loop, &app->namer);
}

/* What the doorbell, or the registry, asks for: fast ones share a refresh. */
static uint64_t refresh_due_ns(const void *arg)
{
	const struct app *app = arg;
	uint64_t due_ns = app->refreshed_ns + REFRESH_NS;
	uint64_t asked_ns = app->rung ? 0 : registry_due_ns(&app->registry);

	return asked_ns > due_ns ? asked_ns : due_ns;
}

/* A walk that failed is counted, and made again. */
static int refresh_run(void *arg)
{
	struct app *app = arg;

	app->rung = false;
	app->refreshed_ns = clock_monotonic_ns();
	collector_refresh(&app->collector, app->refreshed_ns, 0);
	return 0;
}

static uint64_t serve_due_ns(const void *arg)
{
	return http_server_due_ns(((const struct app *)arg)->serving.server);
}

static int serve_run(void *arg)
{
	struct app *app = arg;
	int waiting = http_server_run(app->serving.server);

	if (!waiting)
		scrape_forget(&app->scrape);
	return waiting < 0 ? waiting : 0;
}

static uint64_t watchdog_due_ns(const void *arg)
{
	return systemd_due_ns(&((const struct app *)arg)->systemd);
}

static int watchdog_run(void *arg)
{
	systemd_tick(&((struct app *)arg)->systemd, clock_monotonic_ns());
	return 0;
}

static int wait_for(struct app *app, struct loop_watch *watch, int fd, void (*ready)(void *arg))
{
	*watch = (struct loop_watch){ .fd = fd, .ready = ready, .arg = app };
	return loop_watch(app->loop, watch, LOOP_READABLE);
}

static int loop_prepare(struct app *app, const sigset_t *signals)
{
	static struct loop_job jobs[] = {
		{ .due_ns = refresh_due_ns, .run = refresh_run },
		{ .due_ns = serve_due_ns, .run = serve_run },
		{ .due_ns = watchdog_due_ns, .run = watchdog_run },
	};
	int fd = signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK);
	int r = fd < 0 ? -errno : wait_for(app, &app->signals, fd, stop_asked);

	if (!r)
		r = wait_for(app, &app->namer, helper_fd(namer_helper(app->confinement.namer)),
			     namer_heard);
	if (!r)
		r = wait_for(app, &app->bell, doorbell_fd(&app->doorbell), bell_rung);
	for (size_t i = 0; i < COUNT(jobs); i++) {
		jobs[i].arg = app;
		loop_add(app->loop, &jobs[i]);
	}
	return r;
}

static void app_stop(struct app *app)
{
	serving_stop(&app->serving);
	loop_free(app->loop);
	cleanup_close(&app->signals.fd);
	scrape_forget(&app->scrape);
	systemd_close(&app->systemd);
	if (app->doorbell.ring)
		doorbell_close(&app->doorbell);
	features_close(&app->features);
	ledger_free(app->ledger);
	kernel_close(&app->kernel);
	loader_free(app->loader);
	namer_stop(app->confinement.namer);
	config_free(&app->config);
}

/* One that is too low would be noticed only when no client can be served any more. */
static int descriptors_check(const struct app *app)
{
	unsigned int needed = DESCRIPTORS_NEEDED +
			      features_descriptors(config_features(&app->config));
	uint64_t limit = 0;
	int r = descriptors_reserve(needed, &limit);

	if (r)
		log_error(&app->log,
			  "only %" PRIu64 " descriptors may be open, and %u are needed: raise the "
			  "limit (ulimit -n, LimitNOFILE=)",
			  limit, needed);
	return r;
}

static int app_run(struct app *app)
{
	struct confine_options options = {
		.user = app->config.user,
		.sandbox = app->config.sandbox,
		.proc_root = PROC_ROOT,
	};
	sigset_t signals;
	int r;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN); /* files are read again by themselves */

	r = descriptors_check(app);
	if (r)
		return r;
	r = confine_find_users(&app->confinement, &options, &app->log);
	if (r)
		return r;
	r = systemd_open(&app->systemd);
	if (r)
		log_warn(&app->log, "cannot tell systemd that it is ready: %s", strerror(-r));
	/* Before anything else is loaded: an address in use should not cost a second. */
	r = serving_open(&app->serving, &app->config, &app->confinement.helper, &app->log);
	if (!r) {
		log_info(&app->log, "workload_exporter, version %s (branch: %s, revision: %s)",
			 VERSION, BRANCH, REVISION);
		r = confine_prepare(&app->confinement, &options, &app->features,
				    config_features(&app->config), &app->log);
	}
	if (!r)
		r = loop_make(app);
	if (!r)
		r = measure_start(app);
	if (!r)
		r = confine_enter(&app->confinement, &app->kernel, &app->features, &app->log);
	if (!r)
		r = server_start(app);
	if (r)
		return r; /* which has been said */
	r = loop_prepare(app, &signals);
	if (!r) {
		systemd_notify(&app->systemd, "READY=1\nSTATUS=serving metrics");
		r = loop_run(app->loop);
		systemd_notify(&app->systemd, "STOPPING=1");
	}
	if (r == -ESHUTDOWN)
		log_error(&app->log, "stopping: a listening socket was shut down by somebody else "
				     "(ss -K, or a process that shares it)");
	else if (r)
		log_error(&app->log, "stopping: %s", strerror(-r));
	else
		log_info(&app->log, "stopped: nothing is left attached");
	return r;
}

int main(int argc, char **argv)
{
	static struct app app = {
		.build = { .version = VERSION,
			   .revision = REVISION,
			   .branch = BRANCH,
			   .compiler = "gcc " __VERSION__ },
		.signals = { .fd = -1 },
		.systemd = { .notify_fd = -1 },
	};
	int r;

	if (descriptors_fill_standard())
		return EX_OSERR;
	if (commands_are_asked(argc, argv))
		return commands_run(argc, argv, PROC_ROOT, stdout, stderr);
	r = config_parse(&app.config, argc, argv, stdout, stderr);
	if (r)
		return r > 0 ? EXIT_SUCCESS : r == -EINVAL ? EXIT_USAGE : EXIT_FAILURE;
	app.log = (struct log){
		.out = stderr,
		.level = app.config.log_level,
		.format = app.config.log_format,
	};
	r = app_run(&app);
	app_stop(&app);
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}
