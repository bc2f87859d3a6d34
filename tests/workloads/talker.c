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
 *   stream:N     the same, three times as the upstream is fed, and without waiting for it
 *   sendfile:N   send N bytes from a file
 *   spliceout:N  send N bytes from a pipe
 *   flood:N      one call of write(2) that sends N kB
 *   pour:N       the same without blocking, waiting in poll
 *   pollin, pollnext: wait in poll until the peer sends or closes, or another client connects
 *   take:HOW     one byte from an upstream, by HOW: recv, read, poll (and recv) or pipe; after a
 *                wait for that or for a wake-up (eventfd): polls, select, epoll, or pipes
 *   uring:N      one read of at most N bytes by io_uring
 *   uringlate:N  the same; until it is there the thread reads a file again and again, in which
 *                each line looks like a request of HTTP
 *   uringout:N   one send of N bytes by io_uring
 *   eof          read until the peer has closed its side
 *   sleep:MS     sleep
 *   wait         until the command `go` (each lets one connection pass)
 *   shut         close the sending side
 *   cork, uncork set and clear TCP_CORK
 *   mark:N       set SO_RCVLOWAT to N
 *   loop         from the beginning
 * The end of the script, the end of the peer or an error close the connection.
 *
 * Every connection has its upstream, a socket and a pipe, into which --feed-ms puts a byte as
 * often, and `feed` one into that of the newest.
 *
 * Commands: `go`, `feed`, `stats` (service_ns: from the first read to the last send of every
 * request, by write, more and hand), `quit`.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>

#include "uring.h"
#include "wakeable.h"
#include "workload.h"

#define TALK_MAX (8 << 20) /* bytes of one step */

struct talker {
	const char *script;
	sem_t go;
	int file; /* TALK_MAX bytes */
	int listener;
	long uring; /* whether the script needs it */
	long feed_ms;
	struct talk *newest; /* that has its upstream: touched atomically */
	sem_t upstreams; /* 0: there is none yet */
	uint64_t service_ns; /* touched atomically */
};

struct talk {
	struct talker *talker;
	int fd;
	int pipe[2];
	int upstream[2]; /* a pair of sockets: what is written to the second is read from the first
			  */
	int upstream_pipe[2];
	bool over;
	char *buffer;
	struct uring uring;
	uint64_t since_ns; /* first read, or the last send so far */
	bool unanswered;
	size_t handed; /* bytes to send for it */
	bool sent;
	sem_t answered;
};

static struct io_uring_sqe uring_move(const struct talk *talk, unsigned char code, size_t size)
{
	return (struct io_uring_sqe){ .opcode = code,
				      .fd = talk->fd,
				      .addr = (uintptr_t)talk->buffer,
				      .len = (uint32_t)size };
}

static int uring_do(struct talk *talk, unsigned char code, size_t size)
{
	struct io_uring_sqe operation = uring_move(talk, code, size);

	uring_submit(&talk->uring, &operation, 1);
	return uring_result(&talk->uring);
}

