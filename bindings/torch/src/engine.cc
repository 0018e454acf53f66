// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include "engine.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <set>
#include <sys/eventfd.h>
#include <system_error>
#include <unistd.h>

#include <pybind11/pybind11.h>

#include "store.h"

namespace coll_torch {

/* How long the thread polls before it sleeps: a sleeper costs as much as a small collective. */
static constexpr auto spin = std::chrono::microseconds(100);
/* Only calls of the library notice that a deadline has passed. */
static constexpr int flight_slice_ms = 50, idle_slice_ms = 1000;
/* What is in flight when a group is closed may still end well. Leaving the job takes at most as long. */
static constexpr auto drain = std::chrono::seconds(10);
/* Of that at least, for a group that is closed after others; and how soon after. */
static constexpr auto drain_least = std::chrono::seconds(1), drain_gap = std::chrono::seconds(1);
/* In this time the library has noticed a deadline, and names the rank that it waited for. */
static constexpr auto notice = std::chrono::seconds(1);
/* The longest time that the library takes, a year. More ms would wrap as ns. */
static constexpr std::chrono::milliseconds time_max = std::chrono::hours(365 * 24);

/* The thread of an engine may need Python's lock: to free a tensor that Python knows, or for a store of Python's. */
template <typename Function> static void wait_without_python(Function function)
{
	if (Py_IsInitialized() && PyGILState_Check()) {
		pybind11::gil_scoped_release release;

		function();
	} else {
		function();
	}
}

/* ---- all engines ---------------------------------------------------------- */

static std::mutex &engines_mutex()
{
	static auto *const mutex = new std::mutex;

	return *mutex;
}

static std::set<Engine *> &engines()
{
	static auto *const all = new std::set<Engine *>;

	return *all;
}

/* Their times run together. Who destroys one meanwhile waits for the mutex, without Python's lock. */
void close_all()
{
	wait_without_python([] {
		std::lock_guard<std::mutex> lock(engines_mutex());

		for (Engine *engine : engines())
			engine->begin_close();
		for (Engine *engine : engines())
			engine->close();
	});
}

/* ---- closing one after the other ------------------------------------------ */

/*
 * destroy_process_group() closes a program's groups one after the other, and a rank that has stopped keeps them
 * all: they share the time in which what is in flight may end.
 */
class Patience {
public:
	using Clock = std::chrono::steady_clock;

	/* Until when, for a group that closes now; end() when it has. */
	Clock::time_point begin()
	{
		std::lock_guard<std::mutex> lock(mutex_);
		const auto now = Clock::now();

		if (!closing_++ && (!used_up_ || now > ended_ + drain_gap))
			until_ = now + drain;
		return std::max(until_, now + drain_least);
	}

	/* `used_up`: something was in flight until the end. */
	void end(bool used_up)
	{
		std::lock_guard<std::mutex> lock(mutex_);

		closing_--;
		used_up_ = used_up;
		ended_ = Clock::now();
	}

private:
	std::mutex mutex_;
	int closing_ = 0;
	bool used_up_ = false;
	Clock::time_point until_, ended_;
};

static Patience &patience()
{
	static auto *const all = new Patience;

	return *all;
}

/* ---- from any thread ------------------------------------------------------ */

/* The thread takes no signals: they are the program's. */
static std::thread thread_without_signals(std::function<void()> function)
{
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	try {
		std::thread thread(std::move(function));

		pthread_sigmask(SIG_SETMASK, &old, nullptr);
		return thread;
	} catch (...) {
		pthread_sigmask(SIG_SETMASK, &old, nullptr);
		throw;
	}
}

Engine::Engine(c10::intrusive_ptr<c10d::Store> store, int rank, int ranks,
	       std::chrono::milliseconds timeout)
	: store_(std::move(store)), rank_(rank), ranks_(ranks), timeout_(timeout), pid_(getpid()),
	  wake_fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC))
{
	if (wake_fd_ < 0)
		throw std::system_error(errno, std::generic_category(), "coll: eventfd");
	try {
		thread_ = thread_without_signals([this] { thread_main(); });
	} catch (...) {
		::close(wake_fd_);
		throw;
	}

	std::unique_lock<std::mutex> lock(mutex_);
	opened_.wait(lock, [this] { return open_done_; });
	if (!open_error_.empty()) {
		lock.unlock();
		thread_.join();
		::close(wake_fd_);
		std::rethrow_exception(failure_of(open_error_));
	}
	lock.unlock();

	wait_without_python([this] {
		std::lock_guard<std::mutex> all(engines_mutex());
		engines().insert(this);
	});
}

