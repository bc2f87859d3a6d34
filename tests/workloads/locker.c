// SPDX-License-Identifier: Apache-2.0
/*
 * Threads that spend their time in one known way, with their own clocks as reference. It listens
 * (and answers no client), because only what listens is a workload. Threads name themselves
 * locker-N, the main thread main-0; short threads inherit the name of the thread that starts them.
 *
 * --mode=mutex, robust, pi or rwlock (odd threads read): contend on one lock, held for --hold-us of
 *   computation and --hold-sleep-us of sleep, with --think-us of sleep before.
 * --mode=condvar: wait on a condition variable; sleepers: sleep again and again; blocked: read an
 *   empty pipe; burn: compute.
 * --mode=table: the cost of locks and nothing else: count in one of 64 cells, each under a mutex of
 *   its own, and compute a little between; every 64th acquisition is timed.
 * --mode=churn: every thread starts and joins --children short threads one after the other.
 *
 * Commands: `start`, `finish` (end all threads, join them, print; they can be started again, but
 * for
 * --mode=blocked), `quit`.
 */
#include "workload.h"

#define CELLS 64
#define SAMPLES 65536
#define PRIVATE_ROUNDS 200

/* A line of its own, so that only the lock is contended for. */
struct cell {
	_Alignas(64) pthread_mutex_t mutex;
	uint64_t count;
};

struct locker {
	const char *mode;
	long threads;
	long hold_us;
	long hold_sleep_us;
	long think_us;
	long children;
	int pipe[2];
	bool stop; /* atomic */
	pthread_mutex_t mutex;
	pthread_rwlock_t rwlock;
	pthread_mutex_t gate; /* of the next one: the contention is ended from outside of it */
	pthread_cond_t ended;
	struct cell cells[CELLS];
};

/* One thread and what its own clock says. */
struct thread {
	struct locker *locker;
	pthread_t id;
	long number;
	uint64_t begin_ns; /* before pthread_create */
	uint64_t inside_ns; /* in its main function, and its children in theirs */
	uint64_t wait_ns; /* around the lock call */
	uint64_t acquisitions;
	uint64_t sleeps; /* acquisitions that went to sleep */
	uint64_t switches; /* how often they did */
	uint64_t children;
	uint64_t children_ns; /* from pthread_create to pthread_join */
	uint32_t *samples; /* --mode=table: the last SAMPLES times of an acquisition */
	uint64_t samples_len;
};

typedef void (*mode_fn)(struct thread *thread);

static bool stopped(struct locker *locker)
{
	return __atomic_load_n(&locker->stop, __ATOMIC_ACQUIRE);
}

static void lock_take(struct thread *thread)
{
	struct locker *locker = thread->locker;

	if (strcmp(locker->mode, "rwlock"))
		pthread_mutex_lock(&locker->mutex);
	else if (thread->number % 2)
		pthread_rwlock_rdlock(&locker->rwlock);
	else
		pthread_rwlock_wrlock(&locker->rwlock);
}

static void lock_give(struct thread *thread)
{
	if (strcmp(thread->locker->mode, "rwlock"))
		pthread_mutex_unlock(&thread->locker->mutex);
	else
		pthread_rwlock_unlock(&thread->locker->rwlock);
}

static void contend(struct thread *thread)
{
	struct locker *locker = thread->locker;

	clock_sleep_us(20000); /* a thread's new name is seen when it is switched */
	while (!stopped(locker)) {
		uint64_t sleeps, begin;

		clock_sleep_us(locker->think_us);
		sleeps = thread_sleeps();
		begin = clock_now_ns();
		lock_take(thread);
		thread->wait_ns += clock_now_ns() - begin;
		sleeps = thread_sleeps() - sleeps;
		thread->sleeps += sleeps > 0;
		thread->switches += sleeps;
		thread->acquisitions++;
		clock_burn_us(locker->hold_us);
		clock_sleep_us(locker->hold_sleep_us);
		lock_give(thread);
	}
}

