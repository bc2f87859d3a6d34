/* SPDX-License-Identifier: Apache-2.0 */
#include "web/checker.h"

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
#include "web/comparison.h"

#define NICENESS 10

struct checker {
	int fd;
	bool asked;
};

/* --- the process ---------------------------------------------------------------------------- */

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
	struct comparison comparison;
	uint8_t answer;

	child_close_others(fd);
	setpriority(PRIO_PROCESS, 0, NICENESS);
	prctl(PR_SET_NAME, "check-password");
	if (capabilities_drop(0, user) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
		child_end();
	while (read(fd, &comparison, sizeof(comparison)) == (ssize_t)sizeof(comparison)) {
		answer = comparison_answer(&comparison, data);
		explicit_bzero(&comparison, sizeof(comparison));
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
	struct comparison comparison;
	ssize_t sent;

	if (checker->asked)
		return -EBUSY;
	comparison_fill(&comparison, hash, password);
	sent = send(checker->fd, &comparison, sizeof(comparison), MSG_NOSIGNAL);
	explicit_bzero(&comparison, sizeof(comparison));
	if (sent != (ssize_t)sizeof(comparison))
		return -EPIPE;
	checker->asked = true;
	return 0;
}

int checker_take(struct checker *checker, bool *right)
{
	uint8_t answer = 0;
	ssize_t received = recv(checker->fd, &answer, sizeof(answer), MSG_TRUNC);

	if (received < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (comparison_read(checker->asked, &answer, received, right))
		return -EPIPE;
	checker->asked = false;
	return 1;
}
