/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Tensors as the buffers, types and reductions of the library. What does not fit is refused. */
#ifndef COLL_TORCH_TENSORS_H
#define COLL_TORCH_TENSORS_H

#include <coll.h>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <ATen/ATen.h>

namespace coll_torch {

using Tensors = std::vector<at::Tensor>;

/* "coll: call: name: what": ValueError, or TypeError. */
[[noreturn]] void refuse(const char *call, const std::string &what);
[[noreturn]] void refuse_type(const char *call, const std::string &what);

/* A dense tensor on the CPU. */
void check_tensor(const at::Tensor &tensor, const char *call, const char *name);
void check_tensors(const Tensors &tensors, const char *call, const char *name);
/* The only one of a list. */
at::Tensor &only(Tensors &tensors, const char *call, const char *name);
/* As many as ranks. */
void check_count(const Tensors &tensors, int ranks, const char *call, const char *name);
void check_root(int64_t root, int ranks, const char *call);

/* Their bytes one after the other. */
at::Tensor flatten(const Tensors &tensors);
/* From such bytes, at this offset. */
void unflatten(const at::Tensor &flat, const Tensors &tensors);
size_t bytes_of(const at::Tensor &tensor);
size_t bytes_of(const Tensors &tensors);

/* What is read or written instead of a tensor whose elements are not one after the other. */
at::Tensor readable(const at::Tensor &tensor);
at::Tensor writable(const at::Tensor &tensor);
/* What is read, or a copy if it has bytes of what is written: to the library they must be apart. */
at::Tensor apart(const at::Tensor &read, const at::Tensor &written);
/* Copies such a tensor back; nothing if it is the tensor itself. */
void write_back(const at::Tensor &tensor, const at::Tensor &written);

/* A reduction of torch as one of the library, and what is done before and after it. */
struct Reduction {
	coll_type type;
	coll_reduction op;
	int divisor;			/* of the result; 1 but for AVG */
	at::Tensor factor;		/* of the input; undefined but for PREMUL_SUM */

	Reduction(const c10d::ReduceOp &wanted, at::ScalarType type, int ranks, const char *call);
	/* The input times the factor: a tensor of its own, or `input` itself. */
	at::Tensor before(const at::Tensor &input) const;
	void after(at::Tensor &result) const;
};

} // namespace coll_torch

#endif
