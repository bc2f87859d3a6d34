/* SPDX-License-Identifier: Apache-2.0 */
#include "helpers/keeper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define AGAIN_MS 100 /* between a child that ended by itself, or could not start, and the next */

enum { CONTROL, CHILDREN, PLACES = CHILDREN + KEEPER_CHILDREN_MAX };

/* Places: the control socket, and a pidfd for each child that has not ended; -1: free. */
struct keeper {
	struct pollfd places[PLACES];
	int current; /* the place of the child that is not told to end; 0: there is none */
};

static void child_begin(pid_t parent, void (*run)(void *arg), void *arg)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent)
		run(arg);
	_exit(0); /* what the parent has buffered is not ours to write */
}

static int place_find(const struct keeper *keeper)
{
	for (int i = CHILDREN; i < PLACES; i++)
		if (keeper->places[i].fd < 0)
			return i;
	return -1;
}

static void child_start(struct keeper *keeper, void (*run)(void *arg), void *arg)
{
	int place = place_find(keeper), fd;
	pid_t parent = getpid(), pid;

	pid = place < 0 ? -1 : fork();
	if (pid < 0)
		return;
	if (!pid)
		child_begin(parent, run, arg);
	/* It is ours until it has been waited for: the number is no other's. */
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		_exit(1); /* a child that cannot be ended must not be: it ends with us */
	keeper->places[place].fd = fd;
	keeper->current = place;
}

/* It may take its time. */
static void child_kill(struct keeper *keeper)
{
	if (keeper->current)
		syscall(SYS_pidfd_send_signal, keeper->places[keeper->current].fd, SIGKILL, NULL,
			0);
	keeper->current = 0;
}

/* Returns whether the one that has ended is the one that should not. */
static bool children_bury(struct keeper *keeper)
{
	bool missed = false;

	for (int i = CHILDREN; i < PLACES; i++) {
		siginfo_t info;

		if (keeper->places[i].fd < 0 || !keeper->places[i].revents)
			continue;
		waitid(P_PIDFD, (id_t)keeper->places[i].fd, &info, WEXITED);
		close(keeper->places[i].fd);
		keeper->places[i].fd = -1;
		missed |= keeper->current == i;
	}
	if (missed)
		keeper->current = 0;
	return missed;
}

/* Whether the keeper is to go on. */
static bool control_take(struct keeper *keeper)
{
	ssize_t got;
	char byte;

	if (!keeper->places[CONTROL].revents)
		return true;
	got = recv(keeper->places[CONTROL].fd, &byte, 1, MSG_DONTWAIT);
	if (got == 1)
		child_kill(keeper);
	return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

void keeper_run(int fd, void (*run)(void *arg), void *arg)
{
	struct keeper keeper = { .places[CONTROL] = { .fd = fd, .events = POLLIN } };
	bool on = true;

	for (int i = CHILDREN; i < PLACES; i++)
		keeper.places[i] = (struct pollfd){ .fd = -1, .events = POLLIN };
	while (on) {
		if (!keeper.current)
			child_start(&keeper, run, arg);
		if (poll(keeper.places, PLACES, keeper.current ? -1 : AGAIN_MS) <= 0)
			continue;
		on = control_take(&keeper);
		if (children_bury(&keeper))
			poll(NULL, 0, AGAIN_MS);
	}
	child_kill(&keeper);
}
