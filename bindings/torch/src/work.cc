// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include "work.h"
#include "callbacks.h"

#include <sched.h>

namespace coll_torch {

using Clock = std::chrono::steady_clock;

/* A thread that sleeps takes as long to wake as a small collective takes. */
static constexpr auto spin = std::chrono::microseconds(50);

std::exception_ptr failure_of(const std::string &text)
{
#if TORCH_VERSION_MAJOR >= 2
	return std::make_exception_ptr(
		c10::DistBackendError({ __func__, __FILE__, static_cast<uint32_t>(__LINE__) }, text));
#else
	return std::make_exception_ptr(std::runtime_error(text));
#endif
}

Work::Work(int rank, c10d::OpType type, const char *title, std::vector<at::Tensor> inputs,
	   std::vector<at::Tensor> outputs)
	: c10d::Work(rank, type, title, std::move(inputs)), outputs_(std::move(outputs))
{
}

bool Work::wait(std::chrono::milliseconds timeout)
{
	const auto until = Clock::now() + spin;

	while (!ended_.load(std::memory_order_acquire) && Clock::now() < until)
		sched_yield();
	return c10d::Work::wait(timeout);
}

std::vector<at::Tensor> Work::result()
{
	return outputs_;
}

int Work::sourceRank() const
{
	return source_;
}

static void future_end(c10::ivalue::Future &future, const std::vector<at::Tensor> &outputs,
		       std::exception_ptr error)
{
	if (error)
		future.setError(error);
	else
		future.markCompleted(c10::IValue(outputs));
}

c10::intrusive_ptr<c10::ivalue::Future> Work::getFuture()
{
	std::unique_lock<std::mutex> lock(mutex_);

	if (future_)
		return future_;
	future_ = c10::make_intrusive<c10::ivalue::Future>(
		c10::ListType::create(c10::TensorType::get()));
	auto future = future_;

	if (!settled_)
		return future;
	lock.unlock();
	future_end(*future, outputs_, exception_);
	return future;
}

void Work::end(std::exception_ptr error)
{
	c10::intrusive_ptr<c10::ivalue::Future> future;

	finish(error);
	ended_.store(true, std::memory_order_release);
	{
		std::lock_guard<std::mutex> lock(mutex_);
		settled_ = true;
		future = future_;
	}
	if (future)
		run_callbacks([future, outputs = outputs_, error] {
			future_end(*future, outputs, error);
		});
}

} // namespace coll_torch