/* The completion runs at the end of a call, which is one that reads the file. */
static int uring_read_late(struct talk *talk, size_t size)
{
	struct io_uring_sqe operation = uring_move(talk, IORING_OP_RECV, size);
	static const char line[] = "POST /late HTTP/1.1\r\n";
	int log = memfd_create("log", MFD_CLOEXEC);
	char buffer[16 * sizeof(line)];

	if (log < 0)
		die("memfd_create");
	for (size_t i = 0; i < 16; i++) {
		if (write(log, line, sizeof(line) - 1) != sizeof(line) - 1)
			die("write");
	}
	uring_submit(&talk->uring, &operation, 0);
	while (!uring_is_done(&talk->uring)) {
		if (lseek(log, 0, SEEK_SET) || read(log, buffer, sizeof(buffer)) <= 0)
			die("read");
	}
	close(log);
	return uring_result(&talk->uring);
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

static bool flood(const struct talk *talk, size_t size, int flags)
{
	char *buffer = calloc(1, size);
	size_t sent = 0;

	while (buffer && sent < size) {
		struct pollfd client = { .fd = talk->fd, .events = POLLOUT };
		ssize_t part = flags ? send(talk->fd, buffer, size - sent, flags)
				     : write(talk->fd, buffer, size - sent);

		if (part < 0 && (errno != EAGAIN || poll(&client, 1, -1) != 1))
			break;
		sent += part > 0 ? (size_t)part : 0;
	}
	free(buffer);
	return sent == size;
}

static void feed(const struct talk *talk)
{
	/* Of the two one may be full, because no thread takes from it. */
	if ((send(talk->upstream[1], "", 1, MSG_DONTWAIT) != 1 && errno != EAGAIN) ||
	    (write(talk->upstream_pipe[1], "", 1) != 1 && errno != EAGAIN))
		die("feed");
}

/* A client that has connected may be here before its connection has an upstream. */
static void newest_feed(struct talker *talker)
{
	if (sem_wait(&talker->upstreams) || sem_post(&talker->upstreams))
		die("no upstream");
	feed(__atomic_load_n(&talker->newest, __ATOMIC_ACQUIRE));
}

static void *feeder_main(void *argument)
{
	const struct talk *talk = argument;

	thread_name_set("feeder", talk->fd);
	while (!__atomic_load_n(&talk->over, __ATOMIC_RELAXED)) {
		clock_sleep_us(talk->talker->feed_ms * 1000);
		feed(talk);
	}
	return NULL;
}

static bool take(const struct talk *talk, const char *how)
{
	int fd = talk->upstream[0];
	char byte;

	/* What it was fed while no client asked is stale. */
	while (talk->talker->feed_ms && recv(fd, &byte, 1, MSG_DONTWAIT) == 1)
		;
	if (!strncmp(how, "recv", 4))
		return recv(fd, &byte, 1, 0) == 1;
	if (!strncmp(how, "read", 4))
		return read(fd, &byte, 1) == 1;
	if (!strncmp(how, "pipes", 5) && !wait_with_another(talk->upstream_pipe[0], how))
		return false;
	if (!strncmp(how, "pipe", 4))
		return read(talk->upstream_pipe[0], &byte, 1) == 1;
	if (!strncmp(how, "polls", 5) || !strncmp(how, "select", 6) || !strncmp(how, "epoll", 5))
		return wait_with_another(fd, how) && recv(fd, &byte, 1, 0) == 1;
	while (io_wait(fd))
		if (recv(fd, &byte, 1, MSG_DONTWAIT) == 1)
			return true;
	return false;
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

static void *streamer_main(void *argument)
{
	struct talk *talk = argument;

	thread_name_set("answerer", talk->fd);
	for (int i = 0; i < 3; i++)
		if (!take(talk, "recv") || !send_some(talk, talk->handed, 0))
			die("stream");
	return NULL;
}

static bool stream(struct talk *talk, size_t size)
{
	talk->handed = size;
	pthread_detach(thread_start(streamer_main, talk));
	return true;
}

static bool hand_over(struct talk *talk, size_t size)
{
	talk->handed = size;
	pthread_detach(thread_start(answerer_main, talk));
	while (sem_wait(&talk->answered))
		;
	return talk->sent;
}

static bool socket_set(const struct talk *talk, int level, int name, int value)
{
	return !setsockopt(talk->fd, level, name, &value, sizeof(value));
}

static bool read_to_end(struct talk *talk)
{
	while (read(talk->fd, talk->buffer, TALK_MAX) > 0)
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

	if (size > TALK_MAX)
		die("too many bytes: %s", step);
	if (name_is(step, "read"))
		return read_done(talk, io_read_all(talk->fd, talk->buffer, size));
	if (name_is(step, "once"))
		return read_done(talk, read(talk->fd, talk->buffer, size) > 0);
	if (name_is(step, "peek"))
		return recv(talk->fd, talk->buffer, TALK_MAX, MSG_PEEK) > 0;
	if (name_is(step, "splice"))
		return splice_in(talk, size);
	if (name_is(step, "write"))
		return send_some(talk, size, 0);
	if (name_is(step, "more"))
		return send_some(talk, size, MSG_MORE);
	if (name_is(step, "hand"))
		return hand_over(talk, size);
	if (name_is(step, "stream"))
		return stream(talk, size);
	if (name_is(step, "sendfile"))
		return file_send(talk, size);
	if (name_is(step, "spliceout"))
		return splice_out(talk, size);
	if (name_is(step, "flood"))
		return flood(talk, size << 10, 0);
	if (name_is(step, "pour"))
		return flood(talk, size << 10, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (name_is(step, "pollin"))
		return io_wait(talk->fd);
	if (name_is(step, "pollnext"))
		return io_wait(talk->talker->listener);
	if (name_is(step, "take"))
		return take(talk, colon + 1);
	if (name_is(step, "uring"))
		return uring_do(talk, IORING_OP_RECV, size) > 0;
	if (name_is(step, "uringlate"))
		return uring_read_late(talk, size) > 0;
	if (name_is(step, "uringout"))
		return uring_do(talk, IORING_OP_SEND, size) > 0;
	if (name_is(step, "eof"))
		return read_to_end(talk);
	if (name_is(step, "wait"))
		return go_wait(talk);
	if (name_is(step, "shut"))
		return !shutdown(talk->fd, SHUT_WR);
	if (name_is(step, "cork") || name_is(step, "uncork"))
		return socket_set(talk, IPPROTO_TCP, TCP_CORK, *step == 'c');
	if (name_is(step, "mark"))
		return socket_set(talk, SOL_SOCKET, SO_RCVLOWAT, (int)size);
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

static void upstream_open(struct talk *talk)
{
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, talk->upstream) || pipe(talk->upstream_pipe) ||
	    fcntl(talk->upstream_pipe[1], F_SETFL, O_NONBLOCK))
		die("no upstream");
	__atomic_store_n(&talk->talker->newest, talk, __ATOMIC_RELEASE);
	sem_post(&talk->talker->upstreams);
}

static void upstream_close(struct talk *talk)
{
	for (int i = 0; i < 2; i++) {
		close(talk->upstream[i]);
		close(talk->upstream_pipe[i]);
	}
}

static void *talk_main(void *argument)
{
	struct talk *talk = argument;
	pthread_t feeder = 0;

	thread_name_set("talker", talk->fd);
	talk->buffer = calloc(1, TALK_MAX);
	if (!talk->buffer || pipe(talk->pipe) || sem_init(&talk->answered, 0, 0))
		die("cannot talk");
	if (talk->talker->uring)
		uring_open(&talk->uring, strstr(talk->talker->script, "uringlate"));
	upstream_open(talk);
	if (talk->talker->feed_ms)
		feeder = thread_start(feeder_main, talk);
	script_play(talk);
	close(talk->fd);
	__atomic_store_n(&talk->over, true, __ATOMIC_RELAXED);
	if (talk->talker->feed_ms)
		pthread_join(feeder, NULL);
	upstream_close(talk);
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

	if (fd < 0 || unlink(name) || ftruncate(fd, TALK_MAX))
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
		{ "feed-ms", &talker.feed_ms, NULL, "feed so often; 0: at the command only" },
		{ 0 },
	};

	options_parse(options, argc, argv);
	sem_init(&talker.go, 0, 0);
	sem_init(&talker.upstreams, 0, 0);
	talker.file = file_open();
	talker.uring = strstr(talker.script, "uring") != NULL;
	talker.listener = listen_open(address, port, backlog);
	thread_start(accept_main, &talker);
	ready_print(talker.listener);
	while (command_next(line, sizeof(line)) && strcmp(line, "quit")) {
		if (!strcmp(line, "go"))
			sem_post(&talker.go);
		else if (!strcmp(line, "feed"))
			newest_feed(&talker);
		else if (!strcmp(line, "stats"))
			stat_print("service_ns",
				   __atomic_load_n(&talker.service_ns, __ATOMIC_RELAXED));
		command_done();
	}
	exit(0);
}
