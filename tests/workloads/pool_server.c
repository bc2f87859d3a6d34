// SPDX-License-Identifier: Apache-2.0
/*
 * A service with a pool of blocking threads, named worker-N, and requests of a fixed size.
 *
 * --mode=accept: every worker accepts a connection itself and serves it until it closes.
 * --mode=queue: one thread (acceptor-0) accepts, the workers wait on a condition variable.
 * --give=NAME: hands the listener to the client of the Unix socket NAME (thread giver-0), and
 *   --take=NAME takes it from there in place of making one; they may serve both, or one only
 *   (--workers=0).
 * --turns=1: workers take turns at a mutex: the one that has it waits for the next connection.
 * --turns=2: and serves that before it gives the mutex back.
 *
 * Commands: `stuck` (workers take up nothing more), `release`, `stats`, `quit`.
 */
#include <fcntl.h>
#include <poll.h>

#include "handover.h"
#include "workload.h"

#define UPSTREAM_BYTES 100

struct connection {
	struct connection *next;
	int fd;
};

struct server;

struct worker {
	struct server *server;
	/*
	 * Touched atomically: the time spent serving; while it serves, less the time at which that
	 * began, and so negative exactly then.
	 */
	int64_t busy_ns;
};

struct server {
	int listener;
	long workers_count;
	long workers_named; /* those that have their name */
	struct worker *workers;
	long request_bytes;
	long response_bytes;
	long service_us;
	long busy_us;
	long work_us;
	uint64_t work_rounds; /* what @work_us is worth on this machine */
	long lock_us;
	long lock_late; /* after a connection was closed: outside of a request */
	long upstream_port; /* 0: none */
	long upstream_poll; /* non-blocking, waits in poll */
	long upstream_read; /* by read(2) */
	long named;
	long greets; /* it speaks first: an answer before the first request */
	const char *mode;
	const char *give; /* empty: not handed over */
	int giver;
	pthread_t main;

	pthread_mutex_t gate; /* of everything down to the next blank line */
	pthread_cond_t released;
	pthread_cond_t filled;
	struct connection *queue;
	struct connection **queue_end;
	bool stuck;

	struct measured_lock shared; /* what --lock-us is spent under */
	long turns;
	pthread_mutex_t turn;

	uint64_t requests; /* counters are only touched atomically */
	uint64_t service_ns; /* from when a request has been read until its send has returned */
	uint64_t sending_ns; /* of which in that send */
};

static void count_add(uint64_t *counter, uint64_t value)
{
	__atomic_fetch_add(counter, value, __ATOMIC_RELAXED);
}

static void gate_pass(struct server *server)
{
	if (!__atomic_load_n(&server->stuck, __ATOMIC_ACQUIRE))
		return;
	pthread_mutex_lock(&server->gate);
	while (server->stuck)
		pthread_cond_wait(&server->released, &server->gate);
	pthread_mutex_unlock(&server->gate);
}

static void gate_set(struct server *server, bool stuck)
{
	pthread_mutex_lock(&server->gate);
	__atomic_store_n(&server->stuck, stuck, __ATOMIC_RELEASE);
	pthread_cond_broadcast(&server->released);
	pthread_mutex_unlock(&server->gate);
}

static void work_locked(struct server *server)
{
	measured_lock_take(&server->shared);
	clock_sleep_us(server->lock_us);
	measured_lock_give(&server->shared);
}

static int upstream_open(const struct server *server)
{
	int fd = upstream_connect(server->upstream_port);

	if (server->upstream_poll && fcntl(fd, F_SETFL, O_NONBLOCK))
		die("fcntl");
	return fd;
}

/* All of the answer; on a non-blocking socket as client libraries do it: try, else poll for it. */
static bool upstream_poll(int fd, char *to, size_t size)
{
	while (size) {
		struct pollfd wanted = { .fd = fd, .events = POLLIN };
		ssize_t part = recv(fd, to, size, 0);

		if (part < 0 && errno == EAGAIN) {
			if (poll(&wanted, 1, -1) != 1)
				return false;
			continue;
		}
		if (part <= 0)
			return false;
		to += part;
		size -= (size_t)part;
	}
	return true;
}

/* One exchange, on a connection of its own, with another service of 100 bytes each way. */
static void work_upstream(const struct server *server)
{
	char message[UPSTREAM_BYTES] = { 0 };
	int fd = upstream_open(server);

	if (!io_write_all(fd, message, sizeof(message)) ||
	    !(server->upstream_read ? io_read_all : upstream_poll)(fd, message, sizeof(message)))
		die("upstream");
	close(fd);
}

static void work(struct server *server)
{
	if (server->upstream_port)
		work_upstream(server);
	clock_sleep_us(server->service_us);
	if (server->busy_us)
		clock_burn_us(server->busy_us);
	rounds_compute(server->work_rounds);
	if (server->lock_us && !server->lock_late)
		work_locked(server);
}

