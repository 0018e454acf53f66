# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
# For people. The kernel's own build reads Kbuild.
#
#	make			library and tools into build/
#	make demo		sets up what is missing, builds, runs the main job
#	make check		sets up what is missing, builds, runs all tests
#	make install		[PREFIX=/usr/local] [DESTDIR=]
#	make module		coll.ko into build/module, [KDIR=] the kernel's headers
#	make check-vm		its tests, in an emulated machine; check-vm-debug: on a debug kernel
#	make bench		side by side with Open MPI and MPICH
#	make deps clean
#
# SANITIZE=address,undefined or thread builds another tree beside the first; so does DEBUG=1,
# which checks the invariants that cost something.

BUILD		= build$(if $(SANITIZE),/$(firstword $(subst $(comma), ,$(SANITIZE))))$(if $(DEBUG),/debug)
PREFIX		= /usr/local
comma		:= ,

CC		= gcc
CFLAGS		= -O2 -g
ALL_CFLAGS	= -std=gnu11 -Wall -Wextra -Wmissing-prototypes -Wshadow -fvisibility=hidden -fPIC \
		  -iquote . -Iuapi -D_GNU_SOURCE -MMD -MP $(if $(DEBUG),-DCOLL_DEBUG) \
		  $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all \
		  -fno-omit-frame-pointer) $(CFLAGS)
ALL_LDFLAGS	= $(if $(SANITIZE),-fsanitize=$(SANITIZE)) $(LDFLAGS)
LIBS		= -luring -lnettle -ljansson -lm -lpthread

objects		= $(patsubst %.c,$(BUILD)/%.o,$(1))

CORE		:= $(wildcard core/*.c core/*/*.c)
ALGO		:= $(wildcard algo/*.c algo/*/*.c) $(EXTRA_ALGO)
ALGO_LIST	= $(BUILD)/algo/list.c
LIBCOLL		:= $(wildcard libcoll/*/*.c)
SIM		:= $(wildcard sim/*.c)
FLIT		:= $(wildcard flit/*.c)
NODE		:= $(wildcard node/*.c)
ROOMS		:= run bench schedule verify lab circuit sim flit
COLL		:= $(filter-out tools/collnoise.c,$(wildcard tools/*.c)) \
		   $(foreach room,$(ROOMS),$(wildcard tools/$(room)/*.c))
COLLNOISE	:= $(addprefix tools/,arguments.c collnoise.c command.c) $(wildcard tools/noise/*.c)
COLLD		:= $(wildcard daemon/*.c daemon/*/*.c)
TESTLIB		:= $(wildcard tests/lib/*.c)
UNIT		:= $(patsubst %.c,$(BUILD)/%,$(wildcard tests/unit/*_test.c))
MULTI		:= $(patsubst %.c,$(BUILD)/%,$(wildcard tests/multi/*.c))
FUZZ		:= $(patsubst %.c,$(BUILD)/%,$(wildcard tests/fuzz/*_fuzz.c))
VM		:= $(patsubst %.c,$(BUILD)/%,tests/vm/init.c tests/vm/storm.c $(wildcard tests/vm/*_test.c))
SCRIPTS		:= $(sort $(wildcard tests/*/*.t))

# The shim, for each MPI there is: by Debian's names, or else the one that is mpicc. It is
# preloaded into programs that are not sanitized, so nor is it.
MPIS		:= $(if $(SANITIZE),,$(foreach mpi,openmpi mpich,$(if $(shell command -v mpicc.$(mpi)),$(mpi))))
MPIS		:= $(or $(MPIS),$(if $(SANITIZE),,$(if $(shell command -v mpicc),mpi)))
mpicc		= $(if $(filter mpi,$(1)),mpicc,mpicc.$(1))
COLLMPI		:= $(foreach mpi,$(MPIS),$(BUILD)/mpi/$(mpi)/libcollmpi.so)

.DEFAULT_GOAL	:= all
.SECONDARY:
.PHONY: all deps demo check check-unit check-mpi check-mpi-programs check-fuzz check-sanitize \
	sanitized check-threads threaded check-scripts fuzz fuzzers bench figures install \
	install-dkms module check-vm check-vm-long check-vm-debug vm spec clean

