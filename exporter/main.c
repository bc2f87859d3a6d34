/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wiring: flags, what is loaded, who is watched, and one loop that waits for scrapes, for new or
 * ended services and for signals. One thread, no polling.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "check.h"
#include "collector.h"
#include "config.h"
#include "confine.h"
#include "http/landing.h"
#include "ledger.h"
#include "loader.h"
#include "preflight.h"
#include "privileges.h"
#include "read/doorbell.h"
#include "read/kernel.h"
#include "read/mutexes.h"
#include "registry.h"
#include "scrape.h"
#include "serving.h"
#include "systemd.h"
#include "version.h"

#define EXIT_USAGE 2
#define NS_PER_MS 1000000ULL
#define REFRESH_NS (50 * NS_PER_MS) /* at least between two refreshes after rings */
#define PROC_ROOT "/proc"
#define SAY_BYTES 1000 /* of services named at start */
#define PAGE_MAX_BYTES ((size_t)64 << 20)

struct app {
	struct config config;
	struct log log;
	struct build_row build;
	struct privileges privileges;
	struct loader *loader;
	struct kernel kernel;
	struct ledger *ledger;
	struct confinement confinement;
	struct registry registry;
	struct collector collector;
	struct scrape scrape;
	struct mutexes *mutexes; /* NULL: no probes on mutexes */
	struct doorbell_reader doorbell;
	struct serving serving;
	struct systemd systemd;
	int signals;
	int epoll;
	bool rung; /* the doorbell: the registry is to be refreshed */
	uint64_t refreshed_ns; /* when it was, after a ring */
};

/* --- pages ---------------------------------------------------------------------------------- */

static bool app_collect(void *arg, unsigned int parts, uint64_t deadline_ns,
			struct snapshot *snapshot)
{
	struct app *app = arg;

	return collector_collect(&app->collector, parts, deadline_ns, snapshot);
}

static int page_done(const struct app *app, const char *name, int r)
{
	if (r)
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
	_cleanup_(buffer_free) struct buffer out = BUFFER_INIT(PAGE_MAX_BYTES);
	struct app *app = arg;
	const struct snapshot *snapshot = scrape_snapshot(&app->scrape, app->scrape.enabled,
							  request->arrived_ns, UINT64_MAX);
	int r = landing_render(snapshot, app->config.telemetry_path, &out);

	return page_done(app, "landing", r ? r : http_page_html(page, &out));
}

/* --- start ---------------------------------------------------------------------------------- */

/* Discovery is a part that need not be shown, but nothing works without the feature. */
static unsigned int features_wanted(const struct app *app)
{
	_Static_assert((int)PART_DISCOVERY == (int)FEATURE_DISCOVERY &&
			       (int)PART_REQUESTS == (int)FEATURE_REQUESTS &&
			       (int)PART_THREADS == (int)FEATURE_THREADS,
		       "a part is not the feature of its name");
	unsigned int features = config_parts_enabled(&app->config) | 1U << FEATURE_DISCOVERY;

	return app->config.mutex_probes ? features | 1U << FEATURE_MUTEX : features;
}

static const char *say_requests(const struct app *app)
{
	if (!loader_feature(app->loader, FEATURE_REQUESTS)->on)
		return "off";
	return loader_backend(app->loader) == BACKEND_SOCKET ? "on (socket backend)"
							     : "on (syscall backend)";
}

/* Says what is attached. 0 if anything can be measured. */
static int say_features(const struct app *app)
{
	size_t probes_len, attached = 0;
	const struct probe_row *probes = loader_probes(app->loader, &probes_len);
	const struct feature *discovery = loader_feature(app->loader, FEATURE_DISCOVERY);
	int useful = 0;

	for (size_t i = 0; i < probes_len; i++)
		attached += probes[i].attached;
	for (int id = 0; id < FEATURES; id++) {
		const struct feature *feature = loader_feature(app->loader, id);

		if (!feature->on && features_wanted(app) & 1U << id &&
		    (id == FEATURE_DISCOVERY || discovery->on))
			log_warn(&app->log, "feature %s is off: %s; %s", feature->name,
				 feature->reason, feature->remedy);
		useful += feature->on && id != FEATURE_DISCOVERY;
	}
	if (!useful) {
		log_error(&app->log,
			  "nothing can be measured on this machine with these privileges: "
			  "\"workload_exporter check\" tells more");
		return -EOPNOTSUPP;
	}
	log_info(&app->log, "attached %zu of %zu probes: requests %s, threads %s", attached,
		 probes_len, say_requests(app),
		 loader_feature(app->loader, FEATURE_THREADS)->on ? "on" : "off");
	return 0;
}

/* What works, but tells less than it could: in the words of the check. */
static void say_limits(const struct app *app)
{
	struct preflight preflight = { 0 };
	struct preflight_machine machine;

	preflight_machine_read(PROC_ROOT, &machine);
	if (app->privileges.known)
		preflight_add_privileges(&preflight, &app->privileges);
	preflight_add_machine(&preflight, &machine);
	for (size_t i = 0; i < preflight.rows_len; i++) {
		const struct preflight_row *row = &preflight.rows[i];

		if (!row->ok)
			log_warn(&app->log, "%s: no: %s; %s", row->name, row->reason, row->remedy);
	}
}