static bool request_serve(struct worker *worker, int fd, char *buffer)
{
	struct server *server = worker->server;
	uint64_t begin, sends, end;
	bool sent;

	if (!io_read_all(fd, buffer, (size_t)server->request_bytes))
		return false;
	begin = clock_now_ns();
	__atomic_fetch_sub(&worker->busy_ns, (int64_t)begin, __ATOMIC_SEQ_CST);
	work(server);
	count_add(&server->requests, 1); /* first: a client with its answer may ask for it */
	sends = clock_now_ns();
	sent = io_write_all(fd, buffer, (size_t)server->response_bytes);
	end = clock_now_ns();
	__atomic_fetch_add(&worker->busy_ns, (int64_t)end, __ATOMIC_SEQ_CST);
	count_add(&server->service_ns, end - begin);
	count_add(&server->sending_ns, end - sends);
	return sent && server->response_bytes;
}

static int connection_accept(struct server *server)
{
	int fd;

	gate_pass(server);
	fd = accept(server->listener, NULL, NULL);
	if (fd < 0)
		die("accept");
	return fd;
}

static int connection_take(struct server *server)
{
	struct connection *first;
	int fd;

	pthread_mutex_lock(&server->gate);
	while (!server->queue || server->stuck)
		pthread_cond_wait(server->stuck ? &server->released : &server->filled,
				  &server->gate);
	first = server->queue;
	server->queue = first->next;
	if (!server->queue)
		server->queue_end = &server->queue;
	pthread_mutex_unlock(&server->gate);
	fd = first->fd;
	free(first);
	return fd;
}

static void connection_put(struct server *server, int fd)
{
	struct connection *new = calloc(1, sizeof(*new));

	if (!new)
		die("calloc");
	new->fd = fd;
	pthread_mutex_lock(&server->gate);
	*server->queue_end = new;
	server->queue_end = &new->next;
	pthread_cond_signal(&server->filled);
	pthread_mutex_unlock(&server->gate);
}

static void *acceptor_main(void *argument)
{
	struct server *server = argument;

	if (server->named)
		thread_name_set("acceptor", 0);
	for (;;)
		connection_put(server, connection_accept(server));
	return NULL;
}

/* Like `rx.lock().unwrap().recv()` in Rust. */
static void turn_begin(struct server *server)
{
	if (server->turns)
		pthread_mutex_lock(&server->turn);
}

static void turn_end(struct server *server)
{
	pthread_mutex_unlock(&server->turn);
}

static void connection_serve(struct worker *worker, int fd, char *buffer)
{
	struct server *server = worker->server;

	gate_pass(server);
	if (!server->greets || io_write_all(fd, buffer, (size_t)server->response_bytes)) {
		while (request_serve(worker, fd, buffer))
			gate_pass(server);
	}
	close(fd);
}

static void *worker_main(void *argument)
{
	struct worker *worker = argument;
	struct server *server = worker->server;
	bool queue = !strcmp(server->mode, "queue");
	char *buffer = calloc(1, MESSAGE_MAX);

	if (!buffer)
		die("calloc");
	if (server->named)
		thread_name_set("worker", worker - server->workers);
	__atomic_fetch_add(&server->workers_named, 1, __ATOMIC_RELEASE);
	for (;;) {
		int fd;

		turn_begin(server);
		fd = queue ? connection_take(server) : connection_accept(server);
		if (server->turns == 1)
			turn_end(server);
		connection_serve(worker, fd, buffer);
		if (server->turns > 1)
			turn_end(server);
		if (server->lock_late)
			work_locked(server);
	}
	return NULL;
}

static void *giver_main(void *argument)
{
	struct server *server = argument;

	thread_name_set("giver", 0);
	for (;;)
		handover_give(server->giver, server->listener);
	return NULL;
}

static void workers_start(struct server *server)
{
	long i;

	server->workers = calloc((size_t)server->workers_count, sizeof(*server->workers));
	if (!server->workers && server->workers_count)
		die("calloc");
	for (i = 0; i < server->workers_count; i++) {
		server->workers[i].server = server;
		thread_start(worker_main, &server->workers[i]);
	}
	/* A client may look for them by name. No lock, as waits for locks are what is measured. */
	while (__atomic_load_n(&server->workers_named, __ATOMIC_ACQUIRE) < server->workers_count)
		clock_sleep_us(100);
}

static void threads_start(struct server *server)
{
	if (*server->give) {
		server->giver = handover_listen(server->give);
		thread_start(giver_main, server);
	}
	if (!strcmp(server->mode, "queue"))
		thread_start(acceptor_main, server);
	workers_start(server);
}

/* How long it has served so far, with the request in progress. */
static uint64_t worker_busy_ns(const struct worker *worker)
{
	int64_t busy, now;

	do { /* until it neither began nor ended meanwhile */
		busy = __atomic_load_n(&worker->busy_ns, __ATOMIC_SEQ_CST);
		now = (int64_t)clock_now_ns();
	} while (busy != __atomic_load_n(&worker->busy_ns, __ATOMIC_SEQ_CST));
	return (uint64_t)(busy < 0 ? busy + now : busy);
}

static uint64_t workers_busy_ns(const struct server *server)
{
	uint64_t sum = 0;
	long i;

	for (i = 0; i < server->workers_count; i++)
		sum += worker_busy_ns(&server->workers[i]);
	return sum;
}