static void cell_count(struct thread *thread, struct cell *cell)
{
	uint64_t begin = 0;

	if (thread->acquisitions++ % 64 == 0)
		begin = clock_now_ns();
	pthread_mutex_lock(&cell->mutex);
	if (begin)
		thread->samples[thread->samples_len++ % SAMPLES] =
			(uint32_t)(clock_now_ns() - begin);
	cell->count++;
	pthread_mutex_unlock(&cell->mutex);
}

static void count_in_table(struct thread *thread)
{
	uint64_t random = (uint64_t)thread->number + 1;

	thread->samples = calloc(SAMPLES, sizeof(*thread->samples));
	if (!thread->samples)
		die("calloc");
	clock_sleep_us(20000); /* a thread's new name is seen when it is switched */
	while (!stopped(thread->locker)) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		cell_count(thread, &thread->locker->cells[random % CELLS]);
		rounds_compute(PRIVATE_ROUNDS);
	}
}

static void wait_for_end(struct thread *thread)
{
	struct locker *locker = thread->locker;

	pthread_mutex_lock(&locker->gate);
	while (!stopped(locker))
		pthread_cond_wait(&locker->ended, &locker->gate);
	pthread_mutex_unlock(&locker->gate);
}

static void sleep_again(struct thread *thread)
{
	while (!stopped(thread->locker))
		clock_sleep_us(50000);
}

static void read_nothing(struct thread *thread)
{
	char byte;

	if (read(thread->locker->pipe[0], &byte, 1) < 0)
		die("read");
}

static void burn(struct thread *thread)
{
	while (!stopped(thread->locker))
		clock_burn_us(1000);
}

static void *child_main(void *argument)
{
	struct thread *thread = argument;
	uint64_t begin = clock_now_ns();

	clock_sleep_us(thread->locker->hold_sleep_us);
	thread->inside_ns += clock_now_ns() - begin; /* one child at a time */
	return NULL;
}

static void churn(struct thread *thread)
{
	long i;

	for (i = 0; i < thread->locker->children; i++) {
		uint64_t begin = clock_now_ns();

		pthread_join(thread_start(child_main, thread), NULL);
		thread->children_ns += clock_now_ns() - begin;
		thread->children++;
	}
	wait_for_end(thread);
}

static mode_fn mode_find(const char *name)
{
	const struct {
		const char *name;
		mode_fn run;
	} modes[] = {
		{ "mutex", contend },
		{ "robust", contend },
		{ "rwlock", contend },
		{ "pi", contend },
		{ "condvar", wait_for_end },
		{ "sleepers", sleep_again },
		{ "churn", churn },
		{ "blocked", read_nothing },
		{ "burn", burn },
		{ "table", count_in_table },
	};
	size_t i;

	for (i = 0; i < sizeof(modes) / sizeof(*modes); i++)
		if (!strcmp(modes[i].name, name))
			return modes[i].run;
	die("unknown mode %s", name);
}

static void *thread_main(void *argument)
{
	struct thread *thread = argument;
	uint64_t begin = clock_now_ns();

	thread_name_set("locker", thread->number);
	mode_find(thread->locker->mode)(thread);
	thread->inside_ns += clock_now_ns() - begin;
	return NULL;
}

static void threads_start(struct locker *locker, struct thread *threads)
{
	long i;

	__atomic_store_n(&locker->stop, false, __ATOMIC_RELEASE);
	for (i = 0; i < locker->threads; i++) {
		threads[i] = (struct thread){ .locker = locker, .number = i };
		threads[i].begin_ns = clock_now_ns();
		threads[i].id = thread_start(thread_main, &threads[i]);
	}
}

static void threads_end(struct locker *locker)
{
	pthread_mutex_lock(&locker->gate);
	__atomic_store_n(&locker->stop, true, __ATOMIC_RELEASE);
	pthread_cond_broadcast(&locker->ended);
	pthread_mutex_unlock(&locker->gate);
	if (locker->pipe[1] >= 0)
		close(locker->pipe[1]);
	locker->pipe[1] = -1;
}

static int compare_samples(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return (a > b) - (a < b);
}

