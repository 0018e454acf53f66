/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The backend: what torch.distributed calls of a group. */
#ifndef COLL_TORCH_PROCESS_GROUP_H
#define COLL_TORCH_PROCESS_GROUP_H

#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/version.h>
#if TORCH_VERSION_MAJOR >= 2
#include <torch/csrc/distributed/c10d/Backend.hpp>
#else
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#endif

#include "engine.h"
#include "tensors.h"

namespace coll_torch {

/* Since 2.0 a group of torch has a backend for each kind of device. */
#if TORCH_VERSION_MAJOR >= 2
using Base = c10d::Backend;
#else
using Base = c10d::ProcessGroup;
#endif

class ProcessGroup : public Base {
public:
	using WorkPointer = c10::intrusive_ptr<c10d::Work>;

	/* All ranks of the group at once. Throws. */
	ProcessGroup(c10::intrusive_ptr<c10d::Store> store, int rank, int ranks,
		     std::chrono::milliseconds timeout);

	const std::string getBackendName() const override { return "coll"; }

	WorkPointer broadcast(Tensors &tensors, const c10d::BroadcastOptions &options) override;
	WorkPointer allreduce(Tensors &tensors, const c10d::AllreduceOptions &options) override;
	WorkPointer allreduce_coalesced(Tensors &tensors,
					const c10d::AllreduceCoalescedOptions &options) override;
	WorkPointer reduce(Tensors &tensors, const c10d::ReduceOptions &options) override;
	WorkPointer allgather(std::vector<Tensors> &outputs, Tensors &inputs,
			      const c10d::AllgatherOptions &options) override;
	WorkPointer _allgather_base(at::Tensor &output, at::Tensor &input,
				    const c10d::AllgatherOptions &options) override;
	WorkPointer allgather_coalesced(std::vector<Tensors> &outputs, Tensors &inputs,
					const c10d::AllgatherOptions &options) override;
	WorkPointer gather(std::vector<Tensors> &outputs, Tensors &inputs,
			   const c10d::GatherOptions &options) override;
	WorkPointer scatter(Tensors &outputs, std::vector<Tensors> &inputs,
			    const c10d::ScatterOptions &options) override;
	WorkPointer reduce_scatter(Tensors &outputs, std::vector<Tensors> &inputs,
				   const c10d::ReduceScatterOptions &options) override;
	WorkPointer _reduce_scatter_base(at::Tensor &output, at::Tensor &input,
					 const c10d::ReduceScatterOptions &options) override;
	WorkPointer alltoall_base(at::Tensor &output, at::Tensor &input,
				  std::vector<int64_t> &output_splits, std::vector<int64_t> &input_splits,
				  const c10d::AllToAllOptions &options) override;
	WorkPointer alltoall(Tensors &outputs, Tensors &inputs,
			     const c10d::AllToAllOptions &options) override;
	WorkPointer send(Tensors &tensors, int rank, int tag) override;
	WorkPointer recv(Tensors &tensors, int rank, int tag) override;
	WorkPointer recvAnysource(Tensors &tensors, int tag) override;
	WorkPointer barrier(const c10d::BarrierOptions &options) override;
	void monitoredBarrier(const c10d::BarrierOptions &options, bool wait_all_ranks) override;
	void setSequenceNumberForGroup() override {}
	uint64_t getSequenceNumberForGroup() override { return sequence_; }

private:
	struct Call;

	WorkPointer post(Call call);
	WorkPointer reduce_all(const char *name, c10d::OpType type, const Tensors &tensors,
			       const c10d::AllreduceOptions &options);
	WorkPointer receive(const char *name, c10d::OpType type, Tensors &tensors, int rank, int tag);

	const c10::intrusive_ptr<c10d::Store> store_;
	const std::chrono::milliseconds timeout_;
	std::atomic<uint64_t> sequence_{ 0 }, monitored_{ 0 };
	Engine engine_;
};

} // namespace coll_torch

#endif
