// SPDX-License-Identifier: Apache-2.0
/*
 * A server that plays a script on every connection, one thread (talker-N) each, so that a test
 * decides about every single call on the socket.
 *
 * --script is a list of steps, separated by commas:
 *   read:N       read exactly N bytes, in as many calls as it takes
 *   once:N       one call that reads at most N bytes
 *   peek         wait for bytes with MSG_PEEK and leave them
 *   splice:N     move exactly N bytes into a pipe, and out of it
 *   write:N      one call that sends N bytes
 *   more:N       the same with MSG_MORE
 *   hand:N       another thread (answerer-N) sends N bytes at the command `go`; wait until it has
 *   sendfile:N   send N bytes from a file
 *   spliceout:N  send N bytes from a pipe
 *   uring:N      one read of at most N bytes by io_uring
 *   uringout:N   one send of N bytes by io_uring
 *   eof          read until the peer has closed its side
 *   sleep:MS     sleep
 *   wait         until the command `go` (each lets one connection pass)
 *   shut         close the sending side
 *   cork, uncork set and clear TCP_CORK
 *   loop         from the beginning
 * The end of the script, the end of the peer or an error close the connection.
 *
 * Commands: `go`, `stats` (service_ns: from the first read to the last send of every request, by
 * write, more and hand), `quit`.
 */
#include <linux/io_uring.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>

#include "workload.h"

struct talker {
	const char *script;
	sem_t go;
	int file; /* MESSAGE_MAX bytes */
	int listener;
	long uring; /* whether the script needs it */
	uint64_t service_ns; /* touched atomically */
};

/* The smallest io_uring that can do one thing at a time. */
struct uring {
	int fd;
	char *ring;
	struct io_uring_params params;
	struct io_uring_sqe *sqes;
};

struct talk {
	struct talker *talker;
	int fd;
	int pipe[2];
	char *buffer;
	struct uring uring;
	uint64_t since_ns; /* first read, or the last send so far */
	bool unanswered;
	size_t handed; /* bytes to send for it */
	bool sent;
	sem_t answered;
};

static void uring_open(struct uring *uring)
{
	size_t size;

	uring->fd = (int)syscall(SYS_io_uring_setup, 1, &uring->params);
	if (uring->fd < 0)
		die("io_uring_setup");
	size = uring->params.cq_off.cqes + uring->params.cq_entries * sizeof(struct io_uring_cqe) +
	       4096;
	uring->ring = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, uring->fd,
			   IORING_OFF_SQ_RING);
	uring->sqes = mmap(NULL, sizeof(*uring->sqes), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_POPULATE, uring->fd, IORING_OFF_SQES);
	if (uring->ring == MAP_FAILED || (void *)uring->sqes == MAP_FAILED)
		die("mmap of an io_uring");
}

static uint32_t *uring_word(struct uring *uring, uint32_t offset)
{
	return (uint32_t *)(uring->ring + offset);
}

/* Submits one operation, waits for its completion and returns its result. */
static int uring_do(struct talk *talk, unsigned char operation, uint32_t size)
{
	struct uring *uring = &talk->uring;
	uint32_t *head = uring_word(uring, uring->params.cq_off.head);
	uint32_t *tail = uring_word(uring, uring->params.sq_off.tail);
	struct io_uring_cqe *cqes =
		(struct io_uring_cqe *)(uring->ring + uring->params.cq_off.cqes);
	int result;

	uring->sqes[0] = (struct io_uring_sqe){
		.opcode = operation, .fd = talk->fd, .addr = (uintptr_t)talk->buffer, .len = size
	};
	uring_word(uring, uring->params.sq_off.array)[0] = 0;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, uring->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1)
		die("io_uring_enter");
	result = cqes[*head & (uring->params.cq_entries - 1)].res;
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	return result;
}

static bool splice_in(struct talk *talk, size_t size)
{
	while (size) {
		ssize_t part = splice(talk->fd, NULL, talk->pipe[1], NULL, size, 0);

		if (part <= 0 || read(talk->pipe[0], talk->buffer, (size_t)part) != part)
			return false;
		size -= (size_t)part;
	}
	return true;
}

static bool splice_out(struct talk *talk, size_t size)
{
	if (write(talk->pipe[1], talk->buffer, size) != (ssize_t)size)
		die("write to a pipe");
	while (size) {
		ssize_t part = splice(talk->pipe[0], NULL, talk->fd, NULL, size, 0);

		if (part <= 0)
			return false;
		size -= (size_t)part;
	}
	return true;
}

static bool file_send(struct talk *talk, size_t size)
{
	off_t at = 0;

	while (size) {
		ssize_t part = sendfile(talk->fd, talk->talker->file, &at, size);

		if (part <= 0)
			return false;
		size -= (size_t)part;
	}
	return true;
}

static bool go_wait(struct talk *talk)
{
	while (sem_wait(&talk->talker->go))
		;
	return true;
}

static bool read_done(struct talk *talk, bool good)
{
	if (good && !talk->unanswered)
		talk->since_ns = clock_now_ns();
	talk->unanswered = true;
	return good;
}

static bool send_some(struct talk *talk, size_t size, int flags)
{
	bool good = send(talk->fd, talk->buffer, size, MSG_NOSIGNAL | flags) == (ssize_t)size;
	uint64_t now = clock_now_ns();

	__atomic_fetch_add(&talk->talker->service_ns, now - talk->since_ns, __ATOMIC_RELAXED);
	talk->since_ns = now;
	talk->unanswered = false;
	return good;
}

