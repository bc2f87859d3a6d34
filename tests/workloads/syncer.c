// SPDX-License-Identifier: Apache-2.0
/*
 * Threads that wait for a disk, with their own clocks as reference, beside threads that do not. It
 * listens (and answers no client), because only what listens is a workload.
 *
 * --threads threads, named syncer-N, each write --bytes at the start of a file of their own in
 * --directory and fsync it, again and again; two threads named sleeper-N only sleep.
 *
 * Commands: `start`, `finish` (end all threads, join them, print), `quit`.
 */
#include <fcntl.h>

#include "workload.h"

#define SLEEPERS 2

struct syncer {
	const char *directory;
	long threads;
	long bytes;
	bool stop; /* atomic */
};

/* One thread and what its own clock says. */
struct thread {
	struct syncer *syncer;
	pthread_t id;
	long number;
	int fd;
	uint64_t life_ns; /* of the loop */
	uint64_t sync_ns; /* around fsync */
	uint64_t longest_ns; /* of the rounds of the loop */
	uint64_t busy_ns; /* of the loop: on a CPU or in a run queue, as the scheduler says */
	uint64_t syncs;
	uint64_t sleeps; /* in fsync: it may sleep more than once */
};

static bool stopped(struct syncer *syncer)
{
	return __atomic_load_n(&syncer->stop, __ATOMIC_ACQUIRE);
}

/* The file has no name any more: nothing is left behind, however the process ends. */
static int file_open(const struct thread *thread)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/syncer-%d-%ld", thread->syncer->directory, getpid(),
		 thread->number);
	fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0 || unlink(path))
		die("cannot write to %s", path);
	return fd;
}

static void file_sync(struct thread *thread)
{
	uint64_t sleeps = thread_sleeps(), begin = clock_now_ns();

	if (fsync(thread->fd))
		die("fsync");
	thread->sync_ns += clock_now_ns() - begin;
	thread->sleeps += thread_sleeps() - sleeps;
	thread->syncs++;
}

/* Time that the calling thread has spent on a CPU and in a run queue so far. */
static uint64_t thread_busy_ns(void)
{
	FILE *file = fopen("/proc/thread-self/schedstat", "re");
	uint64_t running, runnable;

	if (!file || fscanf(file, "%" SCNu64 " %" SCNu64, &running, &runnable) != 2)
		die("schedstat");
	fclose(file);
	return running + runnable;
}

static void round_add(struct thread *thread, uint64_t ns)
{
	if (ns > thread->longest_ns)
		thread->longest_ns = ns;
}

static void *syncer_main(void *argument)
{
	struct thread *thread = argument;
	size_t size = (size_t)thread->syncer->bytes;
	char *bytes = calloc(1, size);
	uint64_t begin, busy, round;

	if (!bytes)
		die("calloc");
	thread_name_set("syncer", thread->number);
	thread->fd = file_open(thread);
	begin = clock_now_ns();
	busy = thread_busy_ns();
	while (!stopped(thread->syncer)) {
		round = clock_now_ns();
		memset(bytes, (int)thread->syncs, size);
		if (pwrite(thread->fd, bytes, size, 0) != (ssize_t)size)
			die("write");
		file_sync(thread);
		round_add(thread, clock_now_ns() - round);
	}
	thread->busy_ns = thread_busy_ns() - busy;
	thread->life_ns = clock_now_ns() - begin;
	close(thread->fd);
	free(bytes);
	return NULL;
}

static void *sleeper_main(void *argument)
{
	struct thread *thread = argument;

	thread_name_set("sleeper", thread->number);
	while (!stopped(thread->syncer))
		clock_sleep_us(1000);
	return NULL;
}

static void threads_start(struct syncer *syncer, struct thread *threads)
{
	long i;

	for (i = 0; i < syncer->threads + SLEEPERS; i++) {
		threads[i] = (struct thread){ .syncer = syncer, .number = i };
		threads[i].id = thread_start(i < syncer->threads ? syncer_main : sleeper_main,
					     &threads[i]);
	}
}

static void threads_finish(struct syncer *syncer, struct thread *threads)
{
	struct thread sum = { 0 };
	long i;

	__atomic_store_n(&syncer->stop, true, __ATOMIC_RELEASE);
	for (i = 0; i < syncer->threads + SLEEPERS; i++) {
		pthread_join(threads[i].id, NULL);
		sum.life_ns += threads[i].life_ns;
		sum.sync_ns += threads[i].sync_ns;
		round_add(&sum, threads[i].longest_ns);
		sum.busy_ns += threads[i].busy_ns;
		sum.syncs += threads[i].syncs;
		sum.sleeps += threads[i].sleeps;
	}
	stat_print("life_ns", sum.life_ns);
	stat_print("sync_ns", sum.sync_ns);
	stat_print("longest_ns", sum.longest_ns);
	stat_print("busy_ns", sum.busy_ns);
	stat_print("syncs", sum.syncs);
	stat_print("sleeps", sum.sleeps);
}

static void commands_obey(struct syncer *syncer, struct thread *threads)
{
	char line[64];

	while (command_next(line, sizeof(line)) && strcmp(line, "quit")) {
		if (!strcmp(line, "start"))
			threads_start(syncer, threads);
		else if (!strcmp(line, "finish"))
			threads_finish(syncer, threads);
		else
			printf("unknown %s\n", line);
		command_done();
	}
}

int main(int argc, char **argv)
{
	struct syncer syncer = { .directory = ".", .threads = 2, .bytes = 4096 };
	const char *address = "127.0.0.1";
	struct thread *threads;
	long port = 0;
	const struct option_row options[] = {
		{ "address", NULL, &address, "to listen on" },
		{ "port", &port, NULL, "to listen on; 0 for any free one" },
		{ "directory", NULL, &syncer.directory, "for the files, on a disk" },
		{ "threads", &syncer.threads, NULL, "how many write" },
		{ "bytes", &syncer.bytes, NULL, "written before every fsync" },
		{ 0 },
	};

	options_parse(options, argc, argv);
	threads = calloc((size_t)syncer.threads + SLEEPERS, sizeof(*threads));
	if (!threads)
		die("calloc");
	thread_name_set("main", 0);
	ready_print(listen_open(address, port, 16));
	commands_obey(&syncer, threads);
	exit(0);
}
