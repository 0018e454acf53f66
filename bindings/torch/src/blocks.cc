// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include "blocks.h"

#include <algorithm>

namespace coll_torch {

/* From here on the copy is what a call costs most: docs/results/torch.md. */
static constexpr size_t stay_bytes = 64 << 10;

bool blocks_stay(size_t bytes)
{
	return bytes >= stay_bytes;
}

static uintptr_t address_of(const at::Tensor &tensor)
{
	return reinterpret_cast<uintptr_t>(tensor.data_ptr());
}

/* Addresses differ by less than 2^48, which is what the library takes. Empty tensors have none. */
void Blocks::lay_apart()
{
	uintptr_t lowest = UINTPTR_MAX;

	for (const at::Tensor &tensor : held_)
		if (bytes_of(tensor))
			lowest = std::min(lowest, address_of(tensor));
	for (const at::Tensor &tensor : held_) {
		counts_.push_back(bytes_of(tensor));
		displs_.push_back(bytes_of(tensor) ? address_of(tensor) - lowest : 0);
	}
	base_ = lowest == UINTPTR_MAX ? nullptr : reinterpret_cast<uint8_t *>(lowest);
}

void Blocks::lay_flat()
{
	size_t at = 0;

	counts_.clear();
	displs_.clear();
	for (const at::Tensor &tensor : tensors_) {
		counts_.push_back(bytes_of(tensor));
		displs_.push_back(at);
		at += bytes_of(tensor);
	}
	base_ = flat_.data_ptr<uint8_t>();
}

/* Two of them have a byte in common. */
bool Blocks::overlap() const
{
	std::vector<std::pair<size_t, size_t>> runs;

	for (size_t i = 0; i < counts_.size(); i++)
		if (counts_[i])
			runs.emplace_back(displs_[i], displs_[i] + counts_[i]);
	std::sort(runs.begin(), runs.end());
	for (size_t i = 1; i < runs.size(); i++)
		if (runs[i].first < runs[i - 1].second)
			return true;
	return false;
}

Blocks Blocks::inputs(const Tensors &tensors, bool stay)
{
	Blocks blocks;

	blocks.tensors_ = tensors;
	if (stay) {
		for (const at::Tensor &tensor : tensors)
			blocks.held_.push_back(readable(tensor));
		blocks.lay_apart();
	} else {
		blocks.flat_ = flatten(tensors);
		blocks.lay_flat();
	}
	return blocks;
}

Blocks Blocks::outputs(const Tensors &tensors, bool stay)
{
	Blocks blocks;

	blocks.tensors_ = tensors;
	if (stay) {
		for (const at::Tensor &tensor : tensors)
			blocks.held_.push_back(writable(tensor));
		blocks.lay_apart();
		if (!blocks.overlap())
			return blocks;
		blocks.held_.clear();
	}
	blocks.flat_ = at::empty({ static_cast<int64_t>(bytes_of(tensors)) }, at::kByte);
	blocks.lay_flat();
	return blocks;
}

void Blocks::write_back() const
{
	if (flat_.defined())
		unflatten(flat_, tensors_);
	for (size_t i = 0; i < held_.size(); i++)
		coll_torch::write_back(tensors_[i], held_[i]);
}

} // namespace coll_torch
