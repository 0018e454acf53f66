// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Each operation is checked and its buffers are laid out here, on the caller's thread; the rest
 * is a nonblocking run on the group's thread. Data that is only moved is moved as bytes.
 *
 * Length: one function for each operation of torch.
 */
#include "process_group.h"

#include <memory>

#include "blocks.h"
#include "monitored.h"
#include "store.h"

namespace coll_torch {

using c10d::OpType;

/* One operation, before it is posted. */
struct ProcessGroup::Call {
	const char *name;
	OpType type;
	Tensors inputs, outputs;
	std::chrono::milliseconds timeout;
	std::function<int(coll_group *, coll_run **)> start;
	std::function<void(Work &)> finish;
};

ProcessGroup::ProcessGroup(c10::intrusive_ptr<c10d::Store> store, int rank, int ranks,
			   std::chrono::milliseconds timeout)
	: Base(rank, ranks), store_(store_of_group(store, rank)), timeout_(timeout),
	  engine_(store_, rank, ranks, timeout)
{
}

ProcessGroup::WorkPointer ProcessGroup::post(Call call)
{
	auto work = c10::make_intrusive<Work>(getRank(), call.type, call.inputs, call.outputs);
	Operation operation{ call.name, std::move(call.start), [] {}, call.timeout, work };

	if (call.finish)
		operation.finish = [finish = std::move(call.finish), work = work.get()] {
			/* Results go to tensors that may need a gradient. */
			at::AutoDispatchBelowADInplaceOrView guard;

			finish(*work);
		};
	sequence_++;
	engine_.post(std::move(operation));
	return work;
}

static void *memory(const at::Tensor &tensor)
{
	return tensor.defined() ? tensor.data_ptr() : nullptr;
}

static size_t elements(const at::Tensor &tensor)
{
	return tensor.numel();
}

static void check_same(const at::Tensor &one, const at::Tensor &other, const char *call,
		       const char *name)
{
	if (one.scalar_type() != other.scalar_type())
		refuse_type(call, std::string(name) + " are of " + c10::toString(one.scalar_type()) +
			    " and of " + c10::toString(other.scalar_type()) + "; valid: one type");
}

static void check_elements(const at::Tensor &tensor, size_t wanted, const char *call,
			   const char *name)
{
	if (elements(tensor) != wanted)
		refuse(call, std::string(name) + " has " + std::to_string(elements(tensor)) +
		       " elements; valid: " + std::to_string(wanted));
}

static void check_blocks(const Tensors &blocks, const at::Tensor &one, const char *call,
			 const char *name)
{
	for (const at::Tensor &block : blocks) {
		check_same(block, one, call, name);
		check_elements(block, elements(one), call, name);
	}
}

/* ---- one root ------------------------------------------------------------- */

ProcessGroup::WorkPointer ProcessGroup::broadcast(Tensors &tensors,
						  const c10d::BroadcastOptions &options)
{
	const at::Tensor tensor = only(tensors, "broadcast", "tensor");
	const int root = options.rootRank;

	check_root(options.rootRank, getSize(), "broadcast");
	const at::Tensor data = root == getRank() ? readable(tensor) : writable(tensor);

	return post({ "broadcast", OpType::BROADCAST, tensors, tensors, options.timeout,
		      [data, root](coll_group *group, coll_run **run) {
			      return coll_ibcast(memory(data), bytes_of(data), COLL_UINT8, root, group,
						 run);
		      },
		      [data, tensor, other = root != getRank()](Work &) {
			      if (other)
				      write_back(tensor, data);
		      } });
}

ProcessGroup::WorkPointer ProcessGroup::reduce(Tensors &tensors, const c10d::ReduceOptions &options)
{
	const at::Tensor tensor = only(tensors, "reduce", "tensor");
	const Reduction reduction(options.reduceOp, tensor.scalar_type(), getSize(), "reduce");
	const int root = options.rootRank;

	check_root(options.rootRank, getSize(), "reduce");
	const bool receives = root == getRank();
	at::Tensor data = readable(tensor);
	const at::Tensor input = reduction.before(data);
	const bool in_place = receives && input.data_ptr() == data.data_ptr();

	return post({ "reduce", OpType::REDUCE, tensors, tensors, options.timeout,
		      [=](coll_group *group, coll_run **run) {
			      return coll_ireduce(in_place ? COLL_IN_PLACE : memory(input),
						  receives ? memory(data) : nullptr, elements(input),
						  reduction.type, reduction.op, root, group, run);
		      },
		      [=](Work &) mutable {
			      if (!receives)
				      return;
			      reduction.after(data);
			      write_back(tensor, data);
		      } });
}

ProcessGroup::WorkPointer ProcessGroup::gather(std::vector<Tensors> &outputs, Tensors &inputs,
					       const c10d::GatherOptions &options)
{
	const at::Tensor input = readable(only(inputs, "gather", "input"));
	const int root = options.rootRank;
	const bool stay = blocks_stay(bytes_of(input));
	Tensors tensors;
	Blocks blocks;

	check_root(options.rootRank, getSize(), "gather");
	if (root == getRank()) {
		tensors = outputs.size() == 1 ? outputs[0] : Tensors();
		check_count(tensors, getSize(), "gather", "output");
		check_blocks(tensors, input, "gather", "output and input");
		blocks = Blocks::outputs(tensors, stay);
	} else if (!outputs.empty() && !outputs[0].empty()) {
		refuse("gather", "output: there are tensors; valid: none, as this rank is not the root");
	}
	return post({ "gather", OpType::GATHER, inputs, tensors, options.timeout,
		      [=](coll_group *group, coll_run **run) {
			      const size_t bytes = bytes_of(input);

			      return stay ? coll_igatherv(memory(input), bytes, blocks.memory(),
							  blocks.counts(), blocks.displs(),
							  COLL_UINT8, root, group, run) :
					    coll_igather(memory(input), blocks.memory(), bytes,
							 COLL_UINT8, root, group, run);
		      },
		      [blocks](Work &) { blocks.write_back(); } });
}

ProcessGroup::WorkPointer ProcessGroup::scatter(Tensors &outputs, std::vector<Tensors> &inputs,
						const c10d::ScatterOptions &options)
{
	const at::Tensor output = only(outputs, "scatter", "output");
	const at::Tensor data = writable(output);
	const int root = options.rootRank;
	const bool stay = blocks_stay(bytes_of(output));
	Tensors tensors;
	Blocks blocks;

	check_root(options.rootRank, getSize(), "scatter");
	if (root == getRank()) {
		tensors = inputs.size() == 1 ? inputs[0] : Tensors();
		check_count(tensors, getSize(), "scatter", "input");
		check_blocks(tensors, output, "scatter", "input and output");
		blocks = Blocks::inputs(tensors, stay);
	} else if (!inputs.empty() && !inputs[0].empty()) {
		refuse("scatter", "input: there are tensors; valid: none, as this rank is not the root");
	}
	return post({ "scatter", OpType::SCATTER, tensors, outputs, options.timeout,
		      [=](coll_group *group, coll_run **run) {
			      const size_t bytes = bytes_of(data);

			      return stay ? coll_iscatterv(blocks.memory(), blocks.counts(),
							   blocks.displs(), memory(data), bytes,
							   COLL_UINT8, root, group, run) :
					    coll_iscatter(blocks.memory(), memory(data), bytes,
							  COLL_UINT8, root, group, run);
		      },
		      [output, data](Work &) { write_back(output, data); } });
}

/* ---- reductions for all ---------------------------------------------------- */

/* Several tensors are one vector. */
ProcessGroup::WorkPointer ProcessGroup::reduce_all(const char *name, OpType type,
						   const Tensors &tensors,
						   const c10d::AllreduceOptions &options)
{
	const at::ScalarType scalar = tensors[0].scalar_type();
	const Reduction reduction(options.reduceOp, scalar, getSize(), name);
	const bool direct = tensors.size() == 1 && tensors[0].is_contiguous();
	at::Tensor data = direct ? tensors[0].detach() : flatten(tensors).view(scalar);
	const at::Tensor input = reduction.before(data);
	const bool in_place = input.data_ptr() == data.data_ptr();

	return post({ name, type, tensors, tensors, options.timeout,
		      [=](coll_group *group, coll_run **run) {
			      return coll_iallreduce(in_place ? COLL_IN_PLACE : memory(input),
						     memory(data), elements(data), reduction.type,
						     reduction.op, group, run);
		      },
		      [=](Work &) mutable {
			      reduction.after(data);
			      if (!direct)
				      unflatten(data.view(at::kByte), tensors);
		      } });
}

ProcessGroup::WorkPointer ProcessGroup::allreduce(Tensors &tensors,
						  const c10d::AllreduceOptions &options)
{
	only(tensors, "allreduce", "tensor");
	return reduce_all("allreduce", OpType::ALLREDUCE, tensors, options);
}

ProcessGroup::WorkPointer
ProcessGroup::allreduce_coalesced(Tensors &tensors, const c10d::AllreduceCoalescedOptions &options)
{
	if (tensors.empty())
		refuse("allreduce_coalesced", "there is no tensor; valid: 1 or more");
	check_tensors(tensors, "allreduce_coalesced", "tensor");
	for (const at::Tensor &tensor : tensors)
		check_same(tensor, tensors[0], "allreduce_coalesced", "tensors");
	return reduce_all("allreduce_coalesced", OpType::ALLREDUCE_COALESCED, tensors, options);
}

ProcessGroup::WorkPointer ProcessGroup::reduce_scatter(Tensors &outputs, std::vector<Tensors> &inputs,
						       const c10d::ReduceScatterOptions &options)
{
	const at::Tensor output = only(outputs, "reduce_scatter", "output");
	const Reduction reduction(options.reduceOp, output.scalar_type(), getSize(), "reduce_scatter");
	const Tensors blocks = inputs.size() == 1 ? inputs[0] : Tensors();
	std::vector<size_t> counts;
	at::Tensor data = writable(output);

	check_count(blocks, getSize(), "reduce_scatter", "input");
	for (const at::Tensor &block : blocks) {
		check_same(block, output, "reduce_scatter", "input and output");
		counts.push_back(elements(block));
	}
	check_elements(output, counts[getRank()], "reduce_scatter", "output");
	const at::Tensor input =
		reduction.before(flatten(blocks).view(output.scalar_type()));

	return post({ "reduce_scatter", OpType::REDUCE_SCATTER, blocks, outputs, options.timeout,
		      [=](coll_group *group, coll_run **run) {
			      return coll_ireduce_scatter(memory(input), memory(data), counts.data(),
							  reduction.type, reduction.op, group, run);
		      },
		      [=](Work &) mutable {
			      reduction.after(data);
			      write_back(output, data);
		      } });
}

ProcessGroup::WorkPointer
ProcessGroup::_reduce_scatter_base(at::Tensor &output, at::Tensor &input,
				   const c10d::ReduceScatterOptions &options)
{
	const char *const name = "_reduce_scatter_base";

	check_tensor(output, name, "output");
	check_tensor(input, name, "input");
	check_same(input, output, name, "input and output");
	check_elements(input, elements(output) * getSize(), name, "input");
	const Reduction reduction(options.reduceOp, output.scalar_type(), getSize(), name);
	at::Tensor data = writable(output);
	const at::Tensor from = apart(reduction.before(input), data);

	return post({ name, OpType::_REDUCE_SCATTER_BASE, { input }, { output }, options.timeout,
		      [=](coll_group *group, coll_run **run) {
			      return coll_ireduce_scatter_block(memory(from), memory(data),
								elements(data), reduction.type,
								reduction.op, group, run);
		      },
		      [=, output = output](Work &) mutable {
			      reduction.after(data);
			      write_back(output, data);
		      } });
}

/* ---- all to all ------------------------------------------------------------ */

ProcessGroup::WorkPointer ProcessGroup::allgather(std::vector<Tensors> &outputs, Tensors &inputs,
						  const c10d::AllgatherOptions &options)
{
	const at::Tensor input = readable(only(inputs, "allgather", "input"));
	const Tensors tensors = outputs.size() == 1 ? outputs[0] : Tensors();
	const bool stay = blocks_stay(bytes_of(input));

	check_count(tensors, getSize(), "allgather", "output");
	check_blocks(tensors, input, "allgather", "output and input");
	const Blocks blocks = Blocks::outputs(tensors, stay);

	return post({ "allgather", OpType::ALLGATHER, inputs, tensors, options.timeout,
		      [=](coll_group *group, coll_run **run) {
			      const size_t bytes = bytes_of(input);

			      return stay ? coll_iallgatherv(memory(input), bytes, blocks.memory(),
							     blocks.counts(), blocks.displs(),
							     COLL_UINT8, group, run) :
					    coll_iallgather(memory(input), blocks.memory(), bytes,
							    COLL_UINT8, group, run);
		      },
		      [blocks](Work &) { blocks.write_back(); } });
}

ProcessGroup::WorkPointer ProcessGroup::_allgather_base(at::Tensor &output, at::Tensor &input,
							const c10d::AllgatherOptions &options)
{
	const char *const name = "_allgather_base";

	check_tensor(output, name, "output");
	check_tensor(input, name, "input");
	check_same(output, input, name, "output and input");
	check_elements(output, elements(input) * getSize(), name, "output");
	/* Not the library's own form in place: that is another call, and other ranks' tensors may be apart. */
	const at::Tensor data = writable(output), from = apart(readable(input), data);

	return post({ name, OpType::_ALLGATHER_BASE, { input }, { output }, options.timeout,
		      [=](coll_group *group, coll_run **run) {
			      return coll_iallgather(memory(from), memory(data), bytes_of(from),
						     COLL_UINT8, group, run);
		      },
		      [output = output, data](Work &) { write_back(output, data); } });
}

/* outputs[r][i] gets the i-th input of rank r. */
ProcessGroup::WorkPointer
ProcessGroup::allgather_coalesced(std::vector<Tensors> &outputs, Tensors &inputs,
				  const c10d::AllgatherOptions &options)
{
	const char *const name = "allgather_coalesced";
	Tensors blocks;

	check_tensors(inputs, name, "input");
	if (outputs.size() != static_cast<size_t>(getSize()))
		refuse(name, "output: there are " + std::to_string(outputs.size()) +
		       " lists; valid: " + std::to_string(getSize()) + ", one for each rank");
	for (const Tensors &list : outputs) {
		if (list.size() != inputs.size())
			refuse(name, "output: a list has " + std::to_string(list.size()) +
			       " tensors; valid: " + std::to_string(inputs.size()) + ", as inputs");
		check_tensors(list, name, "output");
		for (size_t i = 0; i < list.size(); i++)
			check_blocks({ list[i] }, inputs[i], name, "output and input");
		blocks.insert(blocks.end(), list.begin(), list.end());
	}
	const at::Tensor input = flatten(inputs);
	const at::Tensor flat = at::empty({ input.numel() * getSize() }, at::kByte);

	return post({ name, OpType::ALLGATHER_COALESCED, inputs, blocks, options.timeout,
		      [=](coll_group *group, coll_run **run) {
			      return coll_iallgather(memory(input), memory(flat), bytes_of(input),
						     COLL_UINT8, group, run);
		      },
		      [flat, blocks](Work &) { unflatten(flat, blocks); } });
}

static std::vector<size_t> following(const std::vector<size_t> &counts)
{
	std::vector<size_t> displs;
	size_t at = 0;

	for (const size_t count : counts) {
		displs.push_back(at);
		at += count;
	}
	return displs;
}

/* Bytes for each rank, of rows of the first dimension; without splits all have as many. */
static std::vector<size_t> split(const at::Tensor &tensor, const std::vector<int64_t> &rows,
				 int ranks, const char *name)
{
	const int64_t all = tensor.dim() ? tensor.size(0) : 1;
	const size_t row = all ? bytes_of(tensor) / all : 0;
	std::vector<size_t> bytes;
	int64_t sum = 0;

	if (rows.empty() && all % ranks)
		refuse("alltoall_base", std::string(name) + " has " + std::to_string(all) +
		       " rows; valid: a multiple of the " + std::to_string(ranks) + " ranks, or splits");
	if (!rows.empty() && rows.size() != static_cast<size_t>(ranks))
		refuse("alltoall_base", std::string(name) + ": there are " + std::to_string(rows.size()) +
		       " splits; valid: " + std::to_string(ranks) + ", one for each rank");
	for (int i = 0; i < ranks; i++) {
		const int64_t count = rows.empty() ? all / ranks : rows[i];

		if (count < 0 || count > all - sum)
			refuse("alltoall_base", std::string(name) + ": split " + std::to_string(i) + " (" +
			       std::to_string(count) + ") is out of range; valid: splits whose sum is "
			       "the " + std::to_string(all) + " rows");
		sum += count;
		bytes.push_back(count * row);
	}
	if (sum != all)
		refuse("alltoall_base", std::string(name) + ": the sum of splits is " +
		       std::to_string(sum) + "; valid: " + std::to_string(all) + ", its rows");
	return bytes;
}

ProcessGroup::WorkPointer
ProcessGroup::alltoall_base(at::Tensor &output, at::Tensor &input, std::vector<int64_t> &output_splits,
			    std::vector<int64_t> &input_splits, const c10d::AllToAllOptions &options)
{
	check_tensor(output, "alltoall_base", "output");
	check_tensor(input, "alltoall_base", "input");
	check_same(output, input, "alltoall_base", "output and input");
	const at::Tensor to = writable(output), from = readable(input);
	const std::vector<size_t> receive = split(output, output_splits, getSize(), "output"),
				  send = split(input, input_splits, getSize(), "input");

	return post({ "alltoall_base", OpType::ALLTOALL_BASE, { input }, { output }, options.timeout,
		      [=, send_displs = following(send), receive_displs = following(receive)]
		      (coll_group *group, coll_run **run) {
			      return coll_ialltoallv(memory(from), send.data(), send_displs.data(),
						     memory(to), receive.data(),
						     receive_displs.data(), COLL_UINT8, group, run);
		      },
		      [output = output, to](Work &) { write_back(output, to); } });
}

ProcessGroup::WorkPointer ProcessGroup::alltoall(Tensors &outputs, Tensors &inputs,
						 const c10d::AllToAllOptions &options)
{
	check_count(outputs, getSize(), "alltoall", "output");
	check_count(inputs, getSize(), "alltoall", "input");
	for (const at::Tensor &tensor : inputs)
		check_same(tensor, outputs[0], "alltoall", "input and output");
	for (const at::Tensor &tensor : outputs)
		check_same(tensor, outputs[0], "alltoall", "outputs");
	const Blocks to = Blocks::outputs(outputs, blocks_stay(bytes_of(outputs)));
	const Blocks from = Blocks::inputs(inputs, blocks_stay(bytes_of(inputs)));

	return post({ "alltoall", OpType::ALLTOALL, inputs, outputs, options.timeout,
		      [=](coll_group *group, coll_run **run) {
			      return coll_ialltoallv(from.memory(), from.counts(), from.displs(),
						     to.memory(), to.counts(), to.displs(),
						     COLL_UINT8, group, run);
		      },
		      [to](Work &) { to.write_back(); } });
}

/* ---- messages -------------------------------------------------------------- */

static void check_peer(int rank, int ranks, int tag, const char *call, const char *name)
{
	if (rank < 0 || rank >= ranks)
		refuse(call, std::string(name) + " (" + std::to_string(rank) + ") is out of range; "
		       "valid: 0 to " + std::to_string(ranks - 1));
	if (tag < 0)
		refuse(call, "tag (" + std::to_string(tag) + ") is out of range; valid: 0 to 2^31 - 1");
}

ProcessGroup::WorkPointer ProcessGroup::send(Tensors &tensors, int rank, int tag)
{
	const at::Tensor data = readable(only(tensors, "send", "tensor"));

	check_peer(rank, getSize(), tag, "send", "dst");
	return post({ "send", OpType::SEND, tensors, {}, c10d::kUnsetTimeout,
		      [=](coll_group *group, coll_run **run) {
			      return coll_isend(memory(data), bytes_of(data), COLL_UINT8, rank, tag,
						group, run);
		      },
		      nullptr });
}

/* `received` is written until the run has ended, so it is shared with the run. */
ProcessGroup::WorkPointer ProcessGroup::receive(const char *name, OpType type, Tensors &tensors,
						int rank, int tag)
{
	const at::Tensor tensor = only(tensors, name, "tensor"), data = writable(tensor);
	auto received = std::make_shared<coll_received>();

	return post({ name, type, tensors, tensors, c10d::kUnsetTimeout,
		      [=](coll_group *group, coll_run **run) {
			      return coll_irecv(memory(data), bytes_of(data), COLL_UINT8, rank, tag,
						group, received.get(), run);
		      },
		      [=](Work &work) {
			      work.set_source(received->source);
			      if (received->count != bytes_of(data))
				      std::rethrow_exception(failure_of(
					      std::string("coll: ") + name + ": the message of rank " +
					      std::to_string(received->source) + " has " +
					      std::to_string(received->count) + " bytes, the tensor " +
					      std::to_string(bytes_of(data))));
			      write_back(tensor, data);
		      } });
}

ProcessGroup::WorkPointer ProcessGroup::recv(Tensors &tensors, int rank, int tag)
{
	check_peer(rank, getSize(), tag, "recv", "src");
	return receive("recv", OpType::RECV, tensors, rank, tag);
}

ProcessGroup::WorkPointer ProcessGroup::recvAnysource(Tensors &tensors, int tag)
{
	check_peer(0, getSize(), tag, "recvAnysource", "src");
	return receive("recvAnysource", OpType::RECVANYSOURCE, tensors, COLL_ANY_SOURCE, tag);
}

/* ---- barriers -------------------------------------------------------------- */

ProcessGroup::WorkPointer ProcessGroup::barrier(const c10d::BarrierOptions &options)
{
	return post({ "barrier", OpType::BARRIER, {}, {}, options.timeout,
		      [](coll_group *group, coll_run **run) { return coll_ibarrier(group, run); },
		      nullptr });
}

void ProcessGroup::monitoredBarrier(const c10d::BarrierOptions &options, bool wait_all_ranks)
{
	const bool unset = options.timeout == c10d::kUnsetTimeout;

	monitored_barrier({ *store_, getRank(), getSize(), monitored_++, unset ? timeout_ : options.timeout,
			    wait_all_ranks });
}

} // namespace coll_torch