Engine::~Engine()
{
	if (pid_ == getpid())
		wait_without_python([this] {
			std::lock_guard<std::mutex> lock(engines_mutex());
			engines().erase(this);
		});
	close();
	if (pid_ == getpid())
		::close(wake_fd_);
}

/* A fork has no such thread, and its copy of the mutex may be held. */
void Engine::begin_close()
{
	if (pid_ != getpid())
		return;
	{
		std::lock_guard<std::mutex> lock(mutex_);
		closing_ = true;
	}
	wake();
}

/* A fork has no such thread: what it has of the engine is left alone. */
void Engine::close()
{
	if (pid_ != getpid()) {
		if (thread_.joinable())
			thread_.detach();
		return;
	}
	begin_close();
	if (thread_.joinable())
		wait_without_python([this] { thread_.join(); });
}

void Engine::wake()
{
	const uint64_t one = 1;

	if (write(wake_fd_, &one, sizeof(one)) < 0)
		return;		/* it is readable already */
}

void Engine::post(Operation operation)
{
	/* First: in a fork the mutex may be held for ever. */
	if (pid_ != getpid())
		throw std::runtime_error(std::string("coll: ") + operation.name + ": this process is "
					 "a fork of the one that made the group; valid: a group of its own");
	{
		std::lock_guard<std::mutex> lock(mutex_);

		if (closing_)
			throw std::runtime_error(std::string("coll: ") + operation.name + ": the group was "
						 "destroyed");
		queue_.push_back(std::move(operation));
	}
	wake();
}

/* ---- the thread ----------------------------------------------------------- */

void Engine::open()
{
	const coll_job job = job_of(store_.get(), rank_, ranks_);
	/* Work is started and awaited: of that nothing follows (coll(7), measure), and a survey makes a root wait. */
	const std::string options = "deadline=" + std::to_string(std::min(timeout_, time_max).count()) + "ms" +
				    (std::getenv("COLL_MEASURE") ? "" : " measure=off");

	const int error = coll_open_with(options.c_str(), &job, &context_);

	if (error)
		open_error_ = std::string("coll: init: ") + coll_context_error(nullptr);
	else
		world_ = coll_world(context_);
}

void Engine::thread_main()
{
	bool failed;

	open();
	{
		std::lock_guard<std::mutex> lock(mutex_);

		failed = !open_error_.empty();
		open_done_ = true;
		opened_.notify_all();
	}
	if (failed)
		return;
	loop();
	end_flight();
	fail_all("the group was destroyed before it ended");
	leave();
	patience().end(gives_up() && Clock::now() >= give_up_);
}

/* At most for the world's deadline, and the group's own may be half an hour. */
void Engine::leave()
{
	const std::string time = std::to_string(drain.count()) + "s";
	const int error = timeout_ > drain ? coll_group_set(world_, "deadline", time.c_str()) : 0;

	(void)error;		/* then it may take longer */
	coll_close(context_);
}

void Engine::loop()
{
	auto active = Clock::now();

	for (;;) {
		if (take() | progress())
			active = Clock::now();
		if (!gives_up() && is_closing())
			limit_flight();
		{
			std::lock_guard<std::mutex> lock(mutex_);

			if (!queue_.empty())
				continue;
			if (gives_up() && (flight_.empty() || Clock::now() > give_up_ + notice))
				return;
		}
		sleep(active);
	}
}

bool Engine::is_closing()
{
	std::lock_guard<std::mutex> lock(mutex_);

	return closing_;
}

