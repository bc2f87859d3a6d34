// SPDX-License-Identifier: Apache-2.0
/*
 * A lock of which is known which thread releases it, and which waits meanwhile: the threads
 * `owner` and `taker`, and main.
 *
 * Commands: `lend N` (N times the owner has the lock for --hold-us, beginning before the taker asks
 * for it; prints lend_wait_ns, what the taker has waited by its own clock), `return N` (the same
 * with the taker as the one that has it, and the owner as the one that waits: return_wait_ns),
 * `give N` (main has it: give_wait_ns of the taker), `expire N` (main has it until the taker gives
 * up after --hold-us: expire_wait_ns), `as NAME` (what the owner is called from its next turn on),
 * `quit`.
 */
#include <semaphore.h>

#include "workload.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long hold_us = 5000;

/* A thread that waits for the lock when it is asked to, and then has it for a while. */
struct borrower {
	char name[16];
	sem_t asked, has, done;
	long keeps_us; /* how long it keeps it */
	bool gives_up;
	uint64_t wait_ns;
};

static struct borrower owner = { .name = "owner" }, taker = { .name = "taker" };

static void until(sem_t *semaphore)
{
	while (sem_wait(semaphore))
		;
}

static int lock_take(const struct borrower *borrower)
{
	struct timespec until;

	if (!borrower->gives_up)
		return pthread_mutex_lock(&lock);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += hold_us * 1000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	return pthread_mutex_timedlock(&lock, &until);
}

static void *borrower_run(void *argument)
{
	struct borrower *borrower = argument;
	uint64_t begin;

	for (;;) {
		pthread_setname_np(pthread_self(), borrower->name);
		until(&borrower->asked);
		pthread_setname_np(pthread_self(), borrower->name);
		begin = clock_now_ns();
		if (!lock_take(borrower)) {
			borrower->wait_ns += clock_now_ns() - begin;
			sem_post(&borrower->has);
			clock_sleep_us(borrower->keeps_us);
			pthread_mutex_unlock(&lock);
		} else {
			borrower->wait_ns += clock_now_ns() - begin;
		}
		sem_post(&borrower->done);
	}
	return NULL;
}

static void borrower_start(struct borrower *borrower)
{
	sem_init(&borrower->asked, 0, 0);
	sem_init(&borrower->has, 0, 0);
	sem_init(&borrower->done, 0, 0);
	thread_start(borrower_run, borrower);
}

/* @from has it when @to asks. */
static void lend(struct borrower *from, struct borrower *to)
{
	from->keeps_us = hold_us;
	to->keeps_us = 0;
	sem_post(&from->asked);
	until(&from->has);
	sem_post(&to->asked);
	until(&to->has);
	until(&to->done);
	until(&from->done);
}

static void give(bool gives_up)
{
	taker.keeps_us = 0;
	taker.gives_up = gives_up;
	pthread_mutex_lock(&lock);
	sem_post(&taker.asked);
	if (gives_up) {
		until(&taker.done);
		pthread_mutex_unlock(&lock);
	} else {
		clock_sleep_us(hold_us);
		pthread_mutex_unlock(&lock);
		until(&taker.has);
		until(&taker.done);
	}
	taker.gives_up = false;
}

static void obey(const char *what, long rounds)
{
	struct borrower *waits = strcmp(what, "return") ? &taker : &owner;
	char key[64];

	waits->wait_ns = 0;
	for (long i = 0; i < rounds; i++) {
		if (!strcmp(what, "lend"))
			lend(&owner, &taker);
		else if (!strcmp(what, "return"))
			lend(&taker, &owner);
		else
			give(!strcmp(what, "expire"));
	}
	snprintf(key, sizeof(key), "%s_wait_ns", what);
	stat_print(key, waits->wait_ns);
}

int main(int argc, char **argv)
{
	long port = 0, rounds;
	const struct option_row options[] = {
		{ "port", &port, NULL, "to listen on; 0 for any free one" },
		{ "hold-us", &hold_us, NULL, "for which the lock is held" },
		{ 0 },
	};
	char line[64], what[32];

	options_parse(options, argc, argv);
	borrower_start(&owner);
	borrower_start(&taker);
	ready_print(listen_open("127.0.0.1", port, 1));
	while (command_next(line, sizeof(line)) && strcmp(line, "quit")) {
		if (sscanf(line, "%31s %ld", what, &rounds) == 2)
			obey(what, rounds);
		else
			sscanf(line, "as %15s", owner.name);
		command_done();
	}
	return 0;
}
