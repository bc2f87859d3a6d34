// SPDX-License-Identifier: Apache-2.0
//
// pool PORT: threads that wait for work in every way that C++20 offers, and get some now and then.
// See pool.c.

#include <sys/prctl.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <latch>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

static void name(const char *name)
{
	prctl(PR_SET_NAME, name);
}

// A worker whose state is 2 while it has nothing to do, and that comes back to that.
struct worker {
	std::atomic<int> state{ 2 };

	void serve()
	{
		name("idle-0");
		for (;;) {
			state.wait(2);
			state = 2;
		}
	}
	void put()
	{
		state = 1;
		state.notify_one();
	}
};

struct queue {
	std::mutex mutex;
	std::condition_variable filled;
	int pieces = 0;

	void serve(bool timed)
	{
		name(timed ? "idle-2" : "idle-1");
		for (;;) {
			std::unique_lock lock(mutex);
			if (timed)
				filled.wait_for(lock, 100ms, [this] { return pieces > 0; });
			else
				filled.wait(lock, [this] { return pieces > 0; });
			pieces -= pieces > 0;
		}
	}
	void put()
	{
		while (!mutex.try_lock())
			std::this_thread::sleep_for(1ms);
		pieces++;
		mutex.unlock();
		filled.notify_one();
	}
};

static worker workers[4];
static queue queues[4], timed;
static std::latch never(2), once(2);
static std::atomic<int> two{ 2 }, negative{ -1 }, one{ 1 };
static std::barrier<> meeting(2);
static std::counting_semaphore<> pieces(0);

static void produce()
{
	name("producer-0");
	for (int round = 0;; round++) {
		std::this_thread::sleep_for(round < 16 ? 5ms : 100ms);
		if (round % 64 == 8)
			std::this_thread::sleep_for(2s);
		workers[round % 4].put();
		queues[round % 4].put();
		timed.put();
		pieces.release();
		if (round % 16 == 1)
			meeting.arrive_and_wait();
	}
}

template <typename Main> static void start(const char *thread, Main main)
{
	std::thread([=] {
		name(thread);
		main();
	}).detach();
}

static void idle()
{
	for (int i = 0; i < 4; i++) {
		start("idle-0", [=] { workers[i].serve(); });
		start("idle-1", [=] { queues[i].serve(false); });
	}
	start("idle-2", [] { timed.serve(true); });
	start("idle-3", [] { never.wait(); });
	start("idle-4", [] { two.wait(2); });
	start("idle-5", [] { negative.wait(-1); });
	start("idle-6", [] { one.wait(1); });
	start("idle-7", [] {
		for (;;)
			meeting.arrive_and_wait();
	});
	start("idle-8", [] {
		for (;;)
			pieces.acquire();
	});
	start("producer-0", produce);
}

template <typename Take, typename Give> static void contend(Take take, Give give)
{
	std::vector<std::thread> threads;
	std::atomic<long long> waited{ 0 };
	auto end = steady::now() + 3s;

	for (int i = 0; i < 4; i++)
		threads.emplace_back([&, i] {
			name("lock-0");
			std::this_thread::sleep_for(20ms);
			while (steady::now() < end) {
				std::this_thread::sleep_for(1ms);
				auto begin = steady::now();
				take(i);
				waited += (steady::now() - begin).count();
				std::this_thread::sleep_for(2ms);
				give(i);
			}
		});
	for (auto &thread : threads)
		thread.join();
	std::cout << "wait_ns " << waited << "\n";
}

static void contend(const std::string &kind)
{
	static std::mutex mutex;
	static std::timed_mutex timed_mutex;
	static std::shared_mutex shared;

	if (kind == "mutex")
		contend([&](int) { mutex.lock(); }, [&](int) { mutex.unlock(); });
	if (kind == "timed")
		contend([&](int) { (void)timed_mutex.try_lock_for(60s); },
			[&](int) { timed_mutex.unlock(); });
	if (kind == "rwlock")
		contend([&](int i) { i % 2 ? shared.lock_shared() : shared.lock(); },
			[&](int i) { i % 2 ? shared.unlock_shared() : shared.unlock(); });
}

int main(int, char **argv)
{
	sockaddr_in address = {};
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	address.sin_family = AF_INET;
	address.sin_port = htons(std::atoi(argv[1]));
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(listener, reinterpret_cast<sockaddr *>(&address), length) ||
	    listen(listener, 16) ||
	    getsockname(listener, reinterpret_cast<sockaddr *>(&address), &length))
		return 1;
	idle();
	std::cout << "ready " << ntohs(address.sin_port) << std::endl;
	for (std::string line; std::getline(std::cin, line);) {
		if (!line.rfind("contend ", 0))
			contend(line.substr(8));
		std::cout << "ok" << std::endl;
	}
	_exit(0);
}
