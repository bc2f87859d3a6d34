/* SPDX-License-Identifier: Apache-2.0 */
#include "helpers/helper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "helpers/asker.h"
#include "helpers/keeper.h"

#define START_MS 20000 /* looking the user's groups up may ask a directory service */

struct helper {
	struct asker asker;
};

/* --- the processes -------------------------------------------------------------------------- */

struct process {
	const struct helper_options *options;
	int questions, control;
	void *scratch; /* never freed: it lives as long as the process */
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

static int limit(const struct helper_kind *kind, enum sandbox_mode sandbox)
{
	return kind->strict ? sandbox_enter_strict() : sandbox_enter(kind->role, sandbox, NULL);
}

/* For good: what is left is what the kind says. */
static int give_up(const struct process *process)
{
	const struct helper_options *options = process->options;

	if (options->kind->niceness)
		setpriority(PRIO_PROCESS, 0, options->kind->niceness);
	prctl(PR_SET_NAME, options->kind->name);
	return capabilities_drop(options->kind->capabilities, options->user);
}

/* Until the other end is closed, or says what it should not. */
static void answer_all(const struct process *process, int confined)
{
	const struct helper_options *options = process->options;
	const struct helper_kind *kind = options->kind;
	struct helper_message answer = { .number = HELPER_HELLO, .result = confined }, question;

	while (!helper_answer_send(kind, process->questions, &answer) && !confined &&
	       !helper_question_receive(kind, process->questions, &question)) {
		memset(&answer, 0, sizeof(answer));
		answer.number = question.number;
		answer.result = kind->answer(options->arg, process->scratch, question.bytes,
					     answer.bytes);
		explicit_bzero(&question, sizeof(question));
	}
}

/* A keeper's child, which has given up what its parent had. */
static void worker_run(void *arg)
{
	const struct process *process = arg;
	const struct helper_kind *kind = process->options->kind;
	int r = descriptors_close(process->questions, process->questions);

	prctl(PR_SET_NAME, kind->worker);
	answer_all(process, r ? r : limit(kind, process->options->sandbox));
}

static void keeper_begin(struct process *process)
{
	int r = descriptors_close(process->questions, process->control);

	if (!r)
		r = give_up(process);
	if (!r)
		r = sandbox_enter(SANDBOX_KEEPER, process->options->sandbox, NULL);
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
	answer_all(process, r ? r : limit(process->options->kind, process->options->sandbox));
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

int helper_ask(struct helper *helper, const void *question, uint64_t due_ns)
{
	return asker_ask(&helper->asker, question, due_ns);
}

int helper_take(struct helper *helper, uint64_t now_ns, void *out)
{
	return asker_take(&helper->asker, now_ns, out);
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

/* All memory is there before the process is: a strict one cannot have any. */
static int process_fork(const struct helper_options *options, const int questions[2],
			const int control[2])
{
	struct process process = { options, questions[1], control[1], NULL };
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
	return pid < 0 ? -errno : 0;
}

static int processes_start(const struct helper_options *options, struct asker *asker)
{
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
	r = process_fork(options, questions, control);
	close(questions[1]);
	close(control[1]);
	if (!options->kind->worker) /* there is no keeper to be told anything */
		cleanup_close(&asker->control);
	return r ? r : hello_wait(asker);
}

int helper_start(const struct helper_options *options, struct helper **out)
{
	const struct helper_kind *kind = options->kind;
	struct helper *helper;
	int r;

	if (kind->question_bytes > HELPER_BYTES_MAX || kind->answer_bytes > HELPER_BYTES_MAX ||
	    (kind->strict && kind->worker))
		return -EINVAL;
	helper = calloc(1, sizeof(*helper));
	if (!helper)
		return -ENOMEM;
	helper->asker = (struct asker){
		.kind = kind,
		.questions = -1,
		.control = -1,
	};
	r = processes_start(options, &helper->asker);
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
	free(helper);
}
