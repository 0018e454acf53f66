// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The module coll_torch._C: what makes a group, and the end of the program. */
#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>

#include "process_group.h"

static c10::intrusive_ptr<coll_torch::Base> create(const c10::intrusive_ptr<c10d::Store> &store,
						   int rank, int ranks,
						   std::chrono::milliseconds timeout)
{
	return c10::make_intrusive<coll_torch::ProcessGroup>(store, rank, ranks, timeout);
}

PYBIND11_MODULE(_C, module)
{
	/* A store written in Python needs the GIL while ranks meet. */
	module.def("create", create, pybind11::arg("store"), pybind11::arg("rank"),
		   pybind11::arg("ranks"), pybind11::arg("timeout"),
		   pybind11::call_guard<pybind11::gil_scoped_release>());
	module.def("close_all", coll_torch::close_all,
		   pybind11::call_guard<pybind11::gil_scoped_release>());
}