static void *answerer_main(void *argument)
{
	struct talk *talk = argument;

	thread_name_set("answerer", talk->fd);
	go_wait(talk);
	talk->sent = send_some(talk, talk->handed, 0);
	sem_post(&talk->answered);
	return NULL;
}

static bool hand_over(struct talk *talk, size_t size)
{
	talk->handed = size;
	pthread_detach(thread_start(answerer_main, talk));
	while (sem_wait(&talk->answered))
		;
	return talk->sent;
}

static bool cork_set(const struct talk *talk, int on)
{
	return !setsockopt(talk->fd, IPPROTO_TCP, TCP_CORK, &on, sizeof(on));
}

static bool read_to_end(struct talk *talk)
{
	while (read(talk->fd, talk->buffer, MESSAGE_MAX) > 0)
		;
	return true;
}

static bool name_is(const char *step, const char *name)
{
	size_t length = strlen(name);

	return !strncmp(step, name, length) && (!step[length] || strchr(":,", step[length]));
}

/* Plays one step; false ends the talk. */
static bool step_play(struct talk *talk, const char *step)
{
	const char *colon = step + strcspn(step, ":,");
	size_t size = *colon == ':' ? strtoul(colon + 1, NULL, 10) : 0;

	if (size > MESSAGE_MAX)
		die("too many bytes: %s", step);
	if (name_is(step, "read"))
		return read_done(talk, io_read_all(talk->fd, talk->buffer, size));
	if (name_is(step, "once"))
		return read_done(talk, read(talk->fd, talk->buffer, size) > 0);
	if (name_is(step, "peek"))
		return recv(talk->fd, talk->buffer, MESSAGE_MAX, MSG_PEEK) > 0;
	if (name_is(step, "splice"))
		return splice_in(talk, size);
	if (name_is(step, "write"))
		return send_some(talk, size, 0);
	if (name_is(step, "more"))
		return send_some(talk, size, MSG_MORE);
	if (name_is(step, "hand"))
		return hand_over(talk, size);
	if (name_is(step, "sendfile"))
		return file_send(talk, size);
	if (name_is(step, "spliceout"))
		return splice_out(talk, size);
	if (name_is(step, "uring"))
		return uring_do(talk, IORING_OP_RECV, (uint32_t)size) > 0;
	if (name_is(step, "uringout"))
		return uring_do(talk, IORING_OP_SEND, (uint32_t)size) > 0;
	if (name_is(step, "eof"))
		return read_to_end(talk);
	if (name_is(step, "wait"))
		return go_wait(talk);
	if (name_is(step, "shut"))
		return !shutdown(talk->fd, SHUT_WR);
	if (name_is(step, "cork") || name_is(step, "uncork"))
		return cork_set(talk, *step == 'c');
	if (name_is(step, "sleep"))
		clock_sleep_us((long)size * 1000);
	else
		die("unknown step %s", step);
	return true;
}

static void script_play(struct talk *talk)
{
	const char *script = talk->talker->script, *step = script;

	while (step_play(talk, step)) {
		step += strcspn(step, ",");
		if (!*step++)
			return;
		if (name_is(step, "loop"))
			step = script;
	}
}

static void *talk_main(void *argument)
{
	struct talk *talk = argument;

	thread_name_set("talker", talk->fd);
	talk->buffer = calloc(1, MESSAGE_MAX);
	if (!talk->buffer || pipe(talk->pipe) || sem_init(&talk->answered, 0, 0))
		die("cannot talk");
	if (talk->talker->uring)
		uring_open(&talk->uring);
	script_play(talk);
	close(talk->fd);
	close(talk->pipe[0]);
	close(talk->pipe[1]);
	if (talk->talker->uring)
		close(talk->uring.fd);
	free(talk->buffer);
	free(talk);
	return NULL;
}

static void *accept_main(void *argument)
{
	struct talker *talker = argument;

	thread_name_set("acceptor", 0);
	for (;;) {
		struct talk *talk = calloc(1, sizeof(*talk));

		if (!talk)
			die("calloc");
		talk->talker = talker;
		talk->fd = accept(talker->listener, NULL, NULL);
		if (talk->fd < 0)
			die("accept");
		pthread_detach(thread_start(talk_main, talk));
	}
	return NULL;
}

static int file_open(void)
{
	char name[] = "/tmp/talker-XXXXXX";
	int fd = mkstemp(name);

	if (fd < 0 || unlink(name) || ftruncate(fd, MESSAGE_MAX))
		die("no temporary file");
	return fd;
}

int main(int argc, char **argv)
{
	struct talker talker = { .script = "read:100,write:100,loop" };
	const char *address = "127.0.0.1";
	long port = 0, backlog = 128;
	char line[64];
	const struct option_row options[] = {
		{ "address", NULL, &address, "to listen on" },
		{ "port", &port, NULL, "to listen on; 0 for any free one" },
		{ "backlog", &backlog, NULL, "of the listener" },
		{ "script", NULL, &talker.script, "what to do on every connection" },
		{ 0 },
	};

	options_parse(options, argc, argv);
	sem_init(&talker.go, 0, 0);
	talker.file = file_open();
	talker.uring = strstr(talker.script, "uring") != NULL;
	talker.listener = listen_open(address, port, backlog);
	thread_start(accept_main, &talker);
	ready_print(talker.listener);
	while (command_next(line, sizeof(line)) && strcmp(line, "quit")) {
		if (!strcmp(line, "go"))
			sem_post(&talker.go);
		else if (!strcmp(line, "stats"))
			stat_print("service_ns",
				   __atomic_load_n(&talker.service_ns, __ATOMIC_RELAXED));
		command_done();
	}
	exit(0);
}
