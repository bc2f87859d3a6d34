/* SPDX-License-Identifier: Apache-2.0 */
#include "security/namer.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "security/keeper.h"

#define COMM_BYTES 64
#define START_MS 20000 /* looking the user's groups up may ask a directory service */

/* The number of an answer that nobody has asked for: a reader is ready. */
#define HELLO 0U

struct namer {
	const char *proc_root;
	int questions, control; /* sockets; -1: none */
	uint32_t asked; /* number of the last question; never HELLO */
	bool ready; /* there is a reader */
	bool open; /* the last question has no answer yet */
	uint64_t due_ns; /* of that one */
	bool ended;
};

/* One datagram each; texts may lack their ends where they come in. */
struct question {
	uint32_t number; /* repeated in the answer */
	int32_t pid;
	uint64_t start_ns;
	char comm[COMM_BYTES];
};

struct answer {
	uint32_t number;
	int32_t result; /* of identity_read(); of HELLO: why there is no reader */
	struct identity identity;
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

static bool answer_send(int fd, const struct answer *answer)
{
	return send(fd, answer, sizeof(*answer), MSG_NOSIGNAL) == sizeof(*answer);
}

static void reader_answer(const char *proc_root, struct question *question, struct answer *answer)
{
	*answer = (struct answer){ .number = question->number };
	question->comm[COMM_BYTES - 1] = '\0';
	answer->result = identity_read(proc_root, question->pid, question->start_ns, question->comm,
				       &answer->identity);
}

static int reader_confine(const struct process *process)
{
	int r = descriptors_close(process->questions, process->questions);

	prctl(PR_SET_NAME, "namer-reader");
	return r ? r : sandbox_enter(SANDBOX_NAMER, process->options->sandbox);
}

/* Until the other end is closed, or says what it should not. */
static void reader_run(void *arg)
{
	const struct process *process = arg;
	struct answer answer = { .number = HELLO, .result = reader_confine(process) };
	struct question question;

	while (answer_send(process->questions, &answer)) {
		ssize_t got;

		do {
			got = recv(process->questions, &question, sizeof(question), MSG_TRUNC);
		} while (got < 0 && errno == EINTR);
		if (got != sizeof(question))
			return;
		reader_answer(process->options->proc_root, &question, &answer);
	}
}

static int keeper_confine(const struct process *process)
{
	const struct namer_options *options = process->options;
	int r = descriptors_close(process->questions, process->control);

	prctl(PR_SET_NAME, "namer");
	if (!r)
		r = capabilities_drop(capabilities_of(KEEP_NAMING), options->user);
	if (!r)
		r = sandbox_enter(SANDBOX_KEEPER, options->sandbox);
	return r;
}

static void process_run(struct process *process)
{
	struct answer refusal = { .number = HELLO, .result = keeper_confine(process) };

	if (refusal.result)
		answer_send(process->questions, &refusal);
	else
		keeper_run(process->control, reader_run, process);
}

/* --- those who ask -------------------------------------------------------------------------- */

static int namer_end(struct namer *namer)
{
	namer->ended = true;
	namer->ready = false;
	namer->open = false;
	return -EPIPE;
}

static void identity_terminate(struct identity *identity)
{
	identity->name[sizeof(identity->name) - 1] = '\0';
	identity->exe[sizeof(identity->exe) - 1] = '\0';
	identity->runtime[sizeof(identity->runtime) - 1] = '\0';
	identity->unit[sizeof(identity->unit) - 1] = '\0';
	identity->container[sizeof(identity->container) - 1] = '\0';
	identity->user[sizeof(identity->user) - 1] = '\0';
}

/* 0, -EAGAIN if there is none, -EPIPE. */
static int answer_receive(struct namer *namer, struct answer *answer)
{
	ssize_t got = recv(namer->questions, answer, sizeof(*answer), MSG_DONTWAIT | MSG_TRUNC);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return -EAGAIN;
	return got == sizeof(*answer) ? 0 : namer_end(namer);
}

/* The reader may come back from where it hangs, and answer: the number tells. */
static int reader_replace(struct namer *namer)
{
	namer->open = false;
	namer->ready = false;
	if (send(namer->control, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
		return namer_end(namer);
	return -ETIMEDOUT;
}

static int answer_accept(struct answer *answer, struct identity *out)
{
	if (answer->result)
		return answer->result < 0 ? answer->result : -EPROTO;
	identity_terminate(&answer->identity);
	*out = answer->identity;
	return 0;
}

int namer_take(struct namer *namer, uint64_t now_ns, struct identity *out)
{
	struct answer answer;
	bool was_open;
	int r;

	if (namer->ended)
		return -EPIPE;
	while (!(r = answer_receive(namer, &answer))) {
		was_open = namer->open;
		if (answer.number != HELLO && (!was_open || answer.number != namer->asked))
			continue; /* too late */
		namer->open = false;
		if (answer.number != HELLO)
			return answer_accept(&answer, out);
		namer->ready = !answer.result;
		if (was_open)
			return -ETIMEDOUT;
	}
	if (r == -EAGAIN && namer->open && now_ns >= namer->due_ns)
		r = reader_replace(namer);
	return r;
}

int namer_ask(struct namer *namer, pid_t pid, uint64_t start_ns, const char *comm, uint64_t due_ns)
{
	struct question question = { .pid = pid, .start_ns = start_ns };

	if (namer->ended)
		return -EPIPE;
	if (namer->open || !namer->ready)
		return -EBUSY;
	text_copy(question.comm, sizeof(question.comm), comm ? comm : "");
	do {
		question.number = ++namer->asked;
	} while (question.number == HELLO);
	if (send(namer->questions, &question, sizeof(question), MSG_NOSIGNAL | MSG_DONTWAIT) !=
	    sizeof(question))
		return namer_end(namer);
	namer->open = true;
	namer->due_ns = due_ns;
	return 0;
}

int namer_read_public(const struct namer *namer, pid_t pid, uint64_t start_ns, const char *comm,
		      struct identity *out)
{
	return identity_read_public(namer->proc_root, pid, start_ns, comm, out);
}

bool namer_is_ready(const struct namer *namer)
{
	return namer->ready && !namer->open;
}

uint64_t namer_due_ns(const struct namer *namer)
{
	return namer->open ? namer->due_ns : UINT64_MAX;
}

int namer_fd(const struct namer *namer)
{
	return namer->questions;
}

bool namer_alive(const struct namer *namer)
{
	return !namer->ended;
}

/* --- start and end -------------------------------------------------------------------------- */

static int hello_wait(struct namer *namer)
{
	struct pollfd ready = { .fd = namer->questions, .events = POLLIN };
	struct answer hello;
	int r;

	if (poll(&ready, 1, START_MS) <= 0)
		return -ETIMEDOUT;
	r = answer_receive(namer, &hello);
	if (!r)
		r = hello.result;
	namer->ready = !r;
	return r;
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

static int processes_start(const struct namer_options *options, struct namer *namer)
{
	int questions[2], control[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, questions))
		return -errno;
	namer->questions = questions[0];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control)) {
		r = -errno;
		close(questions[1]);
		return r;
	}
	namer->control = control[0];
	r = process_fork(options, questions, control);
	close(questions[1]);
	close(control[1]);
	return r ? r : hello_wait(namer);
}

int namer_start(const struct namer_options *options, struct namer **out)
{
	struct namer *namer = calloc(1, sizeof(*namer));
	int r;

	if (!namer)
		return -ENOMEM;
	*namer = (struct namer){
		.proc_root = options->proc_root,
		.questions = -1,
		.control = -1,
	};
	r = processes_start(options, namer);
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
	cleanup_close(&namer->questions);
	cleanup_close(&namer->control);
	free(namer);
}
