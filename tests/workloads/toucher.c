// SPDX-License-Identifier: Apache-2.0
/*
 * Touches memory that is not there, in three functions, each by a further one: main, worker,
 * touch_most, touch. Which of the three is next is drawn for every page: 70, 20 and 10 % of the
 * page faults, of which the kernel counts each (getrusage(2)).
 *
 * --file: pages of this file, which are dropped before each round: each fault waits for the disk.
 * Without it pages of memory that is of no file. --call: 1: touch has the kernel write to the page,
 * by the system call read. --rest: how long after each page.
 *
 * Commands: `stats` (most, some, least: faults in each of the functions; minor, major: of the
 * thread that touches, as the kernel counts them), `quit`.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "workload.h"

#define PAGES 4096

/* Neither inlined, nor a jump where it calls last. */
#define FRAME __attribute__((noinline, noclone))
#define RETURNS __asm__ volatile("" ::: "memory")

enum { MOST, SOME, LEAST, FUNCTIONS };

static volatile char *pages;
static long page_bytes, pages_len;
static int file = -1, zeroes = -1;
static uint64_t touched[FUNCTIONS], minor, major;
static long rest_us;

FRAME static void touch(volatile char *page)
{
	if (zeroes >= 0 && read(zeroes, (char *)page, 1) != 1)
		die("/dev/zero");
	else if (file < 0)
		*page = 1;
	else
		(void)*page;
	RETURNS;
}

FRAME static void touch_most(long page)
{
	touch(pages + page * page_bytes);
	RETURNS;
}

/* Each has other code, or the compiler would make one function of all. */
FRAME static void touch_some(long page)
{
	touch(pages + page * page_bytes + 1);
	RETURNS;
}

FRAME static void touch_least(long page)
{
	touch(pages + page * page_bytes + 2);
	RETURNS;
}

/* The function is called where its name can be read: not through a table. */
FRAME static void page_touch(int function, long page)
{
	if (function == MOST)
		touch_most(page);
	else if (function == SOME)
		touch_some(page);
	else
		touch_least(page);
	RETURNS;
}

static int function_draw(unsigned int *seed)
{
	int percent = rand_r(seed) % 100;

	return percent < 70 ? MOST : percent < 90 ? SOME : LEAST;
}

/* What was touched is there no more: not here, and of a file nowhere. */
static void pages_drop(void)
{
	if (madvise((void *)pages, (size_t)(pages_len * page_bytes), MADV_DONTNEED))
		die("madvise");
	if (file >= 0 && posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED))
		die("posix_fadvise");
}

static void faults_count(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	__atomic_store_n(&minor, (uint64_t)usage.ru_minflt, __ATOMIC_RELAXED);
	__atomic_store_n(&major, (uint64_t)usage.ru_majflt, __ATOMIC_RELAXED);
}

FRAME static void worker(void)
{
	unsigned int seed = 1;

	for (long page = 0;; page++) {
		int function = function_draw(&seed);

		if (page % pages_len == 0)
			pages_drop();
		page_touch(function, page % pages_len);
		__atomic_fetch_add(&touched[function], 1, __ATOMIC_RELAXED);
		faults_count();
		clock_sleep_us(rest_us);
	}
}

static void *commands_obey(void *argument)
{
	char line[4096];

	while (command_next(line, sizeof(line)) && strcmp(line, "quit")) {
		stat_print("most", __atomic_load_n(&touched[MOST], __ATOMIC_RELAXED));
		stat_print("some", __atomic_load_n(&touched[SOME], __ATOMIC_RELAXED));
		stat_print("least", __atomic_load_n(&touched[LEAST], __ATOMIC_RELAXED));
		stat_print("minor", __atomic_load_n(&minor, __ATOMIC_RELAXED));
		stat_print("major", __atomic_load_n(&major, __ATOMIC_RELAXED));
		command_done();
	}
	exit(0);
	return argument;
}

/* Without what would bring several pages for one fault: huge pages, and reading ahead or around. */
static void pages_map(const char *path)
{
	struct stat status = { .st_size = PAGES * page_bytes };
	int advice = MADV_NOHUGEPAGE, flags = MAP_PRIVATE | MAP_ANONYMOUS;

	if (*path) {
		file = open(path, O_RDONLY | O_CLOEXEC);
		if (file < 0 || fstat(file, &status))
			die("%s", path);
		advice = MADV_RANDOM;
		flags = MAP_SHARED;
	}
	pages_len = status.st_size / page_bytes;
	pages = mmap(NULL, (size_t)(pages_len * page_bytes),
		     file < 0 ? PROT_READ | PROT_WRITE : PROT_READ, flags, file, 0);
	if (pages == MAP_FAILED ||
	    (madvise((void *)pages, (size_t)(pages_len * page_bytes), advice) && errno != EINVAL))
		die("mmap");
}

int main(int argc, char **argv)
{
	const char *path = "";
	long port = 0, call = 0;
	const struct option_row options[] = {
		{ "port", &port, NULL, "to listen on; 0 for any free one" },
		{ "file", NULL, &path, "whose pages are touched; without it memory" },
		{ "rest", &rest_us, NULL, "microseconds of rest after each page" },
		{ "call", &call, NULL, "1: the kernel touches the page" },
		{ 0 },
	};

	options_parse(options, argc, argv);
	page_bytes = sysconf(_SC_PAGESIZE);
	pages_map(path);
	if (call)
		zeroes = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	ready_print(listen_open("127.0.0.1", port, 1));
	thread_start(commands_obey, NULL);
	worker();
	RETURNS;
	return 0;
}
