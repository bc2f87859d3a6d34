/* SPDX-License-Identifier: Apache-2.0 */
#include "helpers/helper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "helpers/asker.h"
#include "helpers/keeper.h"

#define START_MS 20000 /* looking the user's groups up may ask a directory service */

struct helper {
	struct asker asker;
	void *shared; /* owned; NULL: none */
};

/* --- the processes -------------------------------------------------------------------------- */

struct process {
	const struct helper_options *options;
	int questions, control;
	void *scratch; /* never freed: it lives as long as the process */
	void *shared; /* the same */
};

/* Standard error stays, for what a sanitizer has to say. */
static int descriptors_close(int one, int other)
{
	int first = one < other ? one : other, last = one < other ? other : one;
	int from = STDERR_FILENO + 1, r = 0;

	if (first > from)
		r |= close_range((unsigned int)from, (unsigned int)first - 1, 0);
	if (last > first + 1)
		r |= close_range((unsigned int)first + 1, (unsigned int)last - 1, 0);
	return r | close_range((unsigned int)last + 1, ~0U, 0) ? -errno : 0;
}

static const struct sandbox_call passing_calls[] = { HELPER_PASSING_CALLS };
static const struct sandbox_call raising_calls[] = { SANDBOX_ANY(SYS_capget),
						     SANDBOX_ANY(SYS_capset) };
static const struct needs raising = { .calls = raising_calls, .calls_len = COUNT(raising_calls) };
static const struct needs passing = { .calls = passing_calls, .calls_len = COUNT(passing_calls) };

/* What a worker may do its keeper may do as well: both filters are asked. */
static int enter(const struct process *process, enum sandbox_role role)
{
	const struct helper_options *options = process->options;
	const struct needs *needs[3] = { NULL };
	size_t len = 0;

	if (helper_passes(options->kind))
		needs[len++] = &passing;
	if (options->held)
		needs[len++] = &raising;
	return sandbox_enter(role, options->sandbox, needs);
}

static int limit(const struct process *process)
{
	const struct helper_kind *kind = process->options->kind;

	return kind->strict ? sandbox_enter_strict() : enter(process, kind->role);
}

/* For good: what is left is what the kind says. */
static int give_up(const struct process *process)
{
	const struct helper_options *options = process->options;

	if (options->kind->niceness)
		setpriority(PRIO_PROCESS, 0, options->kind->niceness);
	prctl(PR_SET_NAME, options->kind->name);
	return capabilities_drop(options->kind->capabilities, options->held, options->user);
}

static int question_answer(const struct process *process, struct helper_message *question, int fd)
{
	const struct helper_kind *kind = process->options->kind;
	struct helper_message answer = { .number = question->number };
	struct helper_work work = {
		.arg = process->options->arg,
		.scratch = process->scratch,
		.shared = process->shared,
		.held = process->options->held,
		.fd = fd,
		.answer_fd = -1,
	};
	int r;

	answer.result = kind->answer(&work, question->bytes, answer.bytes);
	explicit_bzero(question, sizeof(*question));
	r = helper_answer_send(kind, process->questions, &answer,
			       answer.result ? -1 : work.answer_fd);
	cleanup_close(&work.answer_fd);
	return r;
}

/* Until the other end is closed, or says what it should not. */
static void answer_all(const struct process *process, int confined)
{
	const struct helper_kind *kind = process->options->kind;
	struct helper_message hello = { .number = HELPER_HELLO, .result = confined }, question;
	int r = helper_answer_send(kind, process->questions, &hello, -1);

	while (!r && !confined) {
		_cleanup_(cleanup_close) int fd = -1;

		r = helper_question_receive(kind, process->questions, &question, &fd);
		if (!r)
			r = question_answer(process, &question, fd);
	}
}

/* A keeper's child, which has given up what its parent had. */
static void worker_run(void *arg)
{
	const struct process *process = arg;
	int r = descriptors_close(process->questions, process->questions);

	prctl(PR_SET_NAME, process->options->kind->worker);
	answer_all(process, r ? r : limit(process));
}

static void keeper_begin(struct process *process)
{
	int r = descriptors_close(process->questions, process->control);

	if (!r)
		r = give_up(process);
	if (!r)
		r = enter(process, SANDBOX_KEEPER);
	if (r)
		answer_all(process, r);
	else
		keeper_run(process->control, worker_run, process);
}

static void worker_begin(const struct process *process)
{
	int r = descriptors_close(process->questions, process->questions);

	if (!r)
		r = give_up(process);
	answer_all(process, r ? r : limit(process));
}

/*
 * What the parent has buffered is not ours to write, and glibc's _exit() makes exit_group of it,
 * which the strict sandbox forbids.
 */
static _Noreturn void process_end(void)
{
	for (;;)
		syscall(SYS_exit, 0);
}

