# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
# The Python module: $(BUILD)/python, which PYTHONPATH names; and a wheel of it. It is built where
# Python's headers are there.

# Debian's own, whose NumPy make deps installs, not another one that is first in the path.
PYTHON		?= $(firstword $(wildcard /usr/bin/python3) python3)
PYTHON_INCLUDE	:= $(shell $(PYTHON) -c 'import os, sysconfig; path = sysconfig.get_paths()["include"]; \
		   print(path if os.path.exists(path + "/Python.h") else "")' 2>/dev/null)
PYTHON_VERSION	:= $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
PYTHON_SOURCES	:= $(wildcard bindings/python/src/*.c)
PYTHON_FILES	:= $(wildcard bindings/python/coll/*)
PYTHON_MODULE	= $(if $(PYTHON_INCLUDE),$(BUILD)/python/coll/_coll.abi3.so)

.PHONY: python wheel

python: $(PYTHON_MODULE)			## the Python module, for PYTHONPATH=build/python
	@$(if $(PYTHON_MODULE),,echo "make python: Python.h is missing; make deps installs it" >&2; exit 1)

# The module sees the installed headers alone: coll.h, coll_types.h.
$(BUILD)/bindings/python/%.o: FILE_CFLAGS += -isystem $(PYTHON_INCLUDE) -Ilibcoll

$(BUILD)/python/coll/_coll.abi3.so: $(call objects,$(PYTHON_SOURCES)) $(PYTHON_FILES) | $(BUILD)/libcoll.so
	@mkdir -p $(@D)
	@cp $(PYTHON_FILES) $(@D)
	$(call step,LD,$@)$(LINK_SHARED) $(filter %.o,$^) -L$(BUILD) -lcoll -lpthread \
		-Wl,-rpath,'$$ORIGIN/../..' -o $@

wheel: all					## a wheel for pip, in build/wheel
	$(Q)BUILD=$(abspath $(BUILD)) sh bindings/python/wheel.sh $(PYTHON) $(abspath $(BUILD)/wheel)
