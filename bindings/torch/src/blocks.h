/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * A list of tensors, one for each rank, as the library takes it: one vector of bytes.
 *
 * Long blocks stay where they are, and the v forms are told how far each is from the lowest. Short
 * ones are copied one after the other, for the plain forms: a copy of them costs less than
 * a schedule of its own for each set of addresses, and the plain forms of one root have trees.
 */
#ifndef COLL_TORCH_BLOCKS_H
#define COLL_TORCH_BLOCKS_H

#include "tensors.h"

namespace coll_torch {

/* Whether blocks of that size stay where they are. The same on all ranks, as the call is then another. */
bool blocks_stay(size_t bytes);

class Blocks {
public:
	/* Of a rank that has none. */
	Blocks() = default;
	/* To be read, or written. Outputs that overlap are copied all the same. */
	static Blocks inputs(const Tensors &tensors, bool stay);
	static Blocks outputs(const Tensors &tensors, bool stay);

	void *memory() const { return base_; }
	/* Bytes of each, and bytes before each. */
	const size_t *counts() const { return counts_.data(); }
	const size_t *displs() const { return displs_.data(); }
	/* To the tensors, where something else was written. */
	void write_back() const;

private:
	void lay_apart();
	void lay_flat();
	bool overlap() const;

	Tensors tensors_, held_;	/* the caller's; contiguous ones of the same bytes */
	at::Tensor flat_;		/* instead of held_, or undefined */
	uint8_t *base_ = nullptr;
	std::vector<size_t> counts_, displs_;
};

} // namespace coll_torch

#endif