/* The first services with their ports, in one line: enough to see that the right ones are found. */
static void say_workloads(struct app *app)
{
	_cleanup_(buffer_free) struct buffer line = BUFFER_INIT(SAY_BYTES);
	struct snapshot snapshot;
	const char *before = "";

	app_collect(app, PARTS_ALL, UINT64_MAX, &snapshot);
	for (size_t i = 0; i < snapshot.endpoints_len; i++) {
		const struct endpoint_row *row = &snapshot.endpoints[i];

		if (strcmp(row->workload, before) != 0)
			buffer_printf(&line, "%s%s", i ? ", " : "", row->workload);
		buffer_printf(&line, ":%s", row->port);
		before = row->workload;
	}
	log_info(&app->log, "watching %zu services on %zu ports: %.*s%s", snapshot.workloads_len,
		 snapshot.endpoints_len, (int)line.len, line.data ? line.data : "",
		 line.error ? " ..." : "");
}

/* What runs already: its listeners, then their connections; threads follow in the registry. */
static int adopt_running(struct app *app)
{
	int r = loader_walk(app->loader, WALK_LISTENERS);

	if (!r)
		r = loader_walk(app->loader, WALK_CONNECTIONS);
	if (r) {
		app->kernel.lost[DROP_WALK]++;
		app->registry.listeners_owed = true;
		log_warn(&app->log, "services that run already are not found: %s", strerror(-r));
	}
	return r;
}

/* Said once per process and change: what is not observed, and why. */
static void say_mutexes(void *arg, pid_t pid, enum mutex_result result, const char *meaning)
{
	const struct app *app = arg;

	if (result == MUTEX_ATTACHED)
		log_debug(&app->log, "mutexes of process %d: %s", (int)pid, meaning);
	else
		log_warn(&app->log, "mutexes of process %d: %s", (int)pid, meaning);
}

static int mutexes_start(struct app *app)
{
	int r;

	if (!loader_feature(app->loader, FEATURE_MUTEX)->on)
		return 0;
	log_warn(&app->log, "--mutex.backend=uprobe: each pthread_mutex_lock of a watched process "
			    "costs 2 to 20 us more while the exporter runs");
	r = mutexes_new(app->loader, PROC_ROOT, say_mutexes, app, &app->mutexes);
	if (r)
		log_error(&app->log, "--mutex.backend=uprobe: %s: only waits that sleep are seen",
			  strerror(-r));
	app->collector.mutexes = app->mutexes;
	return r == -EACCES ? 0 : r;
}

static int measure_start(struct app *app)
{
	int r;

	privileges_read(PROC_ROOT, &app->privileges); /* where unknown, reasons say less */
	r = loader_new(&app->privileges, features_wanted(app), app->config.requests_backend,
		       &app->loader);
	if (r) {
		log_error(&app->log, "cannot load: %s", strerror(-r));
		return r;
	}
	r = say_features(app);
	if (r)
		return r;
	say_limits(app);
	r = kernel_open(&app->kernel, app->loader);
	if (!r)
		r = doorbell_open(&app->doorbell, app->loader);
	if (r) {
		log_error(&app->log, "cannot read what the kernel measures: %s", strerror(-r));
		return r;
	}
	app->ledger = ledger_new(app->config.grace_period_ns);
	if (!app->ledger)
		return -ENOMEM;
	registry_init(&app->registry, &app->kernel, app->ledger, app->confinement.namer);
	app->collector.kernel = &app->kernel;
	app->collector.registry = &app->registry;
	app->collector.ledger = app->ledger;
	app->collector.build = &app->build;
	app->collector.proc_root = PROC_ROOT;
	app->collector.self_hidden = app->config.self_hidden;
	app->scrape.collect = app_collect;
	app->scrape.arg = app;
	app->scrape.enabled = config_parts_enabled(&app->config);
	adopt_running(app);
	r = mutexes_start(app);
	say_workloads(app);
	return r;
}

static int server_start(struct app *app)
{
	const struct http_server_options pages = {
		.metrics = page_metrics,
		.landing = page_landing,
		.arg = app,
	};
	int r = serving_start(&app->serving, &pages);

	if (!r)
		app->collector.http_refusals = http_server_refusals(
			app->serving.server, &app->collector.http_refusals_len);
	return r;
}

/* --- the loop ------------------------------------------------------------------------------- */

