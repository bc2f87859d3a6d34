/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command `workload_exporter profile WORKLOAD`: measures by itself for as long as the profile
 * takes, with the same parts and as few privileges as the exporter that serves.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sysexits.h>
#include <unistd.h>

#include "app/compare.h"
#include "app/measuring.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/command.h"
#include "base/units.h"
#include "base/utf8.h"
#include "features/profiles.h"
#include "profiles/pprof.h"
#include "profiles/report.h"

#define SEEK_NS (5 * NS_PER_S) /* for the workload: until all that run have their names */
#define SETTLE_NS (10 * NS_PER_S) /* for the code that runs here, of which nothing is known yet */
#define COLUMNS 100U /* where there is no terminal that tells */
#define NAMES_SHOWN 20U /* where the workload is not there */

/* In the order of enum profile_kind. */
static const char *const types[] = { "cpu", "offcpu", "block", "lock", "fault" };
_Static_assert(COUNT(types) == PROFILE_KINDS, "a kind of profile has no name");

struct profile_settings {
	unsigned int type;
	uint64_t seconds;
	const char *output; /* NULL: for people, on standard output */
	const char *before; /* a file that is compared with that of the operand; NULL: none */
	const char *sandbox; /* as of the exporter; NULL: its default */
	bool private_maps;
};

struct taking {
	const struct profile_settings *settings;
	const char *workload;
	struct config config;
	struct log log;
	struct measuring measuring;
	struct profiler *profiler;
	struct loop_watch signals;
	struct loop_job seek;
	uint64_t seek_until_ns;
	sigset_t ends; /* signals that end it: blocked, but where it may wait for long */
	int output;
	unsigned int columns;
	struct buffer answer;
	int exit_code;
};

/* For the file that -o names, once there is something to write. */
static const struct sandbox_call profile_calls[] = { SANDBOX_ANY(SYS_ftruncate) };
static const struct needs profile_needs = {
	.calls = profile_calls,
	.calls_len = COUNT(profile_calls),
};

static void taking_end(struct taking *taking, int exit_code)
{
	taking->exit_code = exit_code;
	loop_end(taking->measuring.loop);
}

static int exit_code_of(int error)
{
	return error == -ENOMEM ? EX_OSERR : error ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* --- the profile ---------------------------------------------------------------------------- */

static void profile_taken(void *arg, int error, const struct profile *profile)
{
	struct taking *taking = arg;

	if (profile && taking->settings->output)
		error = pprof_write_gzip(profile, &taking->answer);
	else if (profile)
		error = report_write(profile, taking->workload, taking->columns, &taking->answer);
	if (error == -E2BIG || error == -ENOBUFS)
		fputs("profile: it is too large: ask for less time\n", stderr);
	else if (error == -EIO)
		fputs("profile: the clock that samples does not start\n", stderr);
	else if (error)
		fprintf(stderr, "profile: %s\n", strerror(-error));
	taking_end(taking, exit_code_of(error));
}

static void profile_begin(struct taking *taking)
{
	const struct profiler_order order = {
		.kind = (enum profile_kind)taking->settings->type,
		.workload = taking->workload,
		.seconds = taking->settings->seconds,
		.settle_ns = SETTLE_NS,
		.taken = profile_taken,
		.arg = taking,
	};
	struct profiler_run *run;
	int r = profiler_begin(taking->profiler, &order, &run);

	fprintf(stderr, "profile: %s, for %" PRIu64 " s\n", taking->workload, order.seconds);
	if (r) {
		fprintf(stderr, "profile: %s\n", strerror(-r));
		taking_end(taking, exit_code_of(r));
	}
}

/* Names are unknown text. */
static void unknown_say(struct taking *taking)
{
	struct snapshot snapshot;
	char name[1024];

	utf8_copy(name, sizeof(name), taking->workload);
	fprintf(stderr, "profile: no workload is called \"%s\"", name);
	collector_collect(&taking->measuring.collector, features_collectors(), UINT64_MAX,
			  &snapshot);
	for (size_t i = 0; i < snapshot.workloads_len && i < NAMES_SHOWN; i++)
		fprintf(stderr, "%s%s", i ? ", " : ": there are ", snapshot.workloads[i].workload);
	fprintf(stderr, "%s\n", snapshot.workloads_len > NAMES_SHOWN ? ", ..." : "");
	taking_end(taking, EXIT_FAILURE);
}

static uint64_t seek_due_ns(const void *arg)
{
	const struct taking *taking = arg;

	if (!taking->seek_until_ns)
		return UINT64_MAX;
	return profiler_knows(taking->profiler, taking->workload) ? 0 : taking->seek_until_ns;
}

/* Once the workload has been found, or is late. */
static int seek_run(void *arg)
{
	struct taking *taking = arg;

	taking->seek_until_ns = 0;
	if (profiler_knows(taking->profiler, taking->workload))
		profile_begin(taking);
	else
		unknown_say(taking);
	return 0;
}

static void signal_came(void *arg)
{
	struct taking *taking = arg;
	struct signalfd_siginfo info;

	if (read(taking->signals.fd, &info, sizeof(info)) < 0)
		return; /* it is pending no more */
	fputs("profile: stopped before its end\n", stderr);
	taking_end(taking, EXIT_FAILURE);
}

/* --- start and end -------------------------------------------------------------------------- */

/* As the exporter, with no more than profiles need; only what is wrong is logged. */
static int config_make(struct config *config, const struct profile_settings *settings)
{
	char program[] = "workload_exporter", on[] = "--collector.profiles";
	char off[] = "--no-collector.requests", level[] = "--log.level=warn";
	char own[64] = "";
	char private_maps[] = "--profiles.private-perf-maps";
	char *argv[7] = { program, on, level };
	int argc = 3;

	if (!profile_kinds[settings->type].waits)
		argv[argc++] = off; /* which tell waits for work from others */
	if (settings->private_maps)
		argv[argc++] = private_maps;
	if (settings->sandbox) {
		snprintf(own, sizeof(own), "--security.sandbox=%s", settings->sandbox);
		argv[argc++] = own;
	}
	return config_parse(config, argc, argv, stdout, stderr);
}

/*
 * Not truncated yet: what is in it is kept until there is something better. May wait, for a reader
 * of a FIFO, and be ended by a signal.
 */
static int output_open(struct taking *taking)
{
	const char *path = taking->settings->output;

	if (!path)
		return 0;
	taking->output = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	if (taking->output < 0) {
		fprintf(stderr, "profile: cannot write %s: %s\n", path, strerror(errno));
		return -EIO;
	}
	return 0;
}

static void columns_read(struct taking *taking)
{
	struct winsize size;

	taking->columns = COLUMNS;
	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col)
		taking->columns = size.ws_col;
}