static void stats_print(struct server *server)
{
	stat_print("requests", __atomic_load_n(&server->requests, __ATOMIC_RELAXED));
	stat_print("service_ns", __atomic_load_n(&server->service_ns, __ATOMIC_RELAXED));
	stat_print("sending_ns", __atomic_load_n(&server->sending_ns, __ATOMIC_RELAXED));
	stat_print("busy_ns", workers_busy_ns(server));
	stat_print("now_ns", clock_now_ns());
	measured_lock_print(&server->shared);
}

static void commands_obey(struct server *server)
{
	char line[64];

	while (command_next(line, sizeof(line)) && strcmp(line, "quit")) {
		if (!strcmp(line, "stuck"))
			gate_set(server, true);
		else if (!strcmp(line, "release"))
			gate_set(server, false);
		else if (!strcmp(line, "stats"))
			stats_print(server);
		else
			printf("unknown %s\n", line);
		command_done();
	}
}

static void serve(struct server *server)
{
	threads_start(server);
	ready_print(server->listener);
	commands_obey(server);
	exit(0);
}

/* Does what the main thread would, once that has ended. */
static void *successor_main(void *argument)
{
	struct server *server = argument;

	thread_name_set("successor", 0);
	if (pthread_join(server->main, NULL))
		die("pthread_join");
	serve(server);
	return NULL;
}

static void memory_touch(size_t bytes)
{
	char *memory = malloc(bytes);

	if (!memory && bytes)
		die("malloc");
	memset(memory, 1, bytes);
	__asm__ __volatile__("" : : "r"(memory) : "memory");
}

int main(int argc, char **argv)
{
	static struct server server = { .workers_count = 4,
					.request_bytes = 100,
					.response_bytes = 100,
					.named = 1,
					.mode = "accept",
					.give = "",
					.gate = PTHREAD_MUTEX_INITIALIZER,
					.released = PTHREAD_COND_INITIALIZER,
					.filled = PTHREAD_COND_INITIALIZER,
					.shared.mutex = PTHREAD_MUTEX_INITIALIZER,
					.turn = PTHREAD_MUTEX_INITIALIZER };
	const char *address = "127.0.0.1", *take = "";
	long port = 0, unbound = 0, leave = 0, backlog = 128, inherited = -1, ballast_mib = 0;
	const struct option_row options[] = {
		{ "address", NULL, &address, "to listen on" },
		{ "port", &port, NULL, "to listen on; 0 for any free one" },
		{ "unbound", &unbound, NULL, "1: listen without bind, whatever the port" },
		{ "backlog", &backlog, NULL, "of the listener" },
		{ "workers", &server.workers_count, NULL, "threads in the pool" },
		{ "leave", &leave, NULL, "1: the main thread ends before the others start" },
		{ "mode", NULL, &server.mode, "accept or queue" },
		{ "turns", &server.turns, NULL,
		  "1: one at a time waits for the next connection; 2: and serves it" },
		{ "named", &server.named, NULL, "0: threads keep the name of the process" },
		{ "greets", &server.greets, NULL, "1: it speaks first" },
		{ "service-us", &server.service_us, NULL, "sleep per request" },
		{ "busy-us", &server.busy_us, NULL, "computation per request" },
		{ "work-us", &server.work_us, NULL,
		  "the same amount of computation for every request, however long it takes" },
		{ "lock-us", &server.lock_us, NULL, "sleep under a shared mutex per request" },
		{ "lock-late", &server.lock_late, NULL, "1: after the connection is closed" },
		{ "upstream-port", &server.upstream_port, NULL,
		  "one exchange with it per request" },
		{ "upstream-poll", &server.upstream_poll, NULL,
		  "1: wait for it in poll, on a non-blocking socket" },
		{ "upstream-read", &server.upstream_read, NULL, "1: wait for it in read(2)" },
		{ "give", NULL, &server.give, "where to hand over the listener" },
		{ "take", NULL, &take, "where to take a listener from" },
		{ "inherited", &inherited, NULL, "descriptor of a listener that its parent made" },
		{ "ballast-mib", &ballast_mib, NULL, "memory that takes time to give back" },
		{ "request-bytes", &server.request_bytes, NULL, "size of every request" },
		{ "response-bytes", &server.response_bytes, NULL,
		  "size of every response; 0: it only closes" },
		{ 0 },
	};

	options_parse(options, argc, argv);
	if (server.request_bytes > MESSAGE_MAX || server.response_bytes > MESSAGE_MAX)
		die("messages are at most %d bytes", MESSAGE_MAX);
	server.queue_end = &server.queue;
	if (server.work_us)
		server.work_rounds = rounds_of_us(server.work_us);
	memory_touch((size_t)ballast_mib << 20);
	if (inherited >= 0)
		server.listener = (int)inherited;
	else if (*take)
		server.listener = handover_take(take);
	else
		server.listener = unbound ? listen_unbound(backlog)
					  : listen_open(address, port, backlog);
	server.main = pthread_self();
	if (leave) {
		thread_start(successor_main, &server);
		pthread_exit(NULL);
	}
	serve(&server);
}