static _Noreturn void process_run(struct process *process)
{
	signal(SIGPIPE, SIG_IGN);
	if (process->options->kind->worker)
		keeper_begin(process);
	else
		worker_begin(process);
	process_end();
}

/* --- the asking side ------------------------------------------------------------------------ */

int helper_ask_with(struct helper *helper, const void *question, int fd, uint64_t due_ns)
{
	return asker_ask(&helper->asker, question, fd, due_ns);
}

int helper_take_with(struct helper *helper, uint64_t now_ns, void *out, int *fd)
{
	return asker_take(&helper->asker, now_ns, out, fd);
}

int helper_take(struct helper *helper, uint64_t now_ns, void *out)
{
	_cleanup_(cleanup_close) int fd = -1;

	return asker_take(&helper->asker, now_ns, out, &fd);
}

void *helper_shared(const struct helper *helper)
{
	return helper->shared;
}

int helper_shared_clear(struct helper *helper)
{
	size_t bytes = helper->asker.kind->shared_bytes;

	return helper->shared && madvise(helper->shared, bytes, MADV_REMOVE) ? -errno : 0;
}

bool helper_is_ready(const struct helper *helper)
{
	return helper->asker.ready && !helper->asker.open;
}

uint64_t helper_due_ns(const struct helper *helper)
{
	return helper->asker.open ? helper->asker.due_ns : UINT64_MAX;
}

int helper_fd(const struct helper *helper)
{
	return helper->asker.questions;
}

bool helper_alive(const struct helper *helper)
{
	return !helper->asker.ended;
}

/* --- start and end -------------------------------------------------------------------------- */

static int hello_wait(struct asker *asker)
{
	struct pollfd ready = { .fd = asker->questions, .events = POLLIN };

	return poll(&ready, 1, START_MS) > 0 ? asker_begin(asker) : -ETIMEDOUT;
}

/* Later helpers do not inherit it: each could write the answers of the others. */
static int shared_hide(const struct helper *helper)
{
	size_t bytes = helper->asker.kind->shared_bytes;

	return helper->shared && madvise(helper->shared, bytes, MADV_DONTFORK) ? -errno : 0;
}

/* All memory is there before the process is: a strict one cannot have any. */
static int process_fork(const struct helper_options *options, const int questions[2],
			const int control[2], const struct helper *helper)
{
	struct process process = { options, questions[1], control[1], NULL, helper->shared };
	pid_t pid;

	process.scratch = calloc(1, options->kind->scratch_bytes + 1);
	if (!process.scratch)
		return -ENOMEM;
	pid = fork();
	if (!pid) {
		close(questions[0]);
		close(control[0]);
		process_run(&process);
	}
	free(process.scratch);
	return pid < 0 ? -errno : shared_hide(helper);
}

static int processes_start(const struct helper_options *options, struct helper *helper)
{
	struct asker *asker = &helper->asker;
	int questions[2], control[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, questions))
		return -errno;
	asker->questions = questions[0];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control)) {
		r = -errno;
		close(questions[1]);
		return r;
	}
	asker->control = control[0];
	r = process_fork(options, questions, control, helper);
	close(questions[1]);
	close(control[1]);
	if (!options->kind->worker) { /* there is no keeper to be told anything */
		close(asker->control);
		asker->control = -1;
	}
	return r ? r : hello_wait(asker);
}

static int shared_make(struct helper *helper)
{
	size_t bytes = helper->asker.kind->shared_bytes;
	void *shared;

	if (!bytes)
		return 0;
	shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (shared == MAP_FAILED)
		return -errno;
	helper->shared = shared;
	return 0;
}

/* One that is strict only reads and writes, and nothing could replace it. */
static bool kind_can_be(const struct helper_kind *kind)
{
	return kind->question_bytes <= HELPER_BYTES_MAX && kind->answer_bytes <= HELPER_BYTES_MAX &&
	       kind->shared_bytes <= HELPER_SHARED_MAX &&
	       !(kind->strict && (kind->worker || helper_passes(kind)));
}

int helper_start(const struct helper_options *options, struct helper **out)
{
	const struct helper_kind *kind = options->kind;
	struct helper *helper;
	int r;

	if (!kind_can_be(kind))
		return -EINVAL;
	helper = calloc(1, sizeof(*helper));
	if (!helper)
		return -ENOMEM;
	helper->asker = (struct asker){
		.kind = kind,
		.questions = -1,
		.control = -1,
	};
	r = shared_make(helper);
	if (!r)
		r = processes_start(options, helper);
	if (r)
		helper_stop(helper);
	else
		*out = helper;
	return r;
}

void helper_stop(struct helper *helper)
{
	if (!helper)
		return;
	cleanup_close(&helper->asker.questions);
	cleanup_close(&helper->asker.control);
	if (helper->shared)
		munmap(helper->shared, helper->asker.kind->shared_bytes);
	free(helper);
}
