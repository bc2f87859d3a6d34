/* SPDX-License-Identifier: Apache-2.0 */
#include "security/namer.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "security/asker.h"
#include "security/keeper.h"
#include "security/messages.h"

#define START_MS 20000 /* looking the user's groups up may ask a directory service */

struct namer {
	const char *proc_root;
	struct asker asker;
};

/* --- the processes -------------------------------------------------------------------------- */

struct process {
	const struct namer_options *options;
	int questions, control;
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

static void reader_answer(const char *proc_root, const struct namer_question *question,
			  struct namer_answer *answer)
{
	*answer = (struct namer_answer){ .number = question->number };
	answer->result = identity_read(proc_root, question->pid, question->start_ns, question->comm,
				       &answer->identity);
}

static int reader_confine(const struct process *process)
{
	int r = descriptors_close(process->questions, process->questions);

	prctl(PR_SET_NAME, "namer-reader");
	return r ? r : sandbox_enter(SANDBOX_NAMER, process->options->sandbox, NULL);
}

/* Until the other end is closed, or says what it should not. */
static void reader_run(void *arg)
{
	const struct process *process = arg;
	struct namer_answer answer = { .number = NAMER_HELLO, .result = reader_confine(process) };
	struct namer_question question;

	while (!namer_answer_send(process->questions, &answer) &&
	       !namer_question_receive(process->questions, &question))
		reader_answer(process->options->proc_root, &question, &answer);
}

static int keeper_confine(const struct process *process)
{
	const struct namer_options *options = process->options;
	int r = descriptors_close(process->questions, process->control);

	prctl(PR_SET_NAME, "namer");
	if (!r)
		r = capabilities_drop(capabilities_of(KEEP_NAMING), options->user);
	if (!r)
		r = sandbox_enter(SANDBOX_KEEPER, options->sandbox, NULL);
	return r;
}

static void process_run(struct process *process)
{
	struct namer_answer refusal = { .number = NAMER_HELLO, .result = keeper_confine(process) };

	if (refusal.result)
		namer_answer_send(process->questions, &refusal);
	else
		keeper_run(process->control, reader_run, process);
}

/* --- the asking side ------------------------------------------------------------------------ */

int namer_ask(struct namer *namer, pid_t pid, uint64_t start_ns, const char *comm, uint64_t due_ns)
{
	return asker_ask(&namer->asker, pid, start_ns, comm, due_ns);
}

int namer_take(struct namer *namer, uint64_t now_ns, struct identity *out)
{
	return asker_take(&namer->asker, now_ns, out);
}

int namer_read_public(const struct namer *namer, pid_t pid, uint64_t start_ns, const char *comm,
		      struct identity *out)
{
	return identity_read_public(namer->proc_root, pid, start_ns, comm, out);
}

bool namer_is_ready(const struct namer *namer)
{
	return namer->asker.ready && !namer->asker.open;
}

uint64_t namer_due_ns(const struct namer *namer)
{
	return namer->asker.open ? namer->asker.due_ns : UINT64_MAX;
}

int namer_fd(const struct namer *namer)
{
	return namer->asker.questions;
}

bool namer_alive(const struct namer *namer)
{
	return !namer->asker.ended;
}

/* --- start and end -------------------------------------------------------------------------- */

static int hello_wait(struct asker *asker)
{
	struct pollfd ready = { .fd = asker->questions, .events = POLLIN };

	return poll(&ready, 1, START_MS) > 0 ? asker_begin(asker) : -ETIMEDOUT;
}

static int process_fork(const struct namer_options *options, const int questions[2],
			const int control[2])
{
	struct process process = { options, questions[1], control[1] };
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (pid)
		return 0;
	close(questions[0]);
	close(control[0]);
	process_run(&process);
	_exit(0); /* what the parent has buffered is not ours to write */
}

static int processes_start(const struct namer_options *options, struct asker *asker)
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
	return r ? r : hello_wait(asker);
}

int namer_start(const struct namer_options *options, struct namer **out)
{
	struct namer *namer = calloc(1, sizeof(*namer));
	int r;

	if (!namer)
		return -ENOMEM;
	*namer = (struct namer){
		.proc_root = options->proc_root,
		.asker = { .questions = -1, .control = -1 },
	};
	r = processes_start(options, &namer->asker);
	if (r)
		namer_stop(namer);
	else
		*out = namer;
	return r;
}

void namer_stop(struct namer *namer)
{
	if (!namer)
		return;
	cleanup_close(&namer->asker.questions);
	cleanup_close(&namer->asker.control);
	free(namer);
}
