/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* One operation of a group as torch sees it: waited for, asked, or a future. */
#ifndef COLL_TORCH_WORK_H
#define COLL_TORCH_WORK_H

#include <atomic>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <torch/version.h>

namespace coll_torch {

class Work : public c10d::Work {
public:
	/* `outputs`: what result() and the future give. */
	Work(int rank, c10d::OpType type, std::vector<at::Tensor> inputs,
	     std::vector<at::Tensor> outputs);

	bool wait(std::chrono::milliseconds timeout) override;
	std::vector<at::Tensor> result() override;
	int sourceRank() const override;
	c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

	/* Once. Waits end first; callbacks of the future run on another thread. */
	void end(std::exception_ptr error);
	void set_source(int source) { source_ = source; }

private:
	c10::intrusive_ptr<c10::ivalue::Future> future_;	/* under mutex_ */
	std::vector<at::Tensor> outputs_;
	bool settled_ = false;		/* under mutex_: whoever makes the future ends it */
	std::atomic<bool> ended_{ false };
	int source_ = -1;
};

/* What failed operations throw: torch.distributed.DistBackendError where torch has it. */
std::exception_ptr failure_of(const std::string &text);

} // namespace coll_torch

#endif