bool Engine::gives_up() const
{
	return give_up_ != Clock::time_point();
}

/* The group closes: what is in flight ends in the time that is left, with the name of the rank it waits for. */
void Engine::limit_flight()
{
	give_up_ = patience().begin();
	for (Operation &operation : flight_)
		limit(operation);
}

void Engine::limit(Operation &operation)
{
	const std::chrono::nanoseconds left = std::max<Clock::duration>(give_up_ - operation.started,
									std::chrono::nanoseconds(1));

	if (std::min(operation.timeout.count() > 0 ? operation.timeout : timeout_, time_max) > left)
		coll_run_deadline(operation.run, left.count());
}

/* Starts what was posted. Whether something was. */
bool Engine::take()
{
	std::deque<Operation> posted;

	{
		std::lock_guard<std::mutex> lock(mutex_);
		posted.swap(queue_);
	}
	for (Operation &operation : posted)
		if (start(operation))
			flight_.push_back(std::move(operation));
	return !posted.empty();
}

bool Engine::start(Operation &operation)
{
	const int error = operation.start(world_, &operation.run);

	if (error) {
		fail(operation, error);
		return false;
	}
	if (operation.timeout.count() >= 0)
		coll_run_deadline(operation.run,
				  std::chrono::nanoseconds(std::min(operation.timeout, time_max)).count());
	operation.started = Clock::now();
	if (gives_up())		/* it was posted before the group closed */
		limit(operation);
	return true;
}

void Engine::fail(Operation &operation, int error)
{
	const char *why = coll_last_error(world_);

	operation.work->end(failure_of(std::string("coll: ") + operation.name + " on rank " +
				       std::to_string(rank_) + " of " + std::to_string(ranks_) + ": " +
				       (*why ? why : coll_strerror(error))));
}

/* Runs end in any order. An error of the engine itself ends them all: waiting says so. */
bool Engine::progress()
{
	bool any = false;
	size_t i = 0;

	if (flight_.empty() && coll_progress(context_))
		return false;
	while (i < flight_.size()) {
		Operation operation;
		int done = 0, error = coll_run_test(&flight_[i].run, &done);

		if (error && !done && flight_[i].run)
			error = coll_run_wait(&flight_[i].run);
		else if (!done && !error) {
			i++;
			continue;
		}
		any = true;
		operation = std::move(flight_[i]);
		flight_.erase(flight_.begin() + i);
		if (error) {
			fail(operation, error);
			continue;
		}
		std::exception_ptr failed;

		try {
			operation.finish();
		} catch (...) {
			failed = std::current_exception();
		}
		operation.work->end(failed);
	}
	return any;
}

void Engine::sleep(Clock::time_point active)
{
	pollfd fds[] = { { wake_fd_, POLLIN, 0 }, { -1, POLLIN, 0 } };
	uint64_t count;

	if (!flight_.empty() && Clock::now() < active + spin) {
		sched_yield();
		return;
	}
	fds[1].fd = coll_fd(context_);
	poll(fds, 2, flight_.empty() ? idle_slice_ms : flight_slice_ms);
	if (fds[0].revents && read(wake_fd_, &count, sizeof(count)) < 0)
		return;		/* another read it */
}

/* What the library still sends from, or receives into, is freed after this. */
void Engine::end_flight()
{
	if (!flight_.empty())
		coll_revoke(world_);
	for (Operation &operation : flight_) {
		const int error = operation.run ? coll_run_wait(&operation.run) : 0;

		(void)error;		/* fail_all() says why */
	}
}

void Engine::fail_all(const std::string &text)
{
	std::deque<Operation> posted;

	{
		std::lock_guard<std::mutex> lock(mutex_);
		posted.swap(queue_);
	}
	for (Operation &operation : flight_)
		posted.push_back(std::move(operation));
	flight_.clear();
	for (Operation &operation : posted)
		operation.work->end(failure_of(std::string("coll: ") + operation.name + ": " + text));
}

} // namespace coll_torch