all: $(BUILD)/libcoll.a $(BUILD)/libcoll.so $(BUILD)/coll $(BUILD)/collnoise $(BUILD)/colld $(COLLMPI)

# ---- what is built -----------------------------------------------------------

# The reductions are the one place where the compiler's loops are the product.
$(BUILD)/core/reduce.o $(BUILD)/core/reduce_float.o: CFLAGS += -O3 -ffp-contract=off
# And those over all ranks, where it is the simulator's.
$(BUILD)/sim/levels.o $(BUILD)/sim/redundant.o: CFLAGS += -O3

# Loaded when a PMIx server starts a rank; without its header that way is left out.
$(BUILD)/libcoll/boot/pmix.o: CFLAGS += $(shell pkg-config --cflags pmix 2>/dev/null)

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -c $< -o $@

# Every algorithm's file is in the list. EXTRA_ALGO names files outside the tree.
$(ALGO_LIST): algo/list.awk $(ALGO)
	@mkdir -p $(@D)
	LC_ALL=C awk -f $^ >$@

$(BUILD)/algo/list.o: $(ALGO_LIST)
	$(CC) $(ALL_CFLAGS) -c $< -o $@

LIBRARY		= $(call objects,$(CORE) $(ALGO) $(LIBCOLL)) $(BUILD)/algo/list.o
$(BUILD)/libcoll.a: $(LIBRARY)
	@rm -f $@
	ar qcs $@ $^

SONAME = libcoll.so.0
$(BUILD)/$(SONAME): $(LIBRARY) libcoll/libcoll.map
	$(CC) -shared -Wl,-soname,$(SONAME) -Wl,--version-script=libcoll/libcoll.map \
		$(ALL_LDFLAGS) $(filter %.o,$^) $(LIBS) -o $@

$(BUILD)/libcoll.so: $(BUILD)/$(SONAME)
	ln -sf $(SONAME) $@

$(BUILD)/coll: $(call objects,$(COLL) $(SIM) $(FLIT)) $(BUILD)/libcoll.a
	$(CC) $(ALL_LDFLAGS) $^ $(LIBS) -o $@

$(BUILD)/collnoise: $(call objects,$(COLLNOISE) $(SIM) $(NODE)) $(BUILD)/libcoll.a
	$(CC) $(ALL_LDFLAGS) $^ $(NETLINK_LIBS) $(LIBS) -o $@

$(BUILD)/colld: $(call objects,$(COLLD) $(NODE)) $(BUILD)/libcoll.a
	$(CC) $(ALL_LDFLAGS) $^ $(SWITCH_LIBS) $(NETLINK_LIBS) -lmicrohttpd $(LIBS) -o $@

# What switches are spoken to with.
SWITCH_LIBS	= $(shell pkg-config --libs libcurl libnl-route-3.0)
$(BUILD)/daemon/switch/emul.o $(BUILD)/daemon/switch/crossbar.o: CFLAGS += $(shell pkg-config --cflags libnl-route-3.0)