static int wait_for(struct app *app, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(app->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int loop_prepare(struct app *app, const sigset_t *signals)
{
	int r;

	app->epoll = epoll_create1(EPOLL_CLOEXEC);
	app->signals = signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (app->epoll < 0 || app->signals < 0)
		return -errno;
	r = wait_for(app, app->signals);
	if (!r)
		r = wait_for(app, namer_fd(app->confinement.namer));
	if (!r)
		r = wait_for(app, doorbell_fd(&app->doorbell));
	if (!r)
		r = wait_for(app, http_server_fd(app->serving.server));
	return r;
}

/* How long the doorbell that has rung must wait: services that come and go fast share a refresh. */
static int refresh_wait_ms(const struct app *app)
{
	uint64_t now_ns = clock_monotonic_ns(), due_ns = app->refreshed_ns + REFRESH_NS;

	if (!app->rung)
		return -1;
	return now_ns >= due_ns ? 0 : (int)((due_ns - now_ns) / NS_PER_MS + 1);
}

/* Of two waits, where -1 is for ever. */
static int sooner(int one_ms, int other_ms)
{
	return one_ms < 0 || (other_ms >= 0 && other_ms < one_ms) ? other_ms : one_ms;
}

static int loop_wait_ms(struct app *app)
{
	int http_ms = http_server_timeout_ms(app->serving.server),
	    refresh_ms = refresh_wait_ms(app);

	return sooner(sooner(http_ms, refresh_ms),
		      systemd_tick(&app->systemd, clock_monotonic_ns()));
}

static void refresh_if_due(struct app *app)
{
	if (refresh_wait_ms(app) != 0)
		return;
	app->rung = false;
	app->refreshed_ns = clock_monotonic_ns();
	registry_refresh(&app->registry, app->refreshed_ns);
}

static int loop_run(struct app *app)
{
	struct epoll_event events[4];

	for (;;) {
		int n = epoll_wait(app->epoll, events, 4, loop_wait_ms(app));

		if (n < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; i < n; i++) {
			if (events[i].data.fd == app->signals)
				return 0;
			if (events[i].data.fd == doorbell_fd(&app->doorbell)) {
				doorbell_drain(&app->doorbell);
				app->rung = true;
			}
			if (events[i].data.fd == namer_fd(app->confinement.namer) &&
			    !confine_check(&app->confinement, &app->log))
				epoll_ctl(app->epoll, EPOLL_CTL_DEL, events[i].data.fd, NULL);
		}
		refresh_if_due(app);
		if (!http_server_run(app->serving.server))
			scrape_forget(&app->scrape);
	}
}

static void app_stop(struct app *app)
{
	if (app->signals >= 0)
		close(app->signals);
	if (app->epoll >= 0)
		close(app->epoll);
	serving_stop(&app->serving);
	scrape_forget(&app->scrape);
	systemd_close(&app->systemd);
	if (app->doorbell.ring)
		doorbell_close(&app->doorbell);
	mutexes_free(app->mutexes);
	ledger_free(app->ledger);
	kernel_close(&app->kernel);
	loader_free(app->loader);
	namer_stop(app->confinement.namer);
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

	r = systemd_open(&app->systemd);
	if (r)
		log_warn(&app->log, "cannot tell systemd that it is ready: %s", strerror(-r));
	/* Before anything else is loaded: an address in use should not cost a second. */
	r = serving_open(&app->serving, &app->config, &app->log);
	if (!r) {
		log_info(&app->log, "workload_exporter, version %s (branch: %s, revision: %s)",
			 VERSION, BRANCH, REVISION);
		r = confine_prepare(&app->confinement, &options, &app->log);
	}
	if (!r)
		r = measure_start(app);
	if (!r)
		r = confine_enter(&app->confinement, &app->kernel, app->mutexes, &app->log);
	if (!r)
		r = server_start(app);
	if (r)
		return r; /* which has been said */
	r = loop_prepare(app, &signals);
	if (!r) {
		systemd_notify(&app->systemd, "READY=1\nSTATUS=serving metrics");
		r = loop_run(app);
		systemd_notify(&app->systemd, "STOPPING=1");
	}
	if (r)
		log_error(&app->log, "stopping: %s", strerror(-r));
	else
		log_info(&app->log, "stopped: nothing is left attached");
	return r;
}

int main(int argc, char **argv)
{
	const char *web_config = NULL;
	static struct app app = {
		.build = { .version = VERSION,
			   .revision = REVISION,
			   .branch = BRANCH,
			   .compiler = "gcc " __VERSION__ },
		.signals = -1,
		.epoll = -1,
		.systemd = { .notify_fd = -1 },
	};
	int r;

	if (config_is_check(argc, argv))
		return check_run(argc, argv, PROC_ROOT);
	r = config_web_check_parse(&web_config, argc, argv, stdout, stderr);
	if (r)
		return r < 0 ? EX_USAGE : web_config ? serving_check(web_config) : EXIT_SUCCESS;
	r = config_parse(&app.config, argc, argv, stdout, stderr);
	if (r)
		return r > 0 ? EXIT_SUCCESS : EXIT_USAGE;
	app.log = (struct log){
		.out = stderr,
		.level = app.config.log_level,
		.format = app.config.log_format,
	};
	r = app_run(&app);
	app_stop(&app);
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}
