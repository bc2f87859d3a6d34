/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the bundled test services share: options, listening, clocks, threads and commands.
 *
 * Every service prints `ready PORT` once it listens, obeys commands on standard input line by line
 * and answers each with lines `key value`, ended by `ok`. The end of standard input ends it. Times
 * are nanoseconds of CLOCK_MONOTONIC. These programs are instruments: whatever fails ends them
 * with one line on standard error and status 1.
 */
#ifndef TESTS_WORKLOAD_H
#define TESTS_WORKLOAD_H

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000ULL
#define NS_PER_US 1000ULL
#define MESSAGE_MAX 65536

/* One option, `--name=value`: a number if @number is set, else a text. */
struct option_row {
	const char *name;
	long *number;
	const char **text;
	const char *help;
};

__attribute__((noreturn, format(printf, 1, 2))) static inline void die(const char *format, ...)
{
	int error = errno;
	va_list arguments;

	va_start(arguments, format);
	fprintf(stderr, "%s: ", program_invocation_short_name);
	vfprintf(stderr, format, arguments);
	fprintf(stderr, "%s%s\n", error ? ": " : "", error ? strerror(error) : "");
	va_end(arguments);
	exit(1);
}

static inline void options_print(const struct option_row *rows)
{
	const struct option_row *row;

	for (row = rows; row->name; row++) {
		if (row->number)
			printf("  --%s=%ld: %s\n", row->name, *row->number, row->help);
		else
			printf("  --%s=%s: %s\n", row->name, *row->text, row->help);
	}
}

static inline void option_set(const struct option_row *row, const char *value)
{
	char *end;

	if (row->text) {
		*row->text = value;
		return;
	}
	errno = 0;
	*row->number = strtol(value, &end, 10);
	if (errno || end == value || *end || *row->number < 0)
		die("--%s: not a number: %s", row->name, value);
}

static inline const struct option_row *option_find(const struct option_row *rows, const char *name,
						   size_t length)
{
	for (; rows->name; rows++)
		if (strlen(rows->name) == length && !strncmp(rows->name, name, length))
			return rows;
	return NULL;
}

/* Fills in what @rows (ended by an empty row) describe; `--help` shows them with their defaults. */
static inline void options_parse(const struct option_row *rows, int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++) {
		const struct option_row *row = NULL;
		const char *value = strchr(argv[i], '=');

		if (!strcmp(argv[i], "--help")) {
			options_print(rows);
			exit(0);
		}
		if (value && !strncmp(argv[i], "--", 2))
			row = option_find(rows, argv[i] + 2, (size_t)(value - argv[i]) - 2);
		errno = 0;
		if (!row)
			die("unknown option %s (see --help)", argv[i]);
		option_set(row, value + 1);
	}
}

static inline uint64_t clock_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static inline void clock_sleep_until(uint64_t at_ns)
{
	struct timespec at = { .tv_sec = (time_t)(at_ns / NS_PER_S),
			       .tv_nsec = (long)(at_ns % NS_PER_S) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

static inline void clock_sleep_us(long us)
{
	if (us)
		clock_sleep_until(clock_now_ns() + (uint64_t)us * NS_PER_US);
}

static inline void clock_burn_us(long us)
{
	uint64_t end = clock_now_ns() + (uint64_t)us * NS_PER_US;

	while (clock_now_ns() < end)
		;
}

/* An amount of computation that looks at no clock. */
static inline void rounds_compute(uint64_t rounds)
{
	while (rounds--)
		__asm__ volatile("");
}

static inline uint64_t clock_thread_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * NS_PER_S + (uint64_t)used.tv_nsec;
}

/* How many rounds take @us here: by the fastest of some trials, because others may interfere. */
static inline uint64_t rounds_of_us(long us)
{
	const uint64_t trial = 1000000;
	uint64_t fastest_ns = UINT64_MAX;
	int i;

	for (i = 0; i < 100; i++) {
		uint64_t begin = clock_thread_ns(), took;

		rounds_compute(trial);
		took = clock_thread_ns() - begin;
		if (took < fastest_ns)
			fastest_ns = took;
	}
	return trial * (uint64_t)us * NS_PER_US / fastest_ns;
}

/* A listening TCP socket on @address (numeric, either family) and @port, 0 for any free one. */
static inline int listen_open(const char *address, long port, long backlog)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
				  .ai_socktype = SOCK_STREAM };
	struct addrinfo *found;
	char service[24];
	int fd, on = 1;

	snprintf(service, sizeof(service), "%ld", port);
	if (getaddrinfo(address, service, &hints, &found))
		die("not an address: %s port %ld", address, port);
	fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(fd, found->ai_addr, found->ai_addrlen) || listen(fd, (int)backlog))
		die("cannot listen on %s port %ld", address, port);
	freeaddrinfo(found);
	return fd;
}