static int loop_prepare(struct taking *taking)
{
	int fd = signalfd(-1, &taking->ends, SFD_CLOEXEC | SFD_NONBLOCK);

	taking->signals = (struct loop_watch){ fd, signal_came, taking };
	taking->seek = (struct loop_job){ .due_ns = seek_due_ns, .run = seek_run, .arg = taking };
	loop_add(taking->measuring.loop, &taking->seek);
	taking->seek_until_ns = clock_monotonic_ns() + SEEK_NS;
	return fd < 0 ? -errno
		      : loop_watch(taking->measuring.loop, &taking->signals, LOOP_READABLE);
}

static int taking_start(struct taking *taking, const char *proc_root)
{
	int r = measuring_open(&taking->measuring, &taking->config, proc_root, &taking->log);

	if (!r)
		r = measuring_start(&taking->measuring);
	if (r)
		return r;
	taking->profiler = profiles_profiler(&taking->measuring.features);
	if (!taking->profiler) {
		fputs("profile: nothing can be sampled here; see workload_exporter check\n",
		      stderr);
		return -EOPNOTSUPP;
	}
	sigprocmask(SIG_UNBLOCK, &taking->ends, NULL);
	r = output_open(taking);
	sigprocmask(SIG_BLOCK, &taking->ends, NULL);
	if (r)
		return r;
	return measuring_confine(&taking->measuring,
				 taking->settings->output ? &profile_needs : NULL);
}

/* Measures, until there is an answer or none will be. Returns the exit code. */
static int taking_run(struct taking *taking, const char *proc_root)
{
	int r = taking_start(taking, proc_root);

	if (r)
		return exit_code_of(r); /* which has been said */
	r = loop_prepare(taking);
	if (!r)
		r = loop_run(taking->measuring.loop);
	if (r)
		fprintf(stderr, "profile: %s\n", strerror(-r));
	return r ? exit_code_of(r) : taking->exit_code;
}

static int answer_append(const struct taking *taking)
{
	const struct buffer *answer = &taking->answer;
	struct pollfd room = { .fd = taking->output, .events = POLLOUT };

	for (size_t done = 0; done < answer->len;) {
		ssize_t n = write(taking->output, answer->data + done, answer->len - done);

		if (n < 0 && errno != EAGAIN)
			return -errno;
		if (n < 0)
			poll(&room, 1, -1); /* others that have it open do not wait for it */
		else
			done += (size_t)n;
	}
	return 0;
}

/* What -o names is truncated first, unless it is no file of a disk. */
static int answer_write(const struct taking *taking)
{
	bool named = taking->settings->output;
	int r = 0;

	if (named && ftruncate(taking->output, 0) && errno != EINVAL)
		return -errno;
	r = answer_append(taking);
	if (named && close(taking->output) && !r)
		r = -errno; /* some file systems write only now */
	return r;
}

