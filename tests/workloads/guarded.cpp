// SPDX-License-Identifier: Apache-2.0
/*
 * Threads that wait for locks as C++ does, by way of functions of its library that are not inlined:
 * take_guard by std::lock_guard, which is held for 2 ms, and take_unique by std::unique_lock and
 * std::lock, held for 1 ms. Two threads at each of them.
 *
 * Commands: `run N` (each N times; prints guard_ns and unique_ns, which they have waited, by their
 * own clocks, in this run), `quit`.
 */
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "workload.h"

#define GUARD_US 2000
#define UNIQUE_US 1000

namespace
{
std::mutex guarded, first, second;
std::atomic<uint64_t> guard_ns, unique_ns;

#pragma GCC push_options
#pragma GCC optimize("O0")

void take_guard()
{
	uint64_t begin = clock_now_ns();
	std::lock_guard<std::mutex> guard(guarded);

	guard_ns += clock_now_ns() - begin;
	clock_sleep_us(GUARD_US);
}

void take_unique()
{
	uint64_t begin = clock_now_ns();
	std::unique_lock<std::mutex> one(first, std::defer_lock), other(second, std::defer_lock);

	std::lock(one, other);
	unique_ns += clock_now_ns() - begin;
	clock_sleep_us(UNIQUE_US);
}

#pragma GCC pop_options

void run(long rounds)
{
	std::vector<std::thread> threads;

	guard_ns = unique_ns = 0;
	for (int i = 0; i < 2; i++)
		for (void (*take)() : { take_guard, take_unique })
			threads.emplace_back([=] {
				for (long round = 0; round < rounds; round++)
					take();
			});
	for (std::thread &thread : threads)
		thread.join();
	stat_print("guard_ns", guard_ns);
	stat_print("unique_ns", unique_ns);
}
} // namespace

int main(int argc, char **argv)
{
	long port = 0, rounds;
	const option_row options[] = {
		{ "port", &port, nullptr, "to listen on; 0 for any free one" },
		{},
	};
	char line[64];

	options_parse(options, argc, argv);
	ready_print(listen_open("127.0.0.1", port, 1));
	while (command_next(line, sizeof(line)) && strcmp(line, "quit")) {
		if (sscanf(line, "run %ld", &rounds) == 1)
			run(rounds);
		command_done();
	}
	return 0;
}