# One binary for each MPI: their handles and numbers differ.
SHIM = $(patsubst %.c,%.o,$(wildcard mpi/*.c))
define shim_rules
$(BUILD)/mpi/$(1)/%.o: mpi/%.c
	@mkdir -p $$(@D)
	$(call mpicc,$(1)) $$(ALL_CFLAGS) -fvisibility=default -c $$< -o $$@

$(BUILD)/mpi/$(1)/libcollmpi.so: $(patsubst mpi/%,$(BUILD)/mpi/$(1)/%,$(SHIM)) \
		$(BUILD)/libcoll.a mpi/libcollmpi.map
	$(call mpicc,$(1)) -shared -Wl,-soname,libcollmpi.so -Wl,--version-script=mpi/libcollmpi.map \
		$$(ALL_LDFLAGS) $$(filter %.o %.a,$$^) $$(LIBS) -ldl -o $$@
endef
$(foreach mpi,$(MPIS),$(eval $(call shim_rules,$(mpi))))

# What it is tested with: programs that know MPI only.
define shim_test_rules
$(BUILD)/tests/mpi/$(1)/%: tests/mpi/%.c tests/mpi/test_case.c tests/mpi/test_case.h tests/mpi/mpitest.h
	@mkdir -p $$(@D)
	$(call mpicc,$(1)) -std=gnu11 -D_GNU_SOURCE -Wall -Wextra $$(CFLAGS) $$< \
		$$(if $$(filter %/every_form %/random_calls %/write_results,$$@),tests/mpi/test_case.c) -lpthread -ldl -o $$@

$(BUILD)/tests/mpi/$(1)/call_overhead: tests/mpi/call_overhead.c tests/mpi/mpitest.h $(BUILD)/libcoll.a
	@mkdir -p $$(@D)
	$(call mpicc,$(1)) -std=gnu11 -D_GNU_SOURCE -Wall -Wextra $$(CFLAGS) -iquote . -Iuapi $$< \
		$(BUILD)/libcoll.a $$(LIBS) -ldl -o $$@

$(BUILD)/tests/mpi/$(1)/mpi_plugin.so: tests/mpi/mpi_plugin.c tests/mpi/mpitest.h
	@mkdir -p $$(@D)
	$(call mpicc,$(1)) -std=gnu11 -Wall -Wextra $$(CFLAGS) -fPIC -shared $$< -ldl -o $$@

$(BUILD)/tests/mpi/$(1)/fortran_%: tests/mpi/fortran_%.* tests/mpi/fortran_counts.c
	@mkdir -p $$(@D)
	$(call mpicc,$(1)) -std=gnu11 -Wall -Wextra $$(CFLAGS) -c tests/mpi/fortran_counts.c \
		-o $$@.counts.o
	$(subst mpicc,mpif90,$(call mpicc,$(1))) -fallow-argument-mismatch -w $$(CFLAGS) \
		-J$$(@D) $$< $$@.counts.o -ldl -o $$@
endef
$(foreach mpi,$(MPIS),$(eval $(call shim_test_rules,$(mpi))))

MPITESTS := $(foreach mpi,$(MPIS),$(addprefix $(BUILD)/tests/mpi/$(mpi)/, \
	    every_form random_calls write_results edge_cases thread_multiple spawn \
	    call_overhead mpi_plugin.so \
	    $(if $(shell command -v gfortran),fortran_mpif fortran_mpi fortran_f08))) \
	    $(if $(MPIS),$(BUILD)/tests/mpi/dlopen_local $(BUILD)/tests/mpi/yield.so)

$(BUILD)/tests/mpi/yield.so: tests/bench/yield_in_poll.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -Wall -Wextra $(CFLAGS) -fPIC -shared $< -o $@

$(BUILD)/tests/mpi/dlopen_local: tests/mpi/dlopen_local.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -D_GNU_SOURCE -Wall -Wextra $(CFLAGS) $< -ldl -o $@

$(BUILD)/tests/unit/%: $(BUILD)/tests/unit/%.o $(call objects,$(TESTLIB) $(SIM) $(FLIT)) $(BUILD)/libcoll.a
	$(CC) $(ALL_LDFLAGS) $^ -lcmocka $(LIBS) -o $@

# Drivers of switches, and a switch that is none.
$(BUILD)/tests/unit/switch_test: $(call objects,$(wildcard daemon/switch/*.c)) | \
		$(BUILD)/tests/circuit/fake_switch
$(BUILD)/tests/unit/switch_test: LIBS += $(SWITCH_LIBS)
CIRCUIT_TESTS	= $(addprefix $(BUILD)/tests/circuit/,fake_switch competing_jobs circuit_calls half_notified)
$(BUILD)/tests/circuit/circuit_calls: $(BUILD)/tests/circuit/circuit_calls.o $(call objects,tests/lib/rank.c) $(BUILD)/libcoll.a
	$(CC) $(ALL_LDFLAGS) $^ $(LIBS) -o $@
$(BUILD)/tests/circuit/half_notified: $(BUILD)/tests/circuit/half_notified.o
	$(CC) $(ALL_LDFLAGS) $^ -o $@
$(BUILD)/tests/circuit/competing_jobs: $(BUILD)/tests/circuit/competing_jobs.o
	$(CC) $(ALL_LDFLAGS) $^ -lpthread -o $@
$(BUILD)/tests/circuit/fake_switch: $(BUILD)/tests/circuit/fake_switch.o
	$(CC) $(ALL_LDFLAGS) $^ -lmicrohttpd $(LIBS) -o $@

$(BUILD)/tests/multi/%: $(BUILD)/tests/multi/%.o $(call objects,$(TESTLIB)) $(BUILD)/libcoll.a
	$(CC) $(ALL_LDFLAGS) $^ $(LIBS) -o $@

$(BUILD)/tests/fuzz/%_fuzz: $(call objects,tests/fuzz/main.c $(TESTLIB)) \
		$(BUILD)/tests/fuzz/%_fuzz.o $(BUILD)/libcoll.a
	$(CC) $(ALL_LDFLAGS) $^ $(LIBS) -o $@
$(BUILD)/tests/fuzz/replay_fuzz: $(call objects,$(SIM))

# What speaks to coll.ko. The names of its attributes are in one place, the header.
NETLINK_CFLAGS	= $(shell pkg-config --cflags libnl-genl-3.0)
NETLINK_LIBS	= $(shell pkg-config --libs libnl-genl-3.0)
$(BUILD)/node/netlink.o $(BUILD)/tools/noise/module.o $(BUILD)/tools/noise/pin.o $(BUILD)/node/pin_module.o $(BUILD)/daemon/policy/pin.o $(BUILD)/daemon/circuit/kernel.o $(BUILD)/tests/vm/%.o: CFLAGS += $(NETLINK_CFLAGS)
$(BUILD)/node/netlink.o: CFLAGS += -I$(BUILD)/node
$(BUILD)/node/netlink.o: $(BUILD)/node/netlink_names.h
$(BUILD)/node/netlink_names.h: node/netlink_names.awk uapi/coll_netlink.h
	@mkdir -p $(@D)
	awk -f $^ >$@

# The family's description for YNL, from the header too. It is kept in the tree.
spec:
	awk -f node/netlink_spec.awk uapi/coll_noise.h uapi/coll_netlink.h >uapi/coll.yaml

# Programs of the test machine, where there is no other file: static.
vm: $(VM) $(BUILD)/coll $(BUILD)/colld $(addprefix $(BUILD)/tests/multi/,every_collective groups rank_failures progress_without_calls progress_auto_follows connect_during_offload)
VM_COMMON = $(call objects,tests/vm/vm.c tests/vm/offload.c node/netlink.c tests/lib/interpret.c \
	    tests/lib/mutate.c tests/lib/schedules.c) $(BUILD)/libcoll.a
$(BUILD)/tests/vm/%: $(BUILD)/tests/vm/%.o $(VM_COMMON)
	$(CC) -static -Wl,--no-warnings $(ALL_LDFLAGS) $^ \
		$(shell pkg-config --static --libs libnl-genl-3.0) -luring -lm -o $@
$(BUILD)/tests/vm/storm: tests/vm/storm.c
	@mkdir -p $(@D)
	$(CC) -O2 -Wall -Wextra -static -nostdlib -fno-stack-protector -fno-pie -no-pie \
		-Wl,--build-id=none,-z,noseparate-code $< -o $@

# core/ must compile for a world without a C library.
FREESTANDING = $(patsubst %.c,$(BUILD)/freestanding/%.o,$(filter-out core/assert% core/text% core/noise/text%,$(CORE)))
$(BUILD)/freestanding/%.o: %.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -Wall -Wextra -Werror -O2 -ffreestanding -fno-builtin -nostdlib -iquote . \
		-MMD -MP -c $< -o $@

# ---- what is run -------------------------------------------------------------

PACKAGES = build-essential perl pkg-config liburing-dev nettle-dev libjansson-dev libcmocka-dev \
	   gnuplot-nox iproute2 jq procps libnl-3-dev libnl-genl-3-dev libnl-route-3-dev libmicrohttpd-dev \
	   libcurl4-openssl-dev \
	   qemu-system-x86 cpio sparse \
	   openmpi-bin libopenmpi-dev mpich libmpich-dev gfortran libpmix-dev

deps:
	@./.ci/deps $(PACKAGES)

demo: deps
	@$(MAKE) --no-print-directory all
	@BUILD=$(BUILD) tools/demo.sh

# Side by side with the MPIs that Debian packages, which it installs.
bench: all
	BUILD=$(BUILD) sh tests/bench/peers.sh

# Schedules as pictures, and the papers' figures: QUICK=1 with fewer points.
FIGURES = $(addprefix $(BUILD)/figures/,$(addsuffix .svg,barrier.dissemination.8 \
	  bcast.circulant.5 allreduce.butterfly.8 allreduce.butterfly-redundant.4 \
	  allreduce.rabenseifner.4 allgather.bruck.5))
figures: $(FIGURES)
	@ls $^
	@BUILD=$(BUILD) sh sim/figures.sh $(if $(QUICK),--quick)
	@BUILD=$(BUILD) sh flit/figures.sh $(if $(QUICK),--quick)

$(BUILD)/figures/%.svg: $(BUILD)/coll
	@command -v dot >/dev/null || ./.ci/deps graphviz
	@mkdir -p $(@D)
	$(BUILD)/coll schedule $(subst ., ,$*) --dot >$(@:.svg=.dot)
	dot -Tsvg $(@:.svg=.dot) -o $@

# Jobs of many ranks on a machine with other work to do: what fails is shown in full, alone,
# and has failed if it fails there too. None takes longer than a quarter of an hour.
PROVE = prove --exec 'timeout -k 5 900' --statefile=$(BUILD)/proved
prove = $(PROVE) --state=save $(1) || $(PROVE) -v --state=failed

# First the most of it with every memory access checked, and what has threads with
# every race, then everything as it is built. Scripts take turns: they start jobs
# of many ranks.
check: deps
	@$(MAKE) --no-print-directory -j2 SANITIZE=address,undefined fuzzers
	@$(MAKE) --no-print-directory -j2 SANITIZE=address,undefined sanitized
	@$(MAKE) --no-print-directory -j2 SANITIZE=thread threaded
	@$(MAKE) --no-print-directory -j2 check-all

check-all: all $(UNIT) $(MULTI) $(FREESTANDING) $(VM) $(MPITESTS) $(CIRCUIT_TESTS)
	export BUILD=$(BUILD) CMOCKA_MESSAGE_OUTPUT=TAP; \
		$(call prove,-j2 --rules='seq=tests/**' --rules='par=**' $(UNIT) $(SCRIPTS))

check-mpi: all $(MPITESTS)
	BUILD=$(BUILD) prove $(wildcard tests/mpi/*.t)

# Programs and launchers that others wrote, from Debian, which it installs; every rank count.
check-mpi-programs: all $(MPITESTS) $(BUILD)/tests/multi/boot_meet
	@./.ci/deps hpcc lammps scalapack-mpi-test libfftw3-dev python3-mpi4py slurmctld slurmd \
		slurm-client slurm-wlm-basic-plugins libpmi0 python3-torch openssh-server
	BUILD=$(BUILD) prove --exec sh $(addprefix tests/mpi/,applications.sh every_rank_count.sh slurm.sh torchrun.sh)
	BUILD=$(BUILD) prove tests/multi/run_hosts.t

check-unit: $(UNIT)
	CMOCKA_MESSAGE_OUTPUT=TAP prove -j2 --exec '' $(UNIT)

# In an emulated machine, on the kernels that Debian has.
check-vm: vm
	BUILD=$(BUILD) prove -v $(wildcard tests/vm/*.t)

# 10^6 messages, 10,000 cycles: three quarters of an hour a kernel. KERNELS=6.12 for one of them;
# KERNELS=debug for the debug kernel, two hours or more.
KERNELS ?= 6.1 6.12
check-vm-long: vm
	BUILD=$(BUILD) prove -v tests/vm/exact.t :: -l
	set -e; for kernel in $(KERNELS); do BUILD=$(BUILD) prove -v tests/vm/all :: -l $$kernel; done

# On a kernel that looks after itself: KASAN, lockdep, kmemleak. To build it takes five
# minutes of two idle CPUs, once a machine. LONG=-l: 10^6 messages and 10,000 cycles alone.
DEBUG_PACKAGES = flex bison bc libelf-dev xz-utils
check-vm-debug: vm
	@./.ci/deps $(DEBUG_PACKAGES)
	tests/vm/debug build
	BUILD=$(BUILD) prove -v tests/vm/all :: $(LONG) debug

check-fuzz:
	@$(MAKE) --no-print-directory SANITIZE=address,undefined fuzzers
	BUILD=$(BUILD) FUZZ_RUNS=$(FUZZ_RUNS) prove tests/fuzz/fuzz.t

fuzzers: $(FUZZ)

# libFuzzer, for as long as one likes: make fuzz FUZZ_SECONDS=3600
FUZZ_RUNS	= 20000
FUZZ_SECONDS	= 60
fuzz: $(FUZZ) $(ALGO_LIST)
	@command -v clang >/dev/null || { echo "make fuzz: clang is not installed" >&2; exit 1; }
	set -e; for fuzz in $(notdir $(FUZZ)); do \
		mkdir -p build/fuzz/$$fuzz.corpus; \
		$(BUILD)/tests/fuzz/$$fuzz --seeds build/fuzz/$$fuzz.corpus; \
		clang -std=gnu11 -g -O1 -fsanitize=fuzzer,address,undefined -D_GNU_SOURCE -iquote . -Iuapi \
			$(CORE) $(ALGO) $(ALGO_LIST) $(SIM) tests/lib/schedules.c tests/fuzz/$$fuzz.c -ljansson -lm -lpthread \
			-o build/fuzz/$$fuzz; \
		build/fuzz/$$fuzz -max_total_time=$(FUZZ_SECONDS) -artifact_prefix=build/fuzz/ \
			build/fuzz/$$fuzz.corpus; \
	done

# The same again with every access checked. The scripts whose timing counts stay out.
check-sanitize:
	@$(MAKE) --no-print-directory SANITIZE=address,undefined sanitized

SANITIZED = $(addprefix tests/multi/,every_collective.t groups.t mismatched_calls.t \
	    agree_and_shrink.t unauthenticated_peers.t collectives_with_clusters.t early_exit.t \
	    progress_modes.t link_policies.t link_streams.t) \
	    tests/net/network_failure.t tests/net/failure_in_every_algorithm.t \
	    tests/circuit/colld_restart.t
sanitized: all $(UNIT) $(MULTI) $(CIRCUIT_TESTS)
	export BUILD=$(BUILD) SANITIZE=$(SANITIZE) CMOCKA_MESSAGE_OUTPUT=TAP COLL_TEST_LITTLE=1; \
		$(call prove,-j2 --rules='seq=tests/**' --rules='par=**' $(UNIT) $(SANITIZED))

check-threads:
	@$(MAKE) --no-print-directory -j2 SANITIZE=thread threaded

THREADED = tests/multi/context_per_thread.t
threaded: $(BUILD)/coll $(addprefix $(BUILD)/tests/,unit/store_test unit/boot_test multi/context_per_thread)
	export BUILD=$(BUILD) CMOCKA_MESSAGE_OUTPUT=TAP \
		TSAN_OPTIONS="suppressions=$(CURDIR)/tests/lib/thread_sanitizer.supp"; \
		$(call prove,$(BUILD)/tests/unit/store_test $(BUILD)/tests/unit/boot_test $(THREADED))

check-scripts: all $(UNIT) $(MULTI) $(FREESTANDING) $(VM) $(MPITESTS) $(CIRCUIT_TESTS)
	BUILD=$(BUILD) prove $(SCRIPTS)

# ---- what is installed -------------------------------------------------------

LIBDIR		= $(PREFIX)/lib
INCLUDEDIR	= $(PREFIX)/include
MANDIR		= $(PREFIX)/share/man
DOCDIR		= $(PREFIX)/share/doc/coll
VERSION		= $(shell awk '/define COLL_VERSION_M/ { v = v dot $$3; dot = "." } END { print v }' \
		  libcoll/coll.h)

install: all
	install -d $(addprefix $(DESTDIR),$(PREFIX)/bin $(PREFIX)/sbin $(PREFIX)/lib/systemd/system $(LIBDIR)/pkgconfig $(INCLUDEDIR) $(DOCDIR))
	install -m 755 $(BUILD)/coll $(BUILD)/collnoise $(DESTDIR)$(PREFIX)/bin
	install -m 755 $(BUILD)/colld $(DESTDIR)$(PREFIX)/sbin
	sed 's|/usr/local/|$(PREFIX)/|' daemon/colld.service \
		>$(DESTDIR)$(PREFIX)/lib/systemd/system/colld.service
	sed 's|/usr/local/|$(PREFIX)/|' daemon/coll-job@.service \
		>$(DESTDIR)$(PREFIX)/lib/systemd/system/coll-job@.service
	sed 's|/usr/local/|$(PREFIX)/|' daemon/coll-job >$(DESTDIR)$(PREFIX)/sbin/coll-job
	install -d $(DESTDIR)$(LIBDIR)/coll
	printf '#!/bin/sh\nexec $(PREFIX)/sbin/coll-job begin\n' >$(DESTDIR)$(LIBDIR)/coll/slurm-prolog
	printf '#!/bin/sh\nexec $(PREFIX)/sbin/coll-job end\n' >$(DESTDIR)$(LIBDIR)/coll/slurm-epilog
	chmod 755 $(DESTDIR)$(PREFIX)/sbin/coll-job $(DESTDIR)$(LIBDIR)/coll/slurm-prolog \
		$(DESTDIR)$(LIBDIR)/coll/slurm-epilog
	install -m 755 $(BUILD)/$(SONAME) $(DESTDIR)$(LIBDIR)
	ln -sf $(SONAME) $(DESTDIR)$(LIBDIR)/libcoll.so
	install -m 644 $(BUILD)/libcoll.a $(DESTDIR)$(LIBDIR)
	$(foreach mpi,$(MPIS),install -d $(DESTDIR)$(LIBDIR)/coll/$(mpi) && \
		install -m 755 $(BUILD)/mpi/$(mpi)/libcollmpi.so $(DESTDIR)$(LIBDIR)/coll/$(mpi) &&) true
	install -m 644 libcoll/coll.h uapi/coll_types.h $(DESTDIR)$(INCLUDEDIR)
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' \
		-e 's|@INCLUDEDIR@|$(INCLUDEDIR)|' -e 's|@VERSION@|$(VERSION)|' \
		libcoll/libcoll.pc.in >$(DESTDIR)$(LIBDIR)/pkgconfig/libcoll.pc
	install -m 644 README.md COPYING LICENSES/* $(DESTDIR)$(DOCDIR)
	BUILD=$(BUILD) sh man/install.sh $(DESTDIR)$(MANDIR)

# ---- the kernel's part -------------------------------------------------------

# Headers of the running kernel, or else the newest there are.
KDIR = $(firstword $(wildcard /lib/modules/$(shell uname -r)/build) \
	$(lastword $(sort $(wildcard /lib/modules/*/build))))