/* Measures, and gives back all that it takes. Returns the exit code. */
static int profile_take(struct taking *taking, const char *proc_root)
{
	int exit_code;

	sigemptyset(&taking->ends);
	sigaddset(&taking->ends, SIGINT);
	sigaddset(&taking->ends, SIGTERM);
	sigprocmask(SIG_BLOCK, &taking->ends, NULL);
	exit_code = taking_run(taking, proc_root);
	/* The reader of the answer may be slow: nothing is attached any more, and signals end it.
	 */
	measuring_stop(&taking->measuring);
	sigprocmask(SIG_UNBLOCK, &taking->ends, NULL);
	return exit_code;
}

/* Measures nothing. Returns the exit code. */
static int profiles_compare(struct taking *taking, const struct command_call *call)
{
	const struct comparing comparing = {
		.paths = { taking->settings->before, call->operand },
		.proc_root = call->proc_root,
		.sandbox = taking->config.sandbox,
	};

	if (taking->settings->output) {
		fputs("profile: --diff shows what has changed, and writes no file: leave -o out\n",
		      stderr);
		return EX_USAGE;
	}
	return exit_code_of(compare(&comparing, &taking->answer));
}

static int profile_run(const struct command_call *call)
{
	static struct taking taking = {
		.log = { .level = LOG_LEVEL_WARN },
		.answer = BUFFER_INIT(PPROF_BYTES_MAX),
		.output = STDOUT_FILENO,
		.signals = { .fd = -1 },
		.exit_code = EXIT_FAILURE,
	};
	int exit_code, r;

	taking.settings = call->settings;
	taking.workload = call->operand;
	taking.log.out = stderr;
	columns_read(&taking);
	r = config_make(&taking.config, taking.settings);
	if (r)
		return r == -EINVAL ? EX_USAGE : exit_code_of(r);
	signal(SIGPIPE, SIG_IGN);
	exit_code = taking.settings->before ? profiles_compare(&taking, call)
					    : profile_take(&taking, call->proc_root);
	r = exit_code ? 0 : answer_write(&taking);
	if (r) {
		fprintf(stderr, "profile: cannot write: %s\n", strerror(-r));
		exit_code = EX_IOERR;
	}
	cleanup_close(&taking.signals.fd);
	config_free(&taking.config);
	buffer_free(&taking.answer);
	return exit_code;
}

static const struct flag profile_flags[] = {
	COMMAND_FLAG("type", "TYPE", "cpu", FLAG_CHOICE(profile_settings, type, types),
		     "cpu, the default; offcpu (waits), block (but for a CPU), lock or fault."),
	COMMAND_FLAG("seconds", "N", "10",
		     FLAG_NUMBER_FROM(profile_settings, seconds, 1, PROFILE_SECONDS_MAX,
				      "a number from 1 to 60"),
		     "For how long, 1 to 60; 10 by default."),
	COMMAND_FLAG("output", "FILE", NULL,
		     FLAG_LETTER('o', FLAG_TEXT(profile_settings, output, "a path")),
		     "Write it to FILE, for go tool pprof, instead of showing it."),
	COMMAND_FLAG("diff", "BEFORE", NULL, FLAG_TEXT(profile_settings, before, "a file"),
		     "Measure nothing, whatever other flags say: compare BEFORE, a file that -o "
		     "has written, with a second one, in the place of WORKLOAD."),
	COMMAND_FLAG(
		"profiles.private-perf-maps", NULL, NULL,
		FLAG_SWITCH(profile_settings, private_maps),
		"As of the exporter: read names of functions also where only their owner may."),
	COMMAND_FLAG("security.sandbox", "MODE", NULL,
		     FLAG_TEXT(profile_settings, sandbox, "a mode"),
		     "As of the exporter: on, log or off."),
};

const struct command command_profile = {
	.name = "profile",
	.operand = "WORKLOAD",
	.summary = "Where a service uses CPU, waits or faults",
	.about = "Tells in which functions the service WORKLOAD spends CPU time, waits, or has "
		 "page\n"
		 "faults: the most frequent ones, and a flame graph; or writes a profile for go "
		 "tool\n"
		 "pprof. Loads what it needs by itself and removes it again: no exporter has to "
		 "run.\n"
		 "Or compares two that were written: profile --diff BEFORE AFTER.\n",
	.exit_codes = "0 the profile was taken, 1 it was not (standard error says why), 64 wrong "
		      "arguments,\n"
		      "71 out of memory, 74 the answer could not be written.\n",
	.flags = profile_flags,
	.flags_len = COUNT(profile_flags),
	.settings_bytes = sizeof(struct profile_settings),
	.run = profile_run,
};
