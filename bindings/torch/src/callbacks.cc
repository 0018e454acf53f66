// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include "callbacks.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>

namespace coll_torch {

namespace {

struct Pool {
	std::mutex mutex;
	std::condition_variable added;
	std::deque<std::function<void()>> queue;
	size_t threads = 0, idle = 0;
};

/* Never freed: its threads may outlive the program's last static object. */
Pool &pool()
{
	static Pool *const all = new Pool;

	return *all;
}

void callbacks_main()
{
	Pool &all = pool();
	std::unique_lock<std::mutex> lock(all.mutex);

	for (;;) {
		all.idle++;
		all.added.wait_for(lock, std::chrono::seconds(1), [&] { return !all.queue.empty(); });
		all.idle--;
		if (all.queue.empty()) {
			all.threads--;
			return;
		}
		auto callbacks = std::move(all.queue.front());

		all.queue.pop_front();
		lock.unlock();
		callbacks();
		callbacks = nullptr;
		lock.lock();
	}
}

} // namespace

/* Inside the lock. Whether there is one more. */
static bool thread_added(Pool &all)
{
	try {
		std::thread(callbacks_main).detach();
	} catch (const std::system_error &) {
		return false;
	}
	all.threads++;
	return true;
}

/* Where no thread can be made the next free one takes them; without any they run here. */
void run_callbacks(std::function<void()> callbacks)
{
	Pool &all = pool();
	std::unique_lock<std::mutex> lock(all.mutex);

	if (all.queue.size() >= all.idle && !thread_added(all) && !all.threads) {
		lock.unlock();
		callbacks();
		return;
	}
	all.queue.push_back(std::move(callbacks));
	all.added.notify_one();
}

} // namespace coll_torch
