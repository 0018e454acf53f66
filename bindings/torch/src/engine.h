/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * A thread and a context of libcoll for one group. Torch calls from any thread; a context is one
 * thread's. So operations go to this thread by a queue, and it starts them in the order of the
 * calls, lets all in flight progress together, and ends them.
 */
#ifndef COLL_TORCH_ENGINE_H
#define COLL_TORCH_ENGINE_H

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include <coll.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "work.h"

namespace coll_torch {

struct Operation {
	const char *name;		/* "allreduce" */
	/* Calls the library. */
	std::function<int(coll_group *, coll_run **)> start;
	/* Writes the results, when the run has ended well. May throw. */
	std::function<void()> finish;
	std::chrono::milliseconds timeout;	/* below 0: the group's */
	c10::intrusive_ptr<Work> work;
	coll_run *run = nullptr;
	std::chrono::steady_clock::time_point started;
};

class Engine {
public:
	/* Waits until all ranks have come, at most for the timeout. Throws. */
	Engine(c10::intrusive_ptr<c10d::Store> store, int rank, int ranks,
	       std::chrono::milliseconds timeout);
	~Engine();
	Engine(const Engine &) = delete;
	Engine &operator=(const Engine &) = delete;

	void post(Operation operation);
	/* Its thread ends what is in flight, within some seconds, and leaves the job. */
	void begin_close();
	/* The same, and waits for it. May be called again. */
	void close();

private:
	using Clock = std::chrono::steady_clock;

	void thread_main();
	void open();
	void loop();
	bool take();
	bool start(Operation &operation);
	bool progress();
	bool is_closing();
	bool gives_up() const;
	void limit_flight();
	void limit(Operation &operation);
	void sleep(Clock::time_point active);
	void fail(Operation &operation, int error);
	void end_flight();
	void fail_all(const std::string &text);
	void leave();
	void wake();

	const c10::intrusive_ptr<c10d::Store> store_;
	const int rank_, ranks_;
	const std::chrono::milliseconds timeout_;
	const int pid_;
	int wake_fd_;
	std::thread thread_;

	std::mutex mutex_;
	std::condition_variable opened_;
	bool open_done_ = false;
	std::string open_error_;
	std::deque<Operation> queue_;
	bool closing_ = false;

	/* The thread's own. */
	coll_context *context_ = nullptr;
	coll_group *world_ = nullptr;
	std::vector<Operation> flight_;
	Clock::time_point give_up_;	/* when what is in flight has failed, once the group closes */
};

/* Closes all engines: at the end of the program, before torch's own end. */
void close_all();

} // namespace coll_torch

#endif
