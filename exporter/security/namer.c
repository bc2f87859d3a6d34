/* SPDX-License-Identifier: Apache-2.0 */
#include "security/namer.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"

#define COMM_BYTES 64
#define ANSWER_DEFAULT_MS 2000U
#define START_MS 20000U /* looking the user's groups up may ask a directory service */
#define NS_PER_MS 1000000ULL

struct namer {
	const char *proc_root;
	int fd;
	unsigned int answer_ms;
	uint32_t asked, answered; /* numbers of the last question and the last answer */
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
	int32_t result; /* of identity_read() */
	struct identity identity;
};

/* --- the process ---------------------------------------------------------------------------- */

/* Standard error stays, for what a sanitizer has to say. */
static int descriptors_close(int except)
{
	if (except > STDERR_FILENO + 1 &&
	    close_range(STDERR_FILENO + 1, (unsigned int)except - 1, 0))
		return -errno;
	return close_range((unsigned int)except + 1, ~0U, 0) ? -errno : 0;
}

static int process_confine(const struct namer_options *options, int fd)
{
	int r = descriptors_close(fd);

	prctl(PR_SET_NAME, "namer");
	if (!r)
		r = capabilities_drop(capabilities_of(KEEP_NAMING), options->user);
	if (!r)
		r = sandbox_enter(SANDBOX_NAMER, options->sandbox);
	return r;
}

static void process_answer(const char *proc_root, struct question *question, struct answer *answer)
{
	*answer = (struct answer){ .number = question->number };
	question->comm[COMM_BYTES - 1] = '\0';
	answer->result = identity_read(proc_root, question->pid, question->start_ns, question->comm,
				       &answer->identity);
}

/* Until the other end is closed, or says what it should not. */
static void process_run(const struct namer_options *options, int fd)
{
	struct answer answer = { .result = process_confine(options, fd) };
	struct question question;

	while (send(fd, &answer, sizeof(answer), MSG_NOSIGNAL) == sizeof(answer)) {
		ssize_t got;

		do {
			got = recv(fd, &question, sizeof(question), MSG_TRUNC);
		} while (got < 0 && errno == EINTR);
		if (got != sizeof(question))
			return;
		process_answer(options->proc_root, &question, &answer);
	}
}

/* --- those who ask -------------------------------------------------------------------------- */

/* Takes one answer if there is one: 0, -EAGAIN, or another -errno, and then it has ended. */
static int answer_take(struct namer *namer, struct answer *answer)
{
	ssize_t got = recv(namer->fd, answer, sizeof(*answer), MSG_DONTWAIT | MSG_TRUNC);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return -EAGAIN;
	if (got != sizeof(*answer)) {
		namer->ended = true;
		return -EPIPE;
	}
	namer->answered = answer->number;
	return 0;
}

/* The answer to the last question, within @wait_ms: 0, -ETIMEDOUT or -EPIPE. */
static int answer_wait(struct namer *namer, unsigned int wait_ms, struct answer *answer)
{
	uint64_t due_ns = clock_monotonic_ns() + wait_ms * NS_PER_MS, now_ns;
	int r;

	for (;;) {
		struct pollfd ready = { .fd = namer->fd, .events = POLLIN };

		r = answer_take(namer, answer);
		if (!r && answer->number == namer->asked)
			return 0;
		if (!r)
			continue; /* to an earlier question, too late */
		if (r != -EAGAIN)
			return r;
		now_ns = clock_monotonic_ns();
		if (now_ns >= due_ns)
			return -ETIMEDOUT;
		poll(&ready, 1, (int)((due_ns - now_ns) / NS_PER_MS + 1));
	}
}

static int question_send(struct namer *namer, const struct question *question)
{
	ssize_t sent = send(namer->fd, question, sizeof(*question), MSG_NOSIGNAL | MSG_DONTWAIT);

	return sent == sizeof(*question) ? 0 : -EPIPE;
}

static int namer_ask(struct namer *namer, struct question *question, struct answer *answer)
{
	int r;

	/* One that still thinks about an earlier question is not asked another. */
	if (!namer_alive(namer) || namer->asked != namer->answered)
		return -EPIPE;
	question->number = ++namer->asked;
	r = question_send(namer, question);
	return r ? r : answer_wait(namer, namer->answer_ms, answer);
}

static void identity_terminate(struct identity *identity)
{
	identity->name[sizeof(identity->name) - 1] = '\0';
	identity->exe[sizeof(identity->exe) - 1] = '\0';
	identity->runtime[sizeof(identity->runtime) - 1] = '\0';
	identity->unit[sizeof(identity->unit) - 1] = '\0';
	identity->container[sizeof(identity->container) - 1] = '\0';
}

int namer_identify(struct namer *namer, pid_t pid, uint64_t start_ns, const char *comm,
		   struct identity *out)
{
	struct question question = { .pid = pid, .start_ns = start_ns };
	struct answer answer;
	int r;

	text_copy(question.comm, sizeof(question.comm), comm ? comm : "");
	if (namer_ask(namer, &question, &answer)) {
		r = identity_read_public(namer->proc_root, pid, start_ns, comm, out);
		return r ? r : 1;
	}
	if (answer.result)
		return answer.result < 0 ? answer.result : -EPROTO;
	identity_terminate(&answer.identity);
	*out = answer.identity;
	return 0;
}

/* --- start and end -------------------------------------------------------------------------- */

static int process_fork(const struct namer_options *options, int fds[2])
{
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (!pid) {
		close(fds[0]);
		process_run(options, fds[1]);
		_exit(0); /* what the parent has buffered is not ours to write */
	}
	close(fds[1]);
	fds[1] = -1;
	return 0;
}

int namer_start(const struct namer_options *options, struct namer **out)
{
	_cleanup_(cleanup_free) struct namer *namer = NULL;
	int fds[2] = { -1, -1 }, r;
	struct answer hello;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return -errno;
	namer = calloc(1, sizeof(*namer));
	if (!namer) {
		r = -ENOMEM;
		goto close;
	}
	*namer = (struct namer){
		.proc_root = options->proc_root,
		.fd = fds[0],
		.answer_ms = options->answer_ms ? options->answer_ms : ANSWER_DEFAULT_MS,
	};
	r = process_fork(options, fds);
	if (!r)
		r = answer_wait(namer, START_MS, &hello);
	if (!r)
		r = hello.result;
	if (r)
		goto close;
	*out = TAKE_PTR(namer);
	return 0;
close:
	cleanup_close(&fds[0]);
	cleanup_close(&fds[1]);
	return r;
}

int namer_fd(const struct namer *namer)
{
	return namer->fd;
}

bool namer_alive(struct namer *namer)
{
	struct answer late;

	while (!namer->ended && !answer_take(namer, &late))
		;
	return !namer->ended;
}

void namer_stop(struct namer *namer)
{
	if (!namer)
		return;
	close(namer->fd);
	free(namer);
}
