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

/* In a profile: as torch names those of its own backends. */
static const char *title_of(c10d::OpType type)
{
	switch (type) {
	case c10d::OpType::BROADCAST: return "coll:broadcast";
	case c10d::OpType::ALLREDUCE:
	case c10d::OpType::ALLREDUCE_COALESCED: return "coll:all_reduce";
	case c10d::OpType::REDUCE: return "coll:reduce";
	case c10d::OpType::ALLGATHER:
	case c10d::OpType::ALLGATHER_COALESCED: return "coll:all_gather";
	case c10d::OpType::_ALLGATHER_BASE: return "coll:all_gather_into_tensor";
	case c10d::OpType::GATHER: return "coll:gather";
	case c10d::OpType::SCATTER: return "coll:scatter";
	case c10d::OpType::REDUCE_SCATTER: return "coll:reduce_scatter";
	case c10d::OpType::_REDUCE_SCATTER_BASE: return "coll:reduce_scatter_tensor";
	case c10d::OpType::ALLTOALL_BASE:
	case c10d::OpType::ALLTOALL: return "coll:all_to_all";
	case c10d::OpType::SEND: return "coll:send";
	case c10d::OpType::RECV: return "coll:recv";
	case c10d::OpType::RECVANYSOURCE: return "coll:recvAnySource";
	case c10d::OpType::BARRIER: return "coll:barrier";
	default: return "coll:other";
	}
}

Work::Work(int rank, c10d::OpType type, std::vector<at::Tensor> inputs,
	   std::vector<at::Tensor> outputs)
	: c10d::Work(rank, type, title_of(type), std::move(inputs)), outputs_(std::move(outputs))
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
