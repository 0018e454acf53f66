// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include "tensors.h"

#include <cstring>
#include <pybind11/pybind11.h>
#include <torch/version.h>

namespace coll_torch {

void refuse(const char *call, const std::string &what)
{
	throw pybind11::value_error(std::string("coll: ") + call + ": " + what);
}

void refuse_type(const char *call, const std::string &what)
{
	throw pybind11::type_error(std::string("coll: ") + call + ": " + what);
}

/* ---- checks --------------------------------------------------------------- */

void check_tensor(const at::Tensor &tensor, const char *call, const char *name)
{
	if (!tensor.defined())
		refuse(call, std::string(name) + " is no tensor; valid: a dense tensor of the CPU");
	if (!tensor.device().is_cpu())
		refuse(call, std::string(name) + " is on " + tensor.device().str() + "; valid: cpu");
	if (tensor.layout() != at::kStrided)
		refuse_type(call, std::string(name) + " is sparse; valid: a dense tensor");
	if (tensor.is_quantized())
		refuse_type(call, std::string(name) + " is quantized; valid: its int_repr()");
}

void check_tensors(const Tensors &tensors, const char *call, const char *name)
{
	for (const at::Tensor &tensor : tensors)
		check_tensor(tensor, call, name);
}

at::Tensor &only(Tensors &tensors, const char *call, const char *name)
{
	if (tensors.size() != 1)
		refuse(call, std::string(name) + ": there are " + std::to_string(tensors.size()) +
		       " tensors; valid: 1");
	check_tensor(tensors[0], call, name);
	return tensors[0];
}

void check_count(const Tensors &tensors, int ranks, const char *call, const char *name)
{
	if (tensors.size() != static_cast<size_t>(ranks))
		refuse(call, std::string(name) + ": there are " + std::to_string(tensors.size()) +
		       " tensors; valid: " + std::to_string(ranks) + ", one for each rank");
	check_tensors(tensors, call, name);
}

void check_root(int64_t root, int ranks, const char *call)
{
	if (root < 0 || root >= ranks)
		refuse(call, "root (" + std::to_string(root) + ") is out of range; valid: 0 to " +
		       std::to_string(ranks - 1));
}

/* ---- bytes ---------------------------------------------------------------- */

size_t bytes_of(const at::Tensor &tensor)
{
	return tensor.numel() * tensor.element_size();
}

size_t bytes_of(const Tensors &tensors)
{
	size_t bytes = 0;

	for (const at::Tensor &tensor : tensors)
		bytes += bytes_of(tensor);
	return bytes;
}

at::Tensor readable(const at::Tensor &tensor)
{
	return tensor.detach().contiguous();
}

at::Tensor writable(const at::Tensor &tensor)
{
	return tensor.is_contiguous() ? tensor.detach() :
		at::empty(tensor.sizes(), tensor.options().requires_grad(false));
}

at::Tensor apart(const at::Tensor &read, const at::Tensor &written)
{
	const auto from = reinterpret_cast<uintptr_t>(read.data_ptr());
	const auto to = reinterpret_cast<uintptr_t>(written.data_ptr());

	return from < to + bytes_of(written) && to < from + bytes_of(read) ? read.clone() : read;
}

void write_back(const at::Tensor &tensor, const at::Tensor &written)
{
	if (!tensor.is_contiguous())
		tensor.detach().copy_(written);
}

at::Tensor flatten(const Tensors &tensors)
{
	at::Tensor flat = at::empty({ static_cast<int64_t>(bytes_of(tensors)) }, at::kByte);
	size_t at = 0;

	for (const at::Tensor &tensor : tensors) {
		const at::Tensor from = readable(tensor);

		if (bytes_of(from))
			std::memcpy(flat.data_ptr<uint8_t>() + at, from.data_ptr(), bytes_of(from));
		at += bytes_of(from);
	}
	return flat;
}

void unflatten(const at::Tensor &flat, const Tensors &tensors)
{
	size_t at = 0;

	for (const at::Tensor &tensor : tensors) {
		const at::Tensor to = writable(tensor);

		if (bytes_of(to))
			std::memcpy(to.data_ptr(), flat.data_ptr<uint8_t>() + at, bytes_of(to));
		write_back(tensor, to);
		at += bytes_of(to);
	}
}

/* ---- reductions ----------------------------------------------------------- */

static coll_type type_of(at::ScalarType type, const char *call)
{
	switch (type) {
	case at::kBool:
	case at::kByte: return COLL_UINT8;
	case at::kChar: return COLL_INT8;
	case at::kShort: return COLL_INT16;
	case at::kInt: return COLL_INT32;
	case at::kLong: return COLL_INT64;
	case at::kHalf: return COLL_FP16;
	case at::kBFloat16: return COLL_BF16;
	case at::kFloat: return COLL_FLOAT;
	case at::kDouble: return COLL_DOUBLE;
	case at::kComplexFloat: return COLL_COMPLEX_FLOAT;
	case at::kComplexDouble: return COLL_COMPLEX_DOUBLE;
	default:
		refuse_type(call, std::string("tensors of ") + c10::toString(type) + " cannot be "
			    "reduced; valid: bool, integers, Half, BFloat16, Float, Double, "
			    "ComplexFloat, ComplexDouble");
	}
}

static bool is_float(at::ScalarType type)
{
	return c10::isFloatingType(type) || c10::isComplexType(type);
}

/* The sum of truth values is their or, and their product their and. */
static coll_reduction op_of(c10d::ReduceOp::RedOpType op, at::ScalarType type, const char *call)
{
	const bool truth = type == at::kBool;

	switch (op) {
	case c10d::ReduceOp::SUM: return truth ? COLL_LOR : COLL_SUM;
	case c10d::ReduceOp::PRODUCT: return truth ? COLL_LAND : COLL_PROD;
	case c10d::ReduceOp::MIN: return COLL_MIN;
	case c10d::ReduceOp::MAX: return COLL_MAX;
	case c10d::ReduceOp::BAND: return COLL_BAND;
	case c10d::ReduceOp::BOR: return COLL_BOR;
	case c10d::ReduceOp::BXOR: return COLL_BXOR;
	case c10d::ReduceOp::AVG:
	case c10d::ReduceOp::PREMUL_SUM:
		if (is_float(type))
			return COLL_SUM;
		refuse_type(call, std::string(op == c10d::ReduceOp::AVG ? "AVG" : "PREMUL_SUM") +
			    " of " + c10::toString(type) + " is no " + c10::toString(type) +
			    "; valid: Half, BFloat16, Float, Double, ComplexFloat, ComplexDouble");
	default:
		refuse(call, "op (" + std::to_string(static_cast<int>(op)) + ") is not known; valid: SUM, "
		       "AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM");
	}
}

static void check_bits(coll_reduction op, at::ScalarType type, const char *call)
{
	if ((op == COLL_BAND || op == COLL_BOR || op == COLL_BXOR) && is_float(type))
		refuse_type(call, std::string("tensors of ") + c10::toString(type) + " have no BAND, BOR, "
			    "BXOR; valid: bool, integers");
	if ((op == COLL_MIN || op == COLL_MAX) && c10::isComplexType(type))
		refuse_type(call, std::string("tensors of ") + c10::toString(type) + " have no MIN, MAX; "
			    "valid: bool, integers, Half, BFloat16, Float, Double");
}

/* The factor's tensor, undefined where it is a number. Of several, which is none: nullptr. */
static const at::Tensor *factor_tensor(const c10d::NCCLPreMulSumSupplement &supplement)
{
#if TORCH_VERSION_MAJOR >= 2
	return &supplement.tensor_factor;
#else
	static const at::Tensor none;

	if (supplement.tensor_factors.size() > 1)
		return nullptr;
	return supplement.tensor_factors.empty() ? &none : &supplement.tensor_factors[0];
#endif
}

static at::Tensor factor_of(const c10d::ReduceOp &wanted, const char *call)
{
	const auto *supplement =
		dynamic_cast<const c10d::NCCLPreMulSumSupplement *>(wanted.supplement_.get());
	const at::Tensor *tensor = supplement ? factor_tensor(*supplement) : nullptr;

	if (!tensor)
		refuse(call, "PREMUL_SUM has no factor; valid: a number, or one tensor");
	if (!tensor->defined())
		return at::scalar_tensor(supplement->double_factor, at::kDouble);
	check_tensor(*tensor, call, "factor");
	return tensor->detach();
}

Reduction::Reduction(const c10d::ReduceOp &wanted, at::ScalarType scalar, int ranks, const char *call)
	: type(type_of(scalar, call)), op(op_of(wanted, scalar, call)),
	  divisor(wanted == c10d::ReduceOp::AVG ? ranks : 1)
{
	check_bits(op, scalar, call);
	if (wanted == c10d::ReduceOp::PREMUL_SUM)
		factor = factor_of(wanted, call);
}

at::Tensor Reduction::before(const at::Tensor &input) const
{
	return factor.defined() ? input.detach().mul(factor.to(input.scalar_type())).contiguous() :
				  readable(input);
}

void Reduction::after(at::Tensor &result) const
{
	if (divisor != 1)
		result.div_(divisor);
}

} // namespace coll_torch
