# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
# The backend "coll" of torch.distributed: $(BUILD)/torch, which PYTHONPATH names. It is built on
# demand alone, as PyTorch is large: make deps-torch installs Debian's.

.PHONY: torch deps-torch

TORCH_SOURCES	:= $(wildcard bindings/torch/src/*.cc)
TORCH_OBJECTS	= $(patsubst %.cc,$(BUILD)/%.o,$(TORCH_SOURCES))
TORCH_MODULE	= $(BUILD)/torch/coll_torch/_C.so
CXX		= g++

# The torch of $(PYTHON): where its headers and libraries are. Asked once, when it is needed.
TORCH_FLAGS	= $(eval TORCH_FLAGS := $(shell $(PYTHON) bindings/torch/flags.py 2>/dev/null))$(TORCH_FLAGS)
TORCH_CFLAGS	= -std=gnu++17 -Wall -Wextra -Wno-unused-parameter -fvisibility=hidden -fPIC -Ilibcoll -Iuapi \
		  -isystem $(PYTHON_INCLUDE) $(filter-out -L% -l% -Wl%,$(TORCH_FLAGS)) -MMD -MP $(HARDENING) \
		  $(if $(SANITIZE),-fsanitize=$(SANITIZE)) $(CFLAGS)

# torch.utils wants setuptools.
TORCH_PACKAGES	= python3-torch libtorch-dev pybind11-dev python3-setuptools
LINK_TORCH	= $(CXX) -shared $(ALL_LDFLAGS) $(TORCH_OBJECTS) -L$(BUILD) -lcoll \
		  $(filter -L% -l% -Wl%,$(TORCH_FLAGS)) -lpthread

deps-torch: deps				## install PyTorch, for make torch and make check-torch
	@./.ci/deps $(TORCH_PACKAGES)

torch: $(TORCH_MODULE)				## the backend of torch.distributed, for PYTHONPATH=build/torch

$(BUILD)/bindings/torch/%.o: bindings/torch/%.cc $(BUILD)/flags bindings/torch/torch.mk
	@mkdir -p $(@D)
	@[ -n "$(TORCH_FLAGS)" ] || { echo "make torch: $(PYTHON) has no torch, or Debian's libtorch-dev" \
		"is missing; make deps-torch installs them" >&2; exit 1; }
	$(call step,CXX,$<)$(CXX) $(TORCH_CFLAGS) -c $< -o $@

$(TORCH_MODULE): $(TORCH_OBJECTS) bindings/torch/coll_torch/__init__.py | $(BUILD)/libcoll.so
	@mkdir -p $(@D)
	@cp bindings/torch/coll_torch/__init__.py $(@D)
	$(call step,LD,$@)$(LINK_TORCH) -Wl,-rpath,'$$ORIGIN/../..' -o $@

-include $(wildcard $(BUILD)/bindings/torch/src/*.d)
