# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
# libcollmpi.so: one for each MPI that is installed, since handles and numbers differ. The MPIs
# go by Debian's names; else there is one, and its compiler is mpicc.

# The shim is preloaded into programs that are not sanitized, so it is not sanitized either.
ifeq ($(SANITIZE),)
MPIS		:= $(foreach mpi,openmpi mpich,$(if $(shell command -v mpicc.$(mpi)),$(mpi)))
MPIS		:= $(or $(MPIS),$(if $(shell command -v mpicc),mpi))
else
MPIS		:=
endif
mpicc		= $(if $(filter mpi,$(1)),mpicc,mpicc.$(1))
COLLMPI		:= $(foreach mpi,$(MPIS),$(BUILD)/mpi/$(mpi)/libcollmpi.so)
SHIM		:= $(wildcard mpi/*.c)

# A pass over whole results.
$(foreach mpi,$(MPIS),$(BUILD)/mpi/$(mpi)/nan.o): FILE_CFLAGS += -O3

# What it calls of its own is not called by the program: functions of a tool, which have the same names and call
# PMPI_'s, would see it.
SHIM_LDFLAGS	:= -Wl,-soname,libcollmpi.so -Wl,-Bsymbolic-functions -Wl,--version-script=mpi/libcollmpi.map

define shim_rules
$(BUILD)/mpi/$(1)/%.o: mpi/%.c $(BUILD)/flags
	@mkdir -p $$(@D)
	$$(call step,CC,$$< ($(1)))$(call mpicc,$(1)) $$(ALL_CFLAGS) $$(FILE_CFLAGS) -fvisibility=default -c $$< -o $$@

$(BUILD)/mpi/$(1)/libcollmpi.so: $(patsubst mpi/%.c,$(BUILD)/mpi/$(1)/%.o,$(SHIM)) \
		$(BUILD)/libcoll.a mpi/libcollmpi.map
	$$(call step,LD,$$@)$(call mpicc,$(1)) -shared $$(ALL_LDFLAGS) $$(SHIM_LDFLAGS) \
		$$(filter %.o %.a,$$^) $$(LIBRARY_LIBS) -ldl -o $$@
endef
$(foreach mpi,$(MPIS),$(eval $(call shim_rules,$(mpi))))