# The kernel's build writes beside its sources: it gets links to them. BTF, which nobody
# here reads, would need pahole.
MODULE		= build/module
MODULE_SOURCES	= Kbuild dkms.conf uapi core kmod

module:
	@test -e "$(KDIR)/Makefile" || { \
		echo "no kernel headers$(if $(KDIR), in $(KDIR)): as root:" \
			"apt-get install -y linux-headers-amd64, or KDIR=..." >&2; exit 1; }
	@mkdir -p $(MODULE)
	@find $(MODULE) -xtype l -delete
	@cp -asf $(addprefix $(CURDIR)/,$(MODULE_SOURCES)) $(MODULE)
	$(MAKE) -C $(KDIR) M=$(abspath $(MODULE)) CONFIG_DEBUG_INFO_BTF_MODULES= $(SPARSE) modules

# The module's source as DKMS takes it: dkms add $(PREFIX)/src/coll-$(VERSION)
DKMSDIR		= $(PREFIX)/src/coll-$(VERSION)
install: install-dkms
install-dkms:
	install -d $(DESTDIR)$(DKMSDIR)
	install -m 644 Kbuild dkms.conf $(DESTDIR)$(DKMSDIR)
	set -e; for file in $(wildcard uapi/* core/*.[ch] core/*/*.[ch] kmod/*.[ch] kmod/*/*.[ch]); do \
		install -D -m 644 $$file $(DESTDIR)$(DKMSDIR)/$$file; done

clean:
	rm -rf build

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
