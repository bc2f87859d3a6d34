// SPDX-License-Identifier: Apache-2.0
/*
 * pool PORT: threads that wait for work in every way that the C library offers, and get some now
 * and then. It listens (and answers no client), because only what listens is a workload.
 *
 * `contend KIND` on standard input makes threads lock-N contend for a lock of that kind for a few
 * seconds and prints what their own clocks say.
 */
#include "../workloads/workload.h"

#include <semaphore.h>

#define WORKERS 4
#define CONTENDERS 4
#define CONTEND_US 3000000
#define HOLD_US 2000
#define THINK_US 1000
#define PACE_US 5000 /* between two pieces of work */
#define TIMEOUT_NS 100000000

/* A queue without contents: pieces of work that wait. */
struct queue {
	pthread_mutex_t mutex;
	pthread_cond_t filled;
	unsigned int pieces;
};

static struct queue queue, own[WORKERS], timed;
static sem_t semaphore;
static pthread_barrier_t barrier;
static pthread_t first;

static void queue_init(struct queue *to, clockid_t clock)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	if (pthread_condattr_setclock(&attributes, clock))
		die("no such clock");
	pthread_mutex_init(&to->mutex, NULL);
	pthread_cond_init(&to->filled, &attributes);
}

/* No thread is woken while the mutex is held, and none waits for it. */
static void queue_put(struct queue *to)
{
	while (pthread_mutex_trylock(&to->mutex))
		clock_sleep_us(1000);
	to->pieces++;
	pthread_mutex_unlock(&to->mutex);
	pthread_cond_signal(&to->filled);
}

static void *queue_serve(void *argument)
{
	struct queue *from = argument;

	thread_name_set("idle", 0);
	for (;;) {
		pthread_mutex_lock(&from->mutex);
		while (!from->pieces)
			pthread_cond_wait(&from->filled, &from->mutex);
		from->pieces--;
		pthread_mutex_unlock(&from->mutex);
	}
	return NULL;
}

static void *timed_serve(void *argument)
{
	struct queue *from = argument;
	struct timespec until;
	uint64_t at;

	thread_name_set("idle", 1);
	for (;;) {
		at = clock_now_ns() + TIMEOUT_NS;
		until.tv_sec = (time_t)(at / NS_PER_S);
		until.tv_nsec = (long)(at % NS_PER_S);
		pthread_mutex_lock(&from->mutex);
		if (!from->pieces)
			pthread_cond_timedwait(&from->filled, &from->mutex, &until);
		if (from->pieces)
			from->pieces--;
		pthread_mutex_unlock(&from->mutex);
	}
	return NULL;
}

static void *semaphore_serve(void *argument)
{
	thread_name_set("idle", 2);
	for (;;)
		sem_wait(&semaphore);
	return argument;
}

static void *barrier_serve(void *argument)
{
	thread_name_set("idle", 3);
	for (;;)
		pthread_barrier_wait(&barrier);
	return argument;
}

/* In a pid namespace of its own the thread that is waited for has the id 2. */
static void *join_first(void *argument)
{
	thread_name_set("idle", 4);
	pthread_join(first, NULL);
	return argument;
}

static void *sleep_for_ever(void *argument)
{
	thread_name_set("first", 0);
	for (;;)
		clock_sleep_us(1000000);
	return argument;
}

/* A little work at a time. The third value of a counter stays for a while, in case it is told. */
static void *produce(void *argument)
{
	unsigned int round;

	thread_name_set("producer", 0);
	for (round = 0;; round++) {
		clock_sleep_us(round < 4 * WORKERS ? PACE_US : 20 * PACE_US);
		if (round % 64 == 2 * WORKERS)
			clock_sleep_us(2000000);
		queue_put(&own[round % WORKERS]);
		queue_put(round % 2 ? &queue : &timed);
		sem_post(&semaphore);
		if (round % 16 == 1)
			pthread_barrier_wait(&barrier);
	}
	return argument;
}

static void idle_start(void)
{
	int i;

	first = thread_start(sleep_for_ever, NULL);
	queue_init(&queue, CLOCK_REALTIME);
	queue_init(&timed, CLOCK_MONOTONIC);
	sem_init(&semaphore, 0, 0);
	pthread_barrier_init(&barrier, NULL, 2);
	for (i = 0; i < WORKERS; i++) {
		queue_init(&own[i], CLOCK_REALTIME);
		thread_start(queue_serve, &own[i]);
		thread_start(queue_serve, &queue);
		thread_start(semaphore_serve, NULL);
	}
	thread_start(timed_serve, &timed); /* two would wait for each other where both time out */
	thread_start(barrier_serve, NULL);
	thread_start(join_first, NULL);
	thread_start(produce, NULL);
}

