// SPDX-License-Identifier: Apache-2.0
/*
 * A stack of a kind that is followed in a way of its own, and always on a CPU. It has no clients.
 *
 * --case=signal: in a handler that a timer calls wherever the program is; vdso: in the functions
 * that the kernel provides; plt: in the linkage table, and in the library behind it; alloca: frames
 * whose size is known at run time only, and aligned ones; dlopen: a library that is loaded half a
 * second after the start; deep: more frames than are kept; context: a stack in the heap; thread:
 * one of pthread_create(3).
 *
 * Prints `ready 0`, and ends with its standard input.
 */
#include <alloca.h>
#include <dlfcn.h>
#include <math.h>
#include <signal.h>
#include <sys/time.h>
#include <ucontext.h>

#include "workload.h"

#define ROUNDS 20000
#define NOINLINE __attribute__((noinline))
/* Behind a call: without something to do there is no frame of the caller while it lasts. */
#define STAY() __asm__ volatile("" ::: "memory")

static NOINLINE void burn(void)
{
	rounds_compute(ROUNDS);
	STAY();
}

/* A call is its last instruction: the return address is that of what comes behind it. */
static NOINLINE __attribute__((noreturn)) void repeat(void (*work)(void))
{
	for (;;)
		work();
}

/* --- signal ---------------------------------------------------------------------------------- */

static NOINLINE void handler_work(void)
{
	burn();
	STAY();
}

static void handler(int number)
{
	(void)number;
	handler_work();
	STAY();
}

static NOINLINE void signal_between(void)
{
	burn();
	raise(SIGUSR1);
	STAY();
}

static void signal_begin(void)
{
	const struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
	const struct itimerval often = { { 0, 300 }, { 0, 300 } };

	if (sigaction(SIGALRM, &action, NULL) || sigaction(SIGUSR1, &action, NULL) ||
	    setitimer(ITIMER_REAL, &often, NULL))
		die("no signals");
}

/* --- vdso, plt ------------------------------------------------------------------------------- */

static NOINLINE void vdso_call(void)
{
	for (int i = 0; i < 100; i++)
		clock_now_ns();
	STAY();
}

static volatile double number = 0.5;
static const char *volatile text = "a text";

static NOINLINE void plt_call(void)
{
	for (int i = 0; i < 100; i++) {
		number = fmod(number + 1.5, 7) + (double)strlen(text);
		number += (double)labs(getpid() == 1) + (double)pthread_self();
	}
	STAY();
}

/* --- alloca, deep ---------------------------------------------------------------------------- */

static NOINLINE void aligned(int depth, volatile char *bytes)
{
	volatile char block[256] __attribute__((aligned(64)));

	block[depth] = bytes[0];
	burn();
	bytes[1] = block[depth];
}

static NOINLINE void sized(int depth)
{
	volatile char *bytes = alloca((size_t)depth * 40 + 16);

	bytes[0] = (char)depth;
	if (depth)
		sized(depth - 1);
	else
		burn();
	aligned(depth, bytes);
	STAY();
}

static NOINLINE void alloca_call(void)
{
	sized(12);
	STAY();
}

static NOINLINE void deepen(int depth)
{
	volatile char frame[64];

	frame[0] = (char)depth;
	if (depth)
		deepen(depth - 1);
	burn();
	(void)frame[0];
}

static NOINLINE void deep_call(void)
{
	deepen(300);
	STAY();
}

/* --- dlopen, context, thread ------------------------------------------------------------------ */

static unsigned long (*checksum)(unsigned long, const void *, unsigned int);

static NOINLINE void dlopen_call(void)
{
	static char bytes[65536];

	bytes[0] ^= (char)checksum(0, bytes, sizeof(bytes));
	STAY();
}

static void dlopen_begin(void)
{
	void *library;

	clock_burn_us(500000);
	library = dlopen("libz.so.1", RTLD_NOW);
	if (!library)
		die("%s", dlerror());
	*(void **)&checksum = dlsym(library, "crc32");
}

static void context_main(void)
{
	repeat(burn);
}

static void context_begin(void)
{
	static ucontext_t context, here;
	size_t bytes = 65536;

	getcontext(&context);
	context.uc_stack.ss_sp = malloc(bytes);
	context.uc_stack.ss_size = bytes;
	makecontext(&context, context_main, 0);
	swapcontext(&here, &context);
}

static void *thread_main(void *unused)
{
	repeat(burn);
	return unused;
}

static void thread_begin(void)
{
	pthread_join(thread_start(thread_main, NULL), NULL);
}

/* --------------------------------------------------------------------------------------------- */

static const struct climb {
	const char *name;
	void (*begin)(void);
	void (*work)(void);
} climbs[] = {
	{ "signal", signal_begin, signal_between },
	{ "vdso", NULL, vdso_call },
	{ "plt", NULL, plt_call },
	{ "alloca", NULL, alloca_call },
	{ "dlopen", dlopen_begin, dlopen_call },
	{ "deep", NULL, deep_call },
	{ "context", context_begin, burn },
	{ "thread", thread_begin, burn },
	{ NULL, NULL, NULL },
};

static void *end_with_input(void *unused)
{
	char line[64];

	while (command_next(line, sizeof(line)))
		;
	_exit(0);
	return unused;
}

int main(int argc, char **argv)
{
	const char *name = "signal";
	const struct option_row options[] = { { "case", NULL, &name, "what kind of stack" },
					      { NULL, NULL, NULL, NULL } };
	const struct climb *climb = climbs;

	options_parse(options, argc, argv);
	while (climb->name && strcmp(climb->name, name) != 0)
		climb++;
	if (!climb->name)
		die("no such case: %s", name);
	thread_start(end_with_input, NULL);
	printf("ready 0\n");
	fflush(stdout);
	if (climb->begin)
		climb->begin();
	repeat(climb->work);
}
