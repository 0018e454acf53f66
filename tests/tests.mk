# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
# The programs of the tests, and the targets that run them.

.PHONY: tests vm fuzzers check check-all check-here check-emulated check-native check-unit check-multi check-net \
	check-noise check-circuit check-python \
	check-mpi check-mpi-programs check-torch-long check-load-long check-packages-long check-bare-long check-chaos check-scripts check-sanitize \
	sanitized check-threads threaded \
	check-fuzz check-fuzz-long fuzz fuzz-corpus coverage covered check-vm check-vm-long check-vm-kernels check-vm-debug \
	check-vm-kcsan check-vm-hostile

programs	= $(patsubst %.c,$(BUILD)/%,$(wildcard $(1)))
TESTLIB		:= $(wildcard tests/lib/*.c)
UNIT		:= $(call programs,tests/unit/*_test.c)
MULTI		:= $(call programs,tests/multi/*.c)
FUZZ		:= $(call programs,tests/fuzz/*_fuzz.c)
VM		:= $(call programs,tests/vm/init.c tests/vm/storm.c tests/vm/*_test.c)
CIRCUIT_TESTS	:= $(call programs,tests/circuit/*.c)
LOAD		:= $(call programs,tests/load/*.c)
CHAOS		:= $(addprefix $(BUILD)/tests/chaos/,chaos chaos_job)
SCRIPTS		:= $(sort $(wildcard tests/*/*.t))

# ---- programs ----------------------------------------------------------------

$(BUILD)/tests/unit/%: $(BUILD)/tests/unit/%.o $(call objects,$(TESTLIB) $(SIM) $(FLIT)) $(BUILD)/libcoll.a
	$(call step,LD,$@)$(LINK) $^ -lcmocka $(LIBS) -o $@

# They bring links of their own, so nothing may refer to those of the library.
EXEC_WORLD	= $(call objects,tests/unit/exec_world.c tests/lib/schedules.c)
$(BUILD)/tests/unit/exec_test: $(BUILD)/tests/unit/exec_test.o $(EXEC_WORLD) $(BUILD)/libcoll.a
	$(call step,LD,$@)$(LINK) $^ -lcmocka $(LIBS) -o $@

$(BUILD)/tests/unit/fused_test: $(BUILD)/tests/unit/fused_test.o $(EXEC_WORLD) $(BUILD)/libcoll.a
	$(call step,LD,$@)$(LINK) $^ -lcmocka $(LIBS) -o $@

$(BUILD)/tests/unit/in_order_test: $(BUILD)/tests/unit/in_order_test.o $(EXEC_WORLD) $(BUILD)/libcoll.a
	$(call step,LD,$@)$(LINK) $^ -lcmocka $(LIBS) -o $@

BOARD_WORLD	= $(call objects,tests/unit/board_world.c) $(EXEC_WORLD)
$(BUILD)/tests/unit/board_test: $(BUILD)/tests/unit/board_test.o $(BOARD_WORLD) $(BUILD)/libcoll.a
	$(call step,LD,$@)$(LINK) $^ -lcmocka $(LIBS) -o $@

$(BUILD)/tests/unit/killed_poster_test: $(BUILD)/tests/unit/killed_poster_test.o $(BOARD_WORLD) $(BUILD)/libcoll.a
	$(call step,LD,$@)$(LINK) $^ -lcmocka $(LIBS) -o $@

$(BUILD)/tests/unit/board_runs_test: $(BUILD)/tests/unit/board_runs_test.o $(BOARD_WORLD) $(BUILD)/libcoll.a
	$(call step,LD,$@)$(LINK) $^ -lcmocka $(LIBS) -o $@

$(BUILD)/tests/unit/publication_test: $(BUILD)/tests/unit/publication_test.o $(EXEC_WORLD) $(BUILD)/libcoll.a
	$(call step,LD,$@)$(LINK) $^ -lcmocka $(LIBS) -o $@

# The option tables of the commands.
$(BUILD)/tests/unit/options_test: \
		$(call objects,$(addprefix tools/common/,arguments.c options.c printed.c values.c))