/* The same without bind(2): the kernel finds the port while it makes the socket listen. */
static inline int listen_unbound(long backlog)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || listen(fd, (int)backlog))
		die("cannot listen without bind");
	return fd;
}

static inline uint64_t socket_port(int fd)
{
	struct sockaddr_storage name;
	socklen_t length = sizeof(name);
	char port[16];

	if (getsockname(fd, (struct sockaddr *)&name, &length) ||
	    getnameinfo((struct sockaddr *)&name, length, NULL, 0, port, sizeof(port),
			NI_NUMERICSERV))
		die("no socket name");
	return strtoul(port, NULL, 10);
}

static inline void ready_print(int listener)
{
	printf("ready %" PRIu64 "\n", socket_port(listener));
	fflush(stdout);
}

/* A connection to a service of this machine. */
static inline int upstream_connect(long port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons((uint16_t)port),
				       .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)))
		die("no upstream on port %ld", port);
	return fd;
}

/* Waits until there is something to read, or the other side has ended. */
static inline bool io_wait(int fd)
{
	struct pollfd wanted = { .fd = fd, .events = POLLIN };

	return poll(&wanted, 1, -1) == 1;
}

/* Reads or writes all of @size; false if the peer is gone before. */
static inline bool io_read_all(int fd, char *to, size_t size)
{
	while (size) {
		ssize_t part = read(fd, to, size);

		if (part <= 0)
			return false;
		to += part;
		size -= (size_t)part;
	}
	return true;
}

static inline bool io_write_all(int fd, const char *from, size_t size)
{
	while (size) {
		ssize_t part = send(fd, from, size, MSG_NOSIGNAL);

		if (part <= 0)
			return false;
		from += part;
		size -= (size_t)part;
	}
	return true;
}

/* fork(2), whose child ends with this process at the latest. */
static inline pid_t fork_tied(void)
{
	pid_t parent = getpid(), child = fork();

	if (child < 0)
		die("fork");
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			exit(1);
	}
	return child;
}

/* The next command, without its newline; false at the end of standard input. */
static inline bool command_next(char *line, size_t size)
{
	if (!fgets(line, (int)size, stdin))
		return false;
	line[strcspn(line, "\n")] = '\0';
	return true;
}

static inline void stat_print(const char *key, uint64_t value)
{
	printf("%s %" PRIu64 "\n", key, value);
}

static inline void command_done(void)
{
	puts("ok");
	fflush(stdout);
}

/* How often the calling thread went to sleep of its own accord: a lock that was waited for. */
static inline uint64_t thread_sleeps(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return (uint64_t)usage.ru_nvcsw;
}

/* A mutex, and what those that wait for it measure: counters are only touched atomically. */
struct measured_lock {
	pthread_mutex_t mutex;
	uint64_t wait_ns;
	uint64_t sleeps; /* acquisitions that went to sleep */
	uint64_t switches; /* how often they did */
};

/*
 * Inlined: it is where it is called that waits. Tried first: a thread that sleeps until a page of
 * code has come from the disk has not waited for the mutex.
 */
__attribute__((always_inline)) static inline void measured_lock_take(struct measured_lock *lock)
{
	uint64_t sleeps, begin;

	if (!pthread_mutex_trylock(&lock->mutex))
		return;
	sleeps = thread_sleeps();
	begin = clock_now_ns();
	pthread_mutex_lock(&lock->mutex);
	__atomic_fetch_add(&lock->wait_ns, clock_now_ns() - begin, __ATOMIC_RELAXED);
	sleeps = thread_sleeps() - sleeps;
	__atomic_fetch_add(&lock->sleeps, sleeps > 0, __ATOMIC_RELAXED);
	__atomic_fetch_add(&lock->switches, sleeps, __ATOMIC_RELAXED);
}

static inline void measured_lock_give(struct measured_lock *lock)
{
	pthread_mutex_unlock(&lock->mutex);
}

static inline void measured_lock_print(const struct measured_lock *lock)
{
	stat_print("lock_wait_ns", __atomic_load_n(&lock->wait_ns, __ATOMIC_RELAXED));
	stat_print("lock_sleeps", __atomic_load_n(&lock->sleeps, __ATOMIC_RELAXED));
	stat_print("lock_switches", __atomic_load_n(&lock->switches, __ATOMIC_RELAXED));
}

static inline void thread_name_set(const char *pool, long number)
{
	char name[16];

	snprintf(name, sizeof(name), "%.10s-%lu", pool, (unsigned long)number % 10000);
	prctl(PR_SET_NAME, name);
}

static inline pthread_t thread_start(void *(*main)(void *), void *argument)
{
	pthread_t thread;

	errno = pthread_create(&thread, NULL, main, argument);
	if (errno)
		die("pthread_create");
	return thread;
}

#endif
