/* SPDX-License-Identifier: Apache-2.0 */
#include "web/checker.h"

#include <crypt.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

#define HASH_BYTES 61
#define NICENESS 10

struct checker {
	int fd;
	bool asked;
};

struct question {
	char hash[HASH_BYTES];
	char password[CHECKER_PASSWORD_BYTES + 1];
};

/* --- the process ---------------------------------------------------------------------------- */

static uint8_t question_answer(const struct question *question, struct crypt_data *data)
{
	const char *hash = crypt_r(question->password, question->hash, data);
	uint8_t different = 0;

	if (!hash || strlen(hash) != HASH_BYTES - 1)
		return 0;
	for (size_t i = 0; i < HASH_BYTES - 1; i++)
		different |= (uint8_t)(hash[i] ^ question->hash[i]);
	return !different;
}

/* The system call itself: glibc's _exit() makes exit_group of it, which strict mode forbids. */
static _Noreturn void child_end(void)
{
	for (;;)
		syscall(SYS_exit, 0);
}

static void child_close_others(int fd)
{
	if (fd > 3)
		syscall(SYS_close_range, 3U, (unsigned)fd - 1, 0U);
	syscall(SYS_close_range, (unsigned)fd + 1, ~0U, 0U);
}

/* All memory is there before the strict mode begins: nothing in it can be had. */
static _Noreturn void child_run(int fd, const struct user *user, struct crypt_data *data)
{
	struct question question;
	uint8_t answer;

	child_close_others(fd);
	setpriority(PRIO_PROCESS, 0, NICENESS);
	prctl(PR_SET_NAME, "check-password");
	if (capabilities_drop(0, user) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
		child_end();
	while (read(fd, &question, sizeof(question)) == (ssize_t)sizeof(question)) {
		question.hash[HASH_BYTES - 1] = '\0';
		question.password[CHECKER_PASSWORD_BYTES] = '\0';
		answer = question_answer(&question, data);
		explicit_bzero(&question, sizeof(question));
		if (write(fd, &answer, sizeof(answer)) != (ssize_t)sizeof(answer))
			break;
	}
	child_end();
}

/* --- its parent ----------------------------------------------------------------------------- */

static int checker_fork(int fd, const struct user *user)
{
	struct crypt_data *data = calloc(1, sizeof(*data));
	pid_t pid;

	if (!data)
		return -ENOMEM;
	pid = fork();
	if (pid == 0)
		child_run(fd, user, data);
	free(data);
	return pid < 0 ? -EAGAIN : 0;
}

int checker_start(const struct user *user, struct checker **checker)
{
	_cleanup_(cleanup_close) int ours = -1, theirs = -1;
	int ends[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	ours = ends[0];
	theirs = ends[1];
	if (fcntl(ours, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	r = checker_fork(theirs, user);
	if (r)
		return r;
	*checker = calloc(1, sizeof(**checker));
	if (!*checker)
		return -ENOMEM; /* the process sees the end of its socket, and ends */
	(*checker)->fd = TAKE_FD(ours);
	return 0;
}

void checker_stop(struct checker *checker)
{
	if (!checker)
		return;
	close(checker->fd);
	free(checker);
}

int checker_fd(const struct checker *checker)
{
	return checker->fd;
}

int checker_ask(struct checker *checker, const char *hash, const char *password)
{
	struct question question = { 0 };
	ssize_t sent;

	if (checker->asked)
		return -EBUSY;
	text_copy(question.hash, sizeof(question.hash), hash);
	text_copy(question.password, sizeof(question.password), password);
	sent = send(checker->fd, &question, sizeof(question), MSG_NOSIGNAL);
	explicit_bzero(&question, sizeof(question));
	if (sent != (ssize_t)sizeof(question))
		return -EPIPE;
	checker->asked = true;
	return 0;
}

int checker_take(struct checker *checker, bool *right)
{
	uint8_t answer;
	ssize_t received = recv(checker->fd, &answer, sizeof(answer), 0);

	if (received < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (received != (ssize_t)sizeof(answer))
		return -EPIPE;
	checker->asked = false;
	*right = answer == 1;
	return 1;
}