/* --- contention ------------------------------------------------------------------------------- */

static pthread_mutex_t mutex;
static pthread_rwlock_t rwlock;

static void mutex_take(long number)
{
	(void)number;
	pthread_mutex_lock(&mutex);
}

static void mutex_take_timed(long number)
{
	struct timespec until;

	(void)number;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 60;
	if (pthread_mutex_timedlock(&mutex, &until))
		die("pthread_mutex_timedlock");
}

static void mutex_give(void)
{
	pthread_mutex_unlock(&mutex);
}

static void rwlock_take(long number)
{
	if (number % 2)
		pthread_rwlock_rdlock(&rwlock);
	else
		pthread_rwlock_wrlock(&rwlock);
}

static void rwlock_give(void)
{
	pthread_rwlock_unlock(&rwlock);
}

/* A lock of the C library's own. */
static void stream_take(long number)
{
	(void)number;
	flockfile(stderr);
}

static void stream_give(void)
{
	funlockfile(stderr);
}

struct kind {
	const char *name;
	void (*take)(long number);
	void (*give)(void);
	int protocol, robust, type;
};

static const struct kind kinds[] = {
	{ "mutex", mutex_take, mutex_give, 0, 0, 0 },
	{ "recursive", mutex_take, mutex_give, 0, 0, PTHREAD_MUTEX_RECURSIVE },
	{ "timed", mutex_take_timed, mutex_give, 0, 0, 0 },
	{ "robust", mutex_take, mutex_give, 0, PTHREAD_MUTEX_ROBUST, 0 },
	{ "pi", mutex_take, mutex_give, PTHREAD_PRIO_INHERIT, 0, 0 },
	{ "rwlock", rwlock_take, rwlock_give, 0, 0, 0 },
	{ "stream", stream_take, stream_give, 0, 0, 0 },
};

struct contender {
	const struct kind *kind;
	long number;
	uint64_t end_ns, wait_ns, sleeps;
	pthread_t id;
};

static void *contend(void *argument)
{
	struct contender *self = argument;

	thread_name_set("lock", self->number);
	clock_sleep_us(20000); /* a thread's new name is seen when it is switched */
	while (clock_now_ns() < self->end_ns) {
		uint64_t sleeps, begin;

		clock_sleep_us(THINK_US);
		sleeps = thread_sleeps();
		begin = clock_now_ns();
		self->kind->take(self->number);
		self->wait_ns += clock_now_ns() - begin;
		self->sleeps += thread_sleeps() > sleeps;
		clock_sleep_us(HOLD_US);
		self->kind->give();
	}
	return NULL;
}

static const struct kind *kind_find(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(name, kinds[i].name))
			return &kinds[i];
	die("no lock %s", name);
}

static void locks_init(const struct kind *kind)
{
	pthread_mutexattr_t attributes;

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_settype(&attributes, kind->type);
	if (kind->protocol)
		pthread_mutexattr_setprotocol(&attributes, kind->protocol);
	if (kind->robust)
		pthread_mutexattr_setrobust(&attributes, kind->robust);
	errno = pthread_mutex_init(&mutex, &attributes);
	if (errno)
		die("pthread_mutex_init");
	pthread_rwlock_init(&rwlock, NULL);
}

static void contend_all(const struct kind *kind)
{
	struct contender contenders[CONTENDERS];
	uint64_t wait_ns = 0, sleeps = 0;
	long i;

	locks_init(kind);
	for (i = 0; i < CONTENDERS; i++) {
		contenders[i] = (struct contender){
			.kind = kind,
			.number = i,
			.end_ns = clock_now_ns() + CONTEND_US * NS_PER_US,
		};
		contenders[i].id = thread_start(contend, &contenders[i]);
	}
	for (i = 0; i < CONTENDERS; i++) {
		pthread_join(contenders[i].id, NULL);
		wait_ns += contenders[i].wait_ns;
		sleeps += contenders[i].sleeps;
	}
	stat_print("wait_ns", wait_ns);
	stat_print("sleeps", sleeps);
}

int main(int argc, char **argv)
{
	char line[64];
	int listener;

	if (argc != 2)
		die("pool PORT");
	listener = listen_open("127.0.0.1", strtol(argv[1], NULL, 10), 16);
	idle_start();
	ready_print(listener);
	while (command_next(line, sizeof(line))) {
		if (!strncmp(line, "contend ", 8))
			contend_all(kind_find(line + 8));
		command_done();
	}
	exit(0);
}
