// SPDX-License-Identifier: Apache-2.0
/*
 * Waits at three places that are known: thread_run, round_run, then long_wait or short_wait for a
 * lock, or nap. Each time of its own is drawn, so that no place is waited at in step with another.
 *
 * --threads: that contend for both locks. --shorts: in each round, how often for the one that is
 * held for --short-us of computation, beside once for the one that is held for --long-us of sleep.
 * --nap-us: at the end of a round.
 *
 * Commands: `run N` (N rounds of each thread; prints of each lock long_wait_ns, long_sleeps,
 * long_switches and the same of short; naps, nap_ns; by the clocks of the threads, each run for
 * itself), `block` (a thread more that waits for the lock of `long` until the next command),
 * `quit`.
 */
#include "workload.h"

/* Neither inlined, nor a jump where it calls last. */
#define FRAME __attribute__((noinline, noclone))
#define RETURNS __asm__ volatile("" ::: "memory")

static struct measured_lock long_lock = { .mutex = PTHREAD_MUTEX_INITIALIZER };
static struct measured_lock short_lock = { .mutex = PTHREAD_MUTEX_INITIALIZER };
static uint64_t naps, nap_ns;
static long threads = 4, shorts, short_us = 100, long_us = 5000, nap_us = 1000, rounds;

static long drawn(long us, unsigned int *seed)
{
	return us / 2 + (us ? rand_r(seed) % us : 0);
}

FRAME static void long_wait(void)
{
	measured_lock_take(&long_lock);
	RETURNS;
}

FRAME static void short_wait(void)
{
	measured_lock_take(&short_lock);
	RETURNS;
}

FRAME static void nap(long us)
{
	uint64_t begin = clock_now_ns();

	clock_sleep_us(us);
	__atomic_fetch_add(&nap_ns, clock_now_ns() - begin, __ATOMIC_RELAXED);
	__atomic_fetch_add(&naps, 1, __ATOMIC_RELAXED);
	RETURNS;
}

FRAME static void round_run(unsigned int *seed)
{
	long_wait();
	clock_sleep_us(drawn(long_us, seed));
	measured_lock_give(&long_lock);
	for (long i = 0; i < shorts; i++) {
		short_wait();
		clock_burn_us(drawn(short_us, seed));
		measured_lock_give(&short_lock);
	}
	if (nap_us)
		nap(drawn(nap_us, seed));
	RETURNS;
}

FRAME static void *thread_run(void *number)
{
	unsigned int seed = (unsigned int)(uintptr_t)number;

	for (long i = 0; i < rounds; i++)
		round_run(&seed);
	RETURNS;
	return NULL;
}

static void lock_print(const char *name, struct measured_lock *lock)
{
	char key[64];

	snprintf(key, sizeof(key), "%s_wait_ns", name);
	stat_print(key, lock->wait_ns);
	snprintf(key, sizeof(key), "%s_sleeps", name);
	stat_print(key, lock->sleeps);
	snprintf(key, sizeof(key), "%s_switches", name);
	stat_print(key, lock->switches);
	lock->wait_ns = lock->sleeps = lock->switches = 0;
}

static void all_run(void)
{
	pthread_t ids[64];

	if (threads > 64)
		die("--threads: 64 at most");
	for (long i = 0; i < threads; i++)
		ids[i] = thread_start(thread_run, (void *)(uintptr_t)(i + 1));
	for (long i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	lock_print("long", &long_lock);
	lock_print("short", &short_lock);
	stat_print("naps", naps);
	stat_print("nap_ns", nap_ns);
	naps = nap_ns = 0;
}

static void *blocked_run(void *argument)
{
	long_wait();
	measured_lock_give(&long_lock);
	return argument;
}

int main(int argc, char **argv)
{
	long port = 0;
	const struct option_row options[] = {
		{ "port", &port, NULL, "to listen on; 0 for any free one" },
		{ "threads", &threads, NULL, "that contend" },
		{ "shorts", &shorts, NULL, "short waits in a round" },
		{ "short-us", &short_us, NULL, "for which that lock is held" },
		{ "long-us", &long_us, NULL, "for which the other one is" },
		{ "nap-us", &nap_us, NULL, "of sleep at the end of a round" },
		{ 0 },
	};
	bool blocks = false;
	pthread_t blocked;
	char line[256];

	options_parse(options, argc, argv);
	ready_print(listen_open("127.0.0.1", port, 1));
	while (command_next(line, sizeof(line)) && strcmp(line, "quit")) {
		if (blocks) {
			measured_lock_give(&long_lock);
			pthread_join(blocked, NULL);
			blocks = false;
		}
		if (sscanf(line, "run %ld", &rounds) == 1) {
			all_run();
		} else if (!strcmp(line, "block")) {
			measured_lock_take(&long_lock);
			blocked = thread_start(blocked_run, NULL);
			blocks = true;
		}
		command_done();
	}
	return 0;
}