/* The worst thread's 99th percentile: the threads are alike. */
static uint64_t samples_p99(struct thread *thread)
{
	size_t length = thread->samples_len < SAMPLES ? thread->samples_len : SAMPLES;

	if (!length)
		return 0;
	qsort(thread->samples, length, sizeof(*thread->samples), compare_samples);
	return thread->samples[length * 99 / 100];
}

static void threads_finish(struct locker *locker, struct thread *threads)
{
	struct thread sum = { 0 };
	uint64_t life_ns = 0, p99_ns = 0;
	long i;

	threads_end(locker);
	for (i = 0; i < locker->threads; i++) {
		pthread_join(threads[i].id, NULL);
		life_ns += clock_now_ns() - threads[i].begin_ns;
		sum.inside_ns += threads[i].inside_ns;
		sum.wait_ns += threads[i].wait_ns;
		sum.acquisitions += threads[i].acquisitions;
		sum.sleeps += threads[i].sleeps;
		sum.switches += threads[i].switches;
		sum.children += threads[i].children;
		sum.children_ns += threads[i].children_ns;
		if (samples_p99(&threads[i]) > p99_ns)
			p99_ns = samples_p99(&threads[i]);
	}
	stat_print("thread_ns", life_ns + sum.children_ns);
	stat_print("inside_ns", sum.inside_ns);
	stat_print("threads", (uint64_t)locker->threads + sum.children);
	stat_print("wait_ns", sum.wait_ns);
	stat_print("acquisitions", sum.acquisitions);
	stat_print("sleeps", sum.sleeps);
	stat_print("acquisition_p99_ns", p99_ns);
	for (i = 0; i < locker->threads; i++)
		free(threads[i].samples);
	stat_print("switches", sum.switches);
}

static void commands_obey(struct locker *locker, struct thread *threads)
{
	char line[64];

	while (command_next(line, sizeof(line)) && strcmp(line, "quit")) {
		if (!strcmp(line, "start"))
			threads_start(locker, threads);
		else if (!strcmp(line, "finish"))
			threads_finish(locker, threads);
		else
			printf("unknown %s\n", line);
		command_done();
	}
}

static void locker_init(struct locker *locker)
{
	pthread_mutexattr_t attributes;
	size_t i;

	mode_find(locker->mode);
	pthread_mutexattr_init(&attributes);
	if (!strcmp(locker->mode, "pi"))
		pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
	if (!strcmp(locker->mode, "robust"))
		pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	errno = pthread_mutex_init(&locker->mutex, &attributes);
	if (errno)
		die("pthread_mutex_init");
	pthread_rwlock_init(&locker->rwlock, NULL);
	pthread_mutex_init(&locker->gate, NULL);
	pthread_cond_init(&locker->ended, NULL);
	for (i = 0; i < CELLS; i++)
		pthread_mutex_init(&locker->cells[i].mutex, NULL);
	if (pipe(locker->pipe))
		die("pipe");
}

int main(int argc, char **argv)
{
	struct locker locker = { .mode = "mutex", .threads = 4 };
	const char *address = "127.0.0.1";
	struct thread *threads;
	long port = 0, early = 0;
	const struct option_row options[] = {
		{ "address", NULL, &address, "to listen on" },
		{ "port", &port, NULL, "to listen on; 0 for any free one" },
		{ "mode", NULL, &locker.mode, "what the threads do" },
		{ "threads", &locker.threads, NULL, "how many" },
		{ "hold-us", &locker.hold_us, NULL, "computation with the lock held" },
		{ "hold-sleep-us", &locker.hold_sleep_us, NULL,
		  "sleep with the lock held; life of a short thread" },
		{ "think-us", &locker.think_us, NULL, "sleep between" },
		{ "early", &early, NULL, "1: `start` before listening" },
		{ "children", &locker.children, NULL, "short threads per thread" },
		{ 0 },
	};

	options_parse(options, argc, argv);
	threads = calloc((size_t)locker.threads + 1, sizeof(*threads));
	if (!threads)
		die("calloc");
	locker_init(&locker);
	thread_name_set("main", 0);
	if (early)
		threads_start(&locker, threads);
	ready_print(listen_open(address, port, 16));
	commands_obey(&locker, threads);
	exit(0);
}
