// SPDX-License-Identifier: Apache-2.0
/*
 * Burns CPU time as C++ does: in functions that are called through std::function, in a std::thread
 * and in main: that throw and catch (burn_throwing), have a stack of changing size (burn_alloca),
 * or neither (burn_plain). Which one is next is drawn for every slice.
 *
 * --threads: beside main, 1 by default.
 *
 * Commands: `stats` (throwing_ns, alloca_ns, plain_ns: CPU time in each, by the clocks of the
 * threads), `quit`.
 */
#include <alloca.h>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "workload.h"

#define SLICE_US 500
#define THROWS 40
#define ALLOCA_MAX 4096

/* Neither inlined, nor a jump where it calls last. */
#define FRAME __attribute__((noinline, noclone))
#define RETURNS __asm__ volatile("" ::: "memory")

namespace burning
{
static uint64_t slice_rounds;

struct Job {
	const char *name;
	std::function<void(unsigned int)> run;
	std::atomic<uint64_t> burned_ns;
};

FRAME static void spin(uint64_t rounds)
{
	rounds_compute(rounds);
	RETURNS;
}

FRAME static void throw_below(unsigned int depth)
{
	if (!depth)
		throw std::runtime_error("thrown");
	throw_below(depth - 1);
	RETURNS;
}

FRAME void burn_throwing(unsigned int random)
{
	for (unsigned int i = 0; i < THROWS; i++) {
		try {
			throw_below(random % 8);
		} catch (const std::runtime_error &) {
			RETURNS;
		}
	}
	spin(slice_rounds / 4);
	RETURNS;
}

FRAME void burn_alloca(unsigned int random)
{
	char *room = static_cast<char *>(alloca(random % ALLOCA_MAX + 1));

	__asm__ volatile("" ::"r"(room) : "memory");
	spin(slice_rounds);
	RETURNS;
}

FRAME void burn_plain(unsigned int)
{
	spin(slice_rounds);
	RETURNS;
}

static Job jobs[] = {
	{ "throwing_ns", burn_throwing, {} },
	{ "alloca_ns", burn_alloca, {} },
	{ "plain_ns", burn_plain, {} },
};

FRAME void work(unsigned int seed)
{
	for (;;) {
		unsigned int random = static_cast<unsigned int>(rand_r(&seed));
		Job &job = jobs[random / 64 % 3];
		uint64_t begin = clock_thread_ns();

		job.run(random);
		job.burned_ns += clock_thread_ns() - begin;
	}
}
} // namespace burning

static void *commands_obey(void *argument)
{
	char line[64];

	while (command_next(line, sizeof(line)) && strcmp(line, "quit")) {
		for (const burning::Job &job : burning::jobs)
			stat_print(job.name, job.burned_ns);
		command_done();
	}
	_exit(0); /* destructors would run beside the threads */
	return argument;
}

int main(int argc, char **argv)
{
	long port = 0, threads = 1;
	const option_row options[] = {
		{ "port", &port, nullptr, "to listen on; 0 for any free one" },
		{ "threads", &threads, nullptr, "that burn, beside main" },
		{},
	};
	std::vector<std::thread> others;

	options_parse(options, argc, argv);
	burning::slice_rounds = rounds_of_us(SLICE_US);
	ready_print(listen_open("127.0.0.1", port, 1));
	for (long i = 1; i <= threads; i++)
		others.emplace_back([i] { burning::work(static_cast<unsigned int>(i)); });
	thread_start(commands_obey, nullptr);
	burning::work(0);
	RETURNS;
	return 0;
}
