/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wiring: flags, what measures, what serves, and what the loop waits for besides: clients and
 * signals. One thread.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sysexits.h>

#include "app/measuring.h"
#include "app/say.h"
#include "app/scrape.h"
#include "app/serving.h"
#include "app/systemd.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/units.h"
#include "commands/commands.h"
#include "config/config.h"
#include "version.h"

#define EXIT_USAGE 2
#define PROC_ROOT "/proc"

struct app {
	struct config config;
	struct log log;
	struct build_row build;
	struct measuring measuring;
	struct scrape scrape;
	struct serving serving;
	struct systemd systemd;
	struct http_routes routes;
	struct loop_watch signals;
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

/* What is told of what is measured; the first snapshot is for the log. */
static void scrape_start(struct app *app)
{
	struct collector *collector = &app->measuring.collector;
	struct snapshot snapshot;

	collector->build = &app->build;
	collector->self_hidden = app->config.self_hidden;
	app->scrape.collector = collector;
	app->scrape.enabled = config_collectors(&app->config);
	app->scrape.routes = &app->routes;
	collector_collect(collector, features_collectors(), UINT64_MAX, &snapshot);
	say_workloads(&app->log, &snapshot);
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
		r = features_routes(&app->measuring.features, &app->routes);
	if (r)
		log_error(&app->log, "cannot serve all pages: %s",
			  r == -EEXIST ? "two have the same path" : strerror(-r));
	return r;
}

static int server_start(struct app *app)
{
	struct collector *collector = &app->measuring.collector;
	int r = routes_make(app);

	if (!r)
		r = serving_start(&app->serving, app->measuring.loop, &app->routes);
	if (!r)
		collector->http_refusals = http_server_refusals(app->serving.server,
								&collector->http_refusals_len);
	return r;
}

/* --- the loop ------------------------------------------------------------------------------- */

static void stop_asked(void *arg)
{
	loop_end(((struct app *)arg)->measuring.loop);
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

static int loop_prepare(struct app *app, const sigset_t *signals)
{
	static struct loop_job jobs[] = {
		{ .due_ns = serve_due_ns, .run = serve_run },
		{ .due_ns = watchdog_due_ns, .run = watchdog_run },
	};
	int fd = signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK);

	app->signals = (struct loop_watch){ fd, stop_asked, app };
	for (size_t i = 0; i < COUNT(jobs); i++) {
		jobs[i].arg = app;
		loop_add(app->measuring.loop, &jobs[i]);
	}
	return fd < 0 ? -errno : loop_watch(app->measuring.loop, &app->signals, LOOP_READABLE);
}

static void app_stop(struct app *app)
{
	serving_stop(&app->serving);
	scrape_forget(&app->scrape);
	measuring_stop(&app->measuring);
	cleanup_close(&app->signals.fd);
	systemd_close(&app->systemd);
	config_free(&app->config);
}

static int app_start(struct app *app)
{
	int r = measuring_open(&app->measuring, &app->config, PROC_ROOT, &app->log);

	if (r)
		return r;
	r = systemd_open(&app->systemd);
	if (r)
		log_warn(&app->log, "cannot tell systemd that it is ready: %s", strerror(-r));
	/* Before anything else is loaded: an address in use should not cost a second. */
	r = serving_open(&app->serving, &app->config, &app->measuring.confinement.helper,
			 &app->log);
	if (r)
		return r;
	log_info(&app->log, "workload_exporter, version %s (branch: %s, revision: %s)", VERSION,
		 BRANCH, REVISION);
	r = measuring_start(&app->measuring);
	if (r)
		return r;
	scrape_start(app);
	r = measuring_confine(&app->measuring, NULL);
	return r ? r : server_start(app);
}

static int app_run(struct app *app)
{
	sigset_t signals;
	int r;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN); /* files are read again by themselves */
	r = app_start(app);
	if (r)
		return r; /* which has been said */
	r = loop_prepare(app, &signals);
	if (!r) {
		systemd_notify(&app->systemd, "READY=1\nSTATUS=serving metrics");
		r = loop_run(app->measuring.loop);
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