# The checks of coll doctor, without its command and its hosts.
$(BUILD)/tests/unit/doctor_test: $(call objects,node/cpus.c node/small_file.c tools/common/in_path.c tools/common/metrics.c \
		$(filter-out %/cmd_doctor.c %/hosts.c %/pairs.c %/pairs_answer.c,$(wildcard tools/doctor/*.c)))

# Parts of collnoise.
$(BUILD)/tests/unit/noise_activity_test: \
		$(call objects,$(addprefix node/,activity.c capture.c cpus.c limit.c small_file.c))
$(BUILD)/tests/unit/noise_scan_test: \
		$(call objects,$(addprefix node/,cpus.c rules.c scan.c small_file.c task.c units.c))
$(BUILD)/tests/unit/noise_formats_test: $(call objects,tools/common/printed.c)
$(BUILD)/tests/unit/noise_cases_test.o: FILE_CFLAGS += $(NETLINK_CFLAGS)
$(BUILD)/tests/unit/noise_cases_test: $(call objects,$(addprefix node/,capture.c cgroup.c netlink.c units.c))
$(BUILD)/tests/unit/noise_cases_test: LIBS += $(NETLINK_LIBS)
$(BUILD)/tests/unit/noise_nodes_test: $(call objects,tools/noise/allocation.c tools/noise/nodelist.c node/capture.c)

# The simulator.
$(addprefix $(BUILD)/tests/unit/sim_,test goal_test loggops_test network_test nodes_test paper_test paths_test published_test \
		replay_test): \
		$(call objects,tests/unit/sim_job.c)

# Ranks that stop.
$(addprefix $(BUILD)/tests/unit/,leaf_test redundant_butterfly_test): $(call objects,tests/unit/stall_world.c)

# The circuit manager.
$(addprefix $(BUILD)/tests/unit/circuit_,manager_test random_test): \
		$(call objects,tests/unit/circuit_world.c)

# Its clients, without a switch's worker.
$(BUILD)/tests/unit/circuit_lists_test: $(call objects,$(addprefix daemon/circuit/,client.c clients.c delays.c manager.c \
		setup.c) $(wildcard daemon/switch/*.c) $(addprefix daemon/common/,closer.c local.c log.c notify.c subuid.c) \
		node/capture.c) | $(BUILD)/flags
$(BUILD)/tests/unit/circuit_lists_test: LIBS += $(SWITCH_LIBS)

# Drivers of switches, against an emulated switch.
$(BUILD)/tests/unit/switch_test: $(call objects,$(wildcard daemon/switch/*.c)) | \
		$(BUILD)/tests/circuit/fake_switch
$(BUILD)/tests/unit/switch_test: LIBS += $(SWITCH_LIBS)

# A task that does not leave its CPU.
$(BUILD)/tests/unit/move_test: $(call objects,node/small_file.c)

# What colld may move; its rules.
$(BUILD)/tests/unit/act_test: $(call objects,$(addprefix node/,cpus.c freezer.c priority.c rules.c small_file.c \
		task.c units.c))
# Who had a rank's core.
$(BUILD)/tests/unit/observe_counted_test: $(call objects,$(addprefix node/,cgroup.c cpus.c small_file.c task.c))
# What coll.ko says of it.
$(BUILD)/tests/unit/counter_test.o: FILE_CFLAGS += $(NETLINK_CFLAGS)
$(BUILD)/tests/unit/counter_test: $(call objects,node/cpus.c daemon/common/metrics.c)
$(BUILD)/tests/unit/watch_module_test.o: FILE_CFLAGS += $(NETLINK_CFLAGS)
$(BUILD)/tests/unit/watch_module_test: $(call objects,node/cpus.c)
$(BUILD)/tests/unit/watch_module_test: LIBS += $(NETLINK_LIBS)
# What it does to them.
$(BUILD)/tests/unit/hold_test: $(call objects,$(NODE) daemon/common/log.c)
$(BUILD)/tests/unit/hold_test: LIBS += $(NETLINK_LIBS)

# Tasks that it moves, and puts back.
$(BUILD)/tests/unit/pin_test.o: FILE_CFLAGS += $(NETLINK_CFLAGS)
$(BUILD)/tests/unit/pin_test: $(call objects,$(NODE) $(addprefix daemon/common/,log.c metrics.c))
$(BUILD)/tests/unit/pin_test: LIBS += $(NETLINK_LIBS)

# Code of coll.ko, on as much of a kernel as it needs.
$(BUILD)/tests/unit/pin_move_test.o: FILE_CFLAGS += -Itests/unit/kernel -Wno-unused-parameter

# As on arm64, wherever it runs.
$(BUILD)/tests/unit/plain_name_test.o: FILE_CFLAGS += -funsigned-char

$(BUILD)/tests/unit/closer_test: $(call objects,daemon/common/closer.c)

# What colld tells of jobs, without its doors.
$(BUILD)/tests/unit/live_report_test: $(call objects,$(addprefix daemon/report/,child.c list.c question.c \
		sandbox.c share.c) \
		daemon/common/answer.c daemon/common/host.c $(REPORT) node/units.c) $(STYLE)

$(BUILD)/tests/multi/%: $(BUILD)/tests/multi/%.o $(call objects,$(TESTLIB)) $(BUILD)/libcoll.a
	$(call step,LD,$@)$(LINK) $^ $(LIBS) -o $@

# Jobs that are larger or live longer than usual, and what a daemon costs.
$(BUILD)/tests/load/%: $(BUILD)/tests/load/%.o $(call objects,$(TESTLIB)) $(BUILD)/libcoll.a
	$(call step,LD,$@)$(LINK) $^ $(LIBS) -o $@

# What one noisy rank makes the others wait, by algorithm.
$(BUILD)/tests/bench/late_rank: $(call objects,tests/bench/late_rank.c tests/lib/rank.c) $(BUILD)/libcoll.a
	$(call step,LD,$@)$(LINK) $^ $(LIBS) -o $@

# The library's choice beside the best one, simulated.
$(BUILD)/tests/bench/simulated_choice: $(call objects,tests/bench/simulated_choice.c $(SIM)) $(BUILD)/libcoll.a
	$(call step,LD,$@)$(LINK) $^ $(LIBS) -o $@

# What algorithms are predicted to take, beside their schedules' messages.
$(BUILD)/tests/bench/predicted_costs: $(call objects,tests/bench/predicted_costs.c) $(BUILD)/libcoll.a
	$(call step,LD,$@)$(LINK) $^ $(LIBS) -o $@

# The library's choice on a simulated job.
$(BUILD)/tests/bench/online_choice: $(call objects,$(addprefix tests/bench/,online_choice.c simulated_calls.c) $(SIM)) \
		$(BUILD)/libcoll.a
	$(call step,LD,$@)$(LINK) $^ $(LIBS) -o $@

$(BUILD)/tests/circuit/%: $(BUILD)/tests/circuit/%.o $(call objects,tests/lib/descriptors.c tests/lib/rank.c) $(BUILD)/libcoll.a
	$(call step,LD,$@)$(LINK) $^ -lmicrohttpd $(LIBS) -o $@

# The fault campaign. Its ranks find the interposer before the C library.
$(BUILD)/tests/chaos/fault.so: $(call objects,tests/chaos/fault.c)
	$(call step,LD,$@)$(LINK_SHARED) -Wl,-soname,fault.so $^ -luring -ldl -o $@
# The sanitizers interpose the same functions.
INTERPOSER	= $(if $(SANITIZE),$(call objects,tests/chaos/fault_none.c),$(BUILD)/tests/chaos/fault.so)
$(BUILD)/tests/chaos/chaos: $(call objects,$(addprefix tests/chaos/,chaos.c plan.c round.c judge.c \
		strangers.c colld.c full.c module.c board.c) $(TESTLIB)) $(BUILD)/libcoll.a
	$(call step,LD,$@)$(LINK) $^ $(LIBS) -o $@
$(BUILD)/tests/chaos/chaos_job: $(call objects,$(addprefix tests/chaos/,chaos_job.c board.c cut.c) \
		$(TESTLIB)) $(BUILD)/libcoll.a $(INTERPOSER)
	$(call step,LD,$@)$(LINK) $(filter-out %.so,$^) -Wl,-rpath,'$$ORIGIN' $(filter %.so,$^) \
		$(LIBS) -o $@

# LIBFUZZER=1: it has the main program.
FUZZ_MAIN	= $(if $(LIBFUZZER),,tests/fuzz/main.c tests/fuzz/coverage.c)
$(BUILD)/tests/fuzz/%_fuzz: $(BUILD)/tests/fuzz/%_fuzz.o $(call objects,$(FUZZ_MAIN) \
		$(addprefix tests/lib/,mutate.c schedules.c two_sides.c)) $(BUILD)/libcoll.a
	$(call step,LD,$@)$(LINK) $(if $(LIBFUZZER),-fsanitize=fuzzer) $(filter %.o,$^) $(BUILD)/libcoll.a \
		$(FUZZ_LIBS) $(LIBS) -o $@
$(BUILD)/tests/fuzz/exec_fuzz: $(BUILD)/tests/fuzz/exec_fuzz.o $(call objects,$(FUZZ_MAIN) tests/lib/mutate.c) \
		$(EXEC_WORLD) $(BUILD)/libcoll.a
	$(call step,LD,$@)$(LINK) $(if $(LIBFUZZER),-fsanitize=fuzzer) $^ $(LIBS) -o $@
$(BUILD)/tests/fuzz/replay_fuzz: $(call objects,$(SIM))
$(addprefix $(BUILD)/tests/fuzz/,$(addsuffix _fuzz,bootstrap client handshake seal store switch)): \
		$(call objects,tests/fuzz/sockets.c)
# The fuzzer is the switch's worker, and libcurl.
SWITCHES	= $(call objects,$(filter-out %/worker.c,$(wildcard daemon/switch/*.c)))
$(BUILD)/tests/fuzz/client_fuzz: $(SWITCHES) $(call objects,$(addprefix daemon/circuit/,client.c clients.c \
		delays.c manager.c setup.c) daemon/common/closer.c daemon/common/local.c \
		daemon/common/notify.c daemon/common/subuid.c node/capture.c)
$(BUILD)/tests/fuzz/switch_fuzz: $(SWITCHES) $(call objects,daemon/common/log.c)
$(BUILD)/tests/fuzz/policy_fuzz: $(SWITCHES) $(call objects,daemon/common/log.c daemon/circuit/setup.c $(NODE))
$(BUILD)/tests/fuzz/capture_fuzz: $(call objects,node/capture.c tools/noise/figures.c tools/noise/formats.c \
		tools/common/printed.c)
$(BUILD)/tests/fuzz/flight_fuzz: $(call objects,tests/lib/flight.c tools/common/metrics.c $(filter-out %/cmd_show.c %/gather.c,\
		$(wildcard tools/show/*.c)) $(REPORT) node/units.c) $(STYLE)
$(BUILD)/tests/fuzz/netlink_fuzz.o: FILE_CFLAGS += $(NETLINK_CFLAGS) -I$(BUILD)/node
$(BUILD)/tests/fuzz/netlink_fuzz.o: $(BUILD)/node/netlink_names.h
$(addprefix $(BUILD)/tests/fuzz/,client_fuzz policy_fuzz switch_fuzz): FUZZ_LIBS += $(SWITCH_LIBS)
$(addprefix $(BUILD)/tests/fuzz/,netlink_fuzz policy_fuzz): FUZZ_LIBS += $(NETLINK_LIBS)
# It is called for each block.
$(call objects,tests/fuzz/coverage.c): FILE_CFLAGS += -O2 -fno-sanitize=all

# Programs of the test machine, where there is no other file: static.
VM_COMMON	= $(call objects,$(addprefix tests/vm/,vm.c ask.c faults.c job.c known.c offload.c watches.c) \
		  $(addprefix node/,cpus.c netlink.c watch_module.c) tests/lib/interpret.c tests/lib/mutate.c tests/lib/schedules.c) $(BUILD)/libcoll.a
$(BUILD)/tests/vm/%: $(BUILD)/tests/vm/%.o $(VM_COMMON)
	$(call step,LD,$@)$(CC) -static -Wl,--no-warnings $(ALL_LDFLAGS) $^ \
		$(shell pkg-config --static --libs libnl-genl-3.0) -luring -lm -o $@
# Ranks of their own: they have the whole library.
$(BUILD)/tests/vm/stand_in_test: $(call objects,$(addprefix tests/vm/,stand_in_test.c vm.c job.c) \
		node/netlink.c tests/lib/rank.c) $(BUILD)/libcoll.a
$(BUILD)/tests/vm/attribution_test: $(call objects,$(addprefix tests/vm/,attribution_test.c ask.c vm.c job.c known.c) \
		$(addprefix node/,cpus.c netlink.c watch_module.c) tests/lib/rank.c) $(BUILD)/libcoll.a
$(addprefix $(BUILD)/tests/vm/,attribution_test stand_in_test):
	$(call step,LD,$@)$(LINK) $^ $(NETLINK_LIBS) $(LIBS) -o $@
$(BUILD)/tests/vm/storm: tests/vm/storm.c
	@mkdir -p $(@D)
	$(call step,CC,$<)$(CC) -O2 -Wall -Wextra -static -nostdlib -fno-stack-protector -fno-pie \
		-no-pie -Wl,--build-id=none,-z,noseparate-code $< -o $@

# core/ must compile for a world without a C library.
FREESTANDING	= $(patsubst %.c,$(BUILD)/freestanding/%.o,\
		  $(filter-out core/assert% core/text% core/noise/text%,$(CORE)))
$(BUILD)/freestanding/%.o: %.c
	@mkdir -p $(@D)
	$(call step,CC,$< (freestanding))$(CC) -std=gnu11 -Wall -Wextra -Werror -O2 -ffreestanding \
		-fno-builtin -nostdlib -iquote . -MMD -MP -c $< -o $@

# The shim is tested with programs that know MPI only.
MPI_TEST_CASE	= $(addprefix tests/mpi/,test_case.c layout.c reduction.c)
MPI_TEST_CFLAGS	= -std=gnu11 -D_GNU_SOURCE -Wall -Wextra $(CFLAGS)
define shim_test_rules
$(BUILD)/tests/mpi/$(1)/%: tests/mpi/%.c $(MPI_TEST_CASE) $(wildcard tests/mpi/*.h)
	@mkdir -p $$(@D)
	$$(call step,LD,$$@)$(call mpicc,$(1)) $$(MPI_TEST_CFLAGS) $$< \
		$$(if $$(filter %/every_form %/random_calls %/write_results,$$@),$(MPI_TEST_CASE)) \
		-lpthread -ldl -o $$@

$(BUILD)/tests/mpi/$(1)/call_overhead: tests/mpi/call_overhead.c tests/mpi/mpitest.h $(BUILD)/libcoll.a
	@mkdir -p $$(@D)
	$$(call step,LD,$$@)$(call mpicc,$(1)) $$(MPI_TEST_CFLAGS) -iquote . -Iuapi $$< \
		$(BUILD)/libcoll.a $$(LIBS) -ldl -o $$@

$(BUILD)/tests/mpi/$(1)/mpi_plugin.so: tests/mpi/mpi_plugin.c tests/mpi/mpitest.h
	@mkdir -p $$(@D)
	$$(call step,LD,$$@)$(call mpicc,$(1)) $$(MPI_TEST_CFLAGS) -fPIC -shared $$< -ldl -o $$@

$(BUILD)/tests/mpi/$(1)/fortran_%: tests/mpi/fortran_%.* tests/mpi/fortran_counts.c
	@mkdir -p $$@.modules
	$$(call step,LD,$$@)$(call mpicc,$(1)) $$(MPI_TEST_CFLAGS) -c tests/mpi/fortran_counts.c \
		-o $$@.counts.o && \
	$(subst mpicc,mpif90,$(call mpicc,$(1))) -fallow-argument-mismatch -w $$(CFLAGS) \
		-J$$@.modules $$< $$@.counts.o -ldl -o $$@
endef
$(foreach mpi,$(MPIS),$(eval $(call shim_test_rules,$(mpi))))

MPITESTS	:= $(foreach mpi,$(MPIS),$(addprefix $(BUILD)/tests/mpi/$(mpi)/, \
		   every_form random_calls write_results many_communicators edge_cases arguments \
		   thread_multiple spawn \
		   call_overhead unfinished failed entering recorded handed profiled mpi_plugin.so \
		   $(if $(shell command -v gfortran),fortran_mpif fortran_mpi fortran_f08))) \
		   $(if $(MPIS),$(addprefix $(BUILD)/tests/mpi/,dlopen_local yield.so))

$(BUILD)/tests/mpi/yield.so: tests/bench/yield_in_poll.c
	@mkdir -p $(@D)
	$(call step,LD,$@)$(CC) $(MPI_TEST_CFLAGS) -fPIC -shared $< -o $@

$(BUILD)/tests/mpi/dlopen_local: $(BUILD)/tests/mpi/%: tests/mpi/%.c
	@mkdir -p $(@D)
	$(call step,LD,$@)$(CC) $(MPI_TEST_CFLAGS) $< -ldl -o $@

tests: all $(UNIT) $(MULTI) $(FREESTANDING) $(VM) $(MPITESTS) $(CIRCUIT_TESTS) $(CHAOS) $(LOAD) $(PYTHON_MODULE) \
	$(addprefix $(BUILD)/tests/bench/,online_choice late_rank predicted_costs) ## all programs, run nothing

vm: $(VM) $(BUILD)/coll $(BUILD)/colld $(addprefix $(BUILD)/tests/multi/,every_collective groups \
	rank_failures progress_without_calls progress_auto_follows connect_during_offload \
	leave_before_offload poll_on_fd hang) $(BUILD)/tests/unit/shared_memory_test $(CHAOS)

fuzzers: $(FUZZ)

# ---- runs --------------------------------------------------------------------

# What fails is said, and shown in full, by itself, and has failed if it fails there too: these are jobs
# of many ranks on a machine with other work to do. No test takes longer than half an hour. Scripts
# take turns, since they start jobs of many ranks. Each says how long it took, by the clock and of CPU.
PROVED		= $(BUILD)/proved
PROVE		= prove --timer --exec tests/lib/one_test.sh --statefile=$(PROVED)
numbered	= tests/lib/progress.sh $(PROVED).status $(words $(1)) $(PROVE)
prove		= $(call numbered,$(1)) --state=save $(2) $(1) || $(PROVE) -v --state=failed
IN_TURN		= -j2 --rules='seq=tests/**' --rules='par=**'
# Newer compilers look for uses after a return by themselves.
TEST_ENVIRONMENT = export BUILD=$(BUILD) CMOCKA_MESSAGE_OUTPUT=TAP SANITIZE=$(SANITIZE) DEBUG=$(DEBUG) \
		   ASAN_OPTIONS=detect_stack_use_after_return=1;

# The sanitized trees check the expensive invariants too.
ADDRESS		= BUILD=$(BUILD)/address SANITIZE=address,undefined DEBUG=1
THREAD		= BUILD=$(BUILD)/thread SANITIZE=thread DEBUG=1

# Beside the emulated machine, which takes one core for as long as all else takes, first most of it
# with every memory access checked, and threads with every race checked; then everything as it is
# installed.
check: deps					## set up, build, run all tests
	$(SUBMAKE) -j2 tests
	$(SUBMAKE) -j2 check-emulated check-here

check-here:
	$(SUBMAKE) -j2 $(ADDRESS) fuzzers
	$(SUBMAKE) -j2 $(ADDRESS) sanitized
	$(SUBMAKE) -j2 $(THREAD) threaded
	$(SUBMAKE) -j2 check-native

check-all: check-emulated check-native		## all tests, without the sanitizers; -j2 at once

EMULATED	= $(wildcard tests/vm/*.t)
check-emulated: PROVED = $(BUILD)/proved.emulated
check-emulated: tests
	@$(TEST_ENVIRONMENT) $(call prove,$(EMULATED))

check-native: tests
	@$(TEST_ENVIRONMENT) $(call prove,$(UNIT) $(filter-out $(EMULATED),$(SCRIPTS)),$(IN_TURN))

check-unit: $(UNIT)				## tests of parts, in seconds
	@$(TEST_ENVIRONMENT) prove -j2 --exec '' $(UNIT)

check-multi: tests				## jobs of several processes on this machine
check-net: tests				## jobs across network namespaces
check-noise: tests				## collnoise and pinning
check-circuit: tests				## the circuit manager and its switches
check-mpi: tests				## unmodified MPI programs under the shim
check-python: tests				## import coll
check-multi check-net check-noise check-circuit check-mpi check-python: check-%:
	@$(TEST_ENVIRONMENT) $(call prove,$(wildcard tests/$*/*.t))

check-scripts: tests
	@$(TEST_ENVIRONMENT) prove $(SCRIPTS)

# Applications and launchers from Debian, which it installs; every rank count.
check-mpi-programs: tests			## applications and launchers from Debian
	@./.ci/deps hpcc lammps scalapack-mpi-test libfftw3-dev python3-mpi4py slurmctld slurmd \
		slurm-client slurm-wlm-basic-plugins libpmi0 python3-torch openssh-server
	@$(TEST_ENVIRONMENT) prove --exec sh \
		$(addprefix tests/mpi/,applications.sh every_rank_count.sh slurm.sh torchrun.sh)
	@$(TEST_ENVIRONMENT) prove tests/multi/run_hosts.t

# PyTorch is half a gigabyte, and its extension takes some minutes to compile. 1.13 here, and 2.6 in a
# Debian 13 of its own, in the cache.
check-torch-long: deps-torch			## the backend of torch.distributed, with Debian's PyTorch
	@./.ci/deps debootstrap
	$(SUBMAKE) $(BUILD)/coll $(STORE) torch
	@$(TEST_ENVIRONMENT) prove -v --exec sh tests/torch/backend.sh tests/torch/source.sh \
		tests/torch/torch_own.sh tests/torch/trixie.sh

# Each prints what it took; docs/results/load.md records it.
check-load-long: tests				## 256 ranks, 10^4 groups, 10^6 calls, colld beside 10^4 processes: an hour
	@$(TEST_ENVIRONMENT) COLL_TEST_LONG=1 prove -v $(wildcard tests/load/*.t)

# Installs, uses and purges them in a chroot. SUITE=trixie for another Debian, where they are built first; TORCH=no
# spares 3 GB there; COLL_TEST_CHROOT= a folder made by debootstrap.
SUITE		?= bookworm
check-packages-long: $(if $(filter bookworm,$(SUITE)),deb)	## Debian's packages, in a chroot; SUITE= another Debian's; half an hour
	@./.ci/deps debootstrap lintian
	@$(TEST_ENVIRONMENT) TORCH=$(TORCH) prove -v --exec sh tests/packages/debian.sh :: $(SUITE)

# TARGET=check for the other one; SUITE=trixie for another Debian.
TARGET		?= demo
check-bare-long:				## README's commands on a bare Debian, in a chroot; SUITE=, TARGET=
	@./.ci/deps debootstrap
	@$(TEST_ENVIRONMENT) prove -v --exec sh tests/packages/bare.sh :: $(SUITE) "$(TARGET)"

# The scripts whose timing counts stay out.
check-sanitize:					## most tests with every memory access checked
	$(SUBMAKE) $(ADDRESS) sanitized

SANITIZED	= tests/chaos/campaign.t $(addprefix tests/multi/,every_collective.t groups.t mismatched_calls.t argument_rules.t \
		  agree_and_shrink.t unauthenticated_peers.t collectives_with_clusters.t \
		  early_exit.t progress_modes.t link_policies.t link_streams.t published.t) \
		  tests/net/network_failure.t tests/net/failure_in_every_algorithm.t \
		  tests/circuit/colld_restart.t
sanitized: all $(UNIT) $(MULTI) $(CIRCUIT_TESTS) $(CHAOS)
	@$(TEST_ENVIRONMENT) export COLL_TEST_LITTLE=1; $(call prove,$(UNIT) $(SANITIZED),$(IN_TURN))

check-threads:					## tests of threads, with every race checked
	$(SUBMAKE) -j2 $(THREAD) threaded

THREADED	= $(addprefix $(BUILD)/tests/unit/,ring_test bell_test board_threads_test exposed_test store_test \
		  boot_test)
threaded: $(BUILD)/coll $(STORE) $(THREADED) $(BUILD)/tests/multi/context_per_thread \
		$(BUILD)/tests/multi/threads_at_once
	@$(TEST_ENVIRONMENT) \
		export TSAN_OPTIONS="suppressions=$(CURDIR)/tests/lib/thread_sanitizer.supp"; \
		$(call prove,$(THREADED) tests/multi/context_per_thread.t \
			tests/multi/threads_at_once.t)

# Each input is refused with a reason, or good.
FUZZ_RUNS	= 20000
FUZZ_SECONDS	= 60
check-fuzz:					## the fuzzers; FUZZ_RUNS=20000 inputs each
	$(SUBMAKE) $(ADDRESS) fuzzers
	@$(TEST_ENVIRONMENT) FUZZ_RUNS=$(FUZZ_RUNS) prove tests/fuzz/fuzz.t

# Objects that say which code an input runs, so that inputs which run new code are gone on with.
FUZZING		= BUILD=$(BUILD)/fuzzing SANITIZE=address,undefined \
		  CFLAGS="-O2 -g -fsanitize-coverage=trace-pc"
FUZZ_LONG_RUNS	= 10000000
check-fuzz-long:				## the same, led by coverage; FUZZ_LONG_RUNS=10000000: two hours
	$(SUBMAKE) $(FUZZING) fuzzers
	@$(TEST_ENVIRONMENT) FUZZERS=$(BUILD)/fuzzing/tests/fuzz FUZZ_RUNS=$(FUZZ_LONG_RUNS) \
		prove -v tests/fuzz/fuzz.t

# At most 40 inputs of at most 2 KB each, which run as much code as so few can.
fuzz-corpus:					## tests/fuzz/corpus anew, of 100,000 inputs each
	$(SUBMAKE) $(FUZZING) fuzzers
	@set -e; for fuzz in $(patsubst %_fuzz,%,$(notdir $(FUZZ))); do \
		mkdir -p tests/fuzz/corpus/$$fuzz; \
		$(BUILD)/fuzzing/tests/fuzz/$${fuzz}_fuzz --corpus 100000; \
	done

fuzz:						## libFuzzer, by clang; FUZZ_SECONDS=60 each
	@command -v clang >/dev/null || { echo "make fuzz: clang is not installed" >&2; exit 1; }
	$(SUBMAKE) BUILD=$(BUILD)/libfuzzer CC=clang SANITIZE=address,undefined LIBFUZZER=1 \
		CFLAGS="-O1 -g -fsanitize=fuzzer-no-link" fuzzers
	@set -e; for fuzz in $(patsubst %_fuzz,%,$(notdir $(FUZZ))); do \
		mkdir -p $(BUILD)/libfuzzer/$$fuzz; \
		$(BUILD)/libfuzzer/tests/fuzz/$${fuzz}_fuzz -max_total_time=$(FUZZ_SECONDS) \
			-artifact_prefix=$(BUILD)/libfuzzer/ $(BUILD)/libfuzzer/$$fuzz \
			tests/fuzz/corpus/$$fuzz; \
	done

# Every line counts, so nothing is optimized; a line is run by few inputs as well as by many. A test
# that fails says so, and the lines that it did not run are missing: make check is the test.
COVERAGE	= BUILD=$(BUILD)/coverage LDFLAGS=--coverage \
		  CFLAGS="-O0 -g --coverage -fprofile-update=atomic"
coverage:					## lines that tests run; fails below 95 % of core/ and algo/, 85 % of libcoll/
	$(SUBMAKE) -j2 $(COVERAGE) tests
	$(SUBMAKE) $(COVERAGE) covered
	@tests/lib/coverage.sh $(BUILD)/coverage

COVERED		= $(filter-out %/bench_overlap.t,$(wildcard tests/unit/coll_*.t tests/multi/*.t \
		  tests/net/*.t tests/circuit/*.t))
covered:
	@find $(BUILD) -name '*.gcda' -delete
	-@$(TEST_ENVIRONMENT) export COLL_TEST_LITTLE=1; $(call prove,$(UNIT) $(COVERED),$(IN_TURN))

# It prints the command that repeats what it finds. WALK=memory or WALK=descriptor: every such
# call of a small job fails in turn.
SEED		?=
MINUTES		?= 5
ROUNDS		?=
check-chaos: $(CHAOS) $(BUILD)/coll $(STORE)	## random jobs with random faults: MINUTES=5 or ROUNDS=, SEED=
	@$(BUILD)/tests/chaos/chaos $(if $(ROUNDS),--rounds $(ROUNDS),--minutes $(MINUTES)) \
		$(if $(SEED),--seed $(SEED)) $(if $(WALK),--walk $(WALK))

# Kernels that are built here (tests/vm/built) take some minutes of two idle CPUs, once a machine.
KERNELS		?= 6.1 6.12
BUILT		= debug debug-6.12 kcsan mainline
BUILD_PACKAGES	= flex bison bc libelf-dev xz-utils
on_kernels	= $(if $(filter $(BUILT),$(1)),./.ci/deps $(BUILD_PACKAGES);) \
		  $(TEST_ENVIRONMENT) tests/vm/kernels $(2) $(1)

check-vm: vm					## the module, in an emulated machine: KERNELS="6.1 6.12 mainline newest"
	@$(TEST_ENVIRONMENT) prove -v $(filter-out tests/vm/linux-%,$(wildcard tests/vm/*.t))
	@$(call on_kernels,$(KERNELS))

# 10^6 messages, 10,000 cycles: three quarters of an hour a kernel. KERNELS=6.12 for one of them;
# KERNELS=debug for the debug kernel, two hours or more.
check-vm-long: vm check-vm-kernels		## the same, for 45 minutes a kernel, and on other kernels
	@$(TEST_ENVIRONMENT) prove -v tests/vm/exact.t :: -l
	@$(call on_kernels,$(KERNELS),-l)

# Five to ten minutes each, when they and Debian 13's compilers have been got (tests/vm/kernel,
# tests/vm/toolchain: 600 MB in the cache, as root). OTHER_KERNELS=arm64 for one of them.
OTHER_KERNELS	?= mainline newest 6.12-rt 6.1-rt 6.12-isolated newest-isolated arm64
check-vm-kernels: vm				## the module on mainline, on Debian's newest, on PREEMPT_RT, isolated CPUs, arm64
	@$(call on_kernels,$(OTHER_KERNELS))

# KASAN, lockdep, kmemleak; or every data race. LONG=-l: 10^6 messages and 10,000 cycles alone.
check-vm-debug: vm				## the same on a debug kernel, which it builds
check-vm-kcsan: vm				## the same on a kernel that sees data races, which it builds
check-vm-debug check-vm-kcsan: check-vm-%:
	@$(call on_kernels,$*,$(LONG))

# 100,000 messages and 10,000 schedules a part. SEED= goes on where another campaign ended.
PARTS		?= 100
check-vm-hostile: vm				## hostile input while memory fails, in PARTS=100; KERNELS="debug kcsan"
	@export SEED=$(SEED); $(call on_kernels,$(if $(filter file,$(origin KERNELS)),debug kcsan,$(KERNELS)),-f $(PARTS))
