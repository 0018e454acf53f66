# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
# For people: `make help` lists the targets. The kernel's own build reads Kbuild.
# The parts: mpi/mpi.mk (the shim), bindings/python/python.mk, kmod/kmod.mk (the module),
# packaging/install.mk, tests/tests.mk.

TOP		:= $(patsubst %/,%,$(dir $(realpath $(lastword $(MAKEFILE_LIST)))))
ifneq ($(TOP),$(CURDIR))
# Called from another folder, as make -f PATH/Makefile: that is where the build goes.
goals		:= $(or $(MAKECMDGOALS),all)
.PHONY: $(goals)
$(firstword $(goals)):
	@$(MAKE) --no-print-directory -C $(TOP) O=$(abspath $(or $(O),.)) $(MAKECMDGOALS)
$(wordlist 2,$(words $(goals)),$(goals)): $(firstword $(goals)) ;@:
else

# ---- settings ----------------------------------------------------------------

# Each combination of SANITIZE and DEBUG has a tree of its own.
comma		:= ,
BUILD		= $(or $(O),build)$(if $(SANITIZE),/$(firstword $(subst $(comma), ,$(SANITIZE))))$(if $(DEBUG),/debug)
PREFIX		= /usr/local

CC		= gcc
CFLAGS		= -O2 -g
OPTIMIZED	= $(filter-out -O0,$(filter -O%,$(CFLAGS)))
HARDENING	= -fstack-protector-strong \
		  $(if $(SANITIZE),,$(if $(OPTIMIZED),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3))
# What all ranks compute of the same numbers, and choose by, has the same bits on each CPU: a product and a sum are
# not fused where the CPU can. So have reductions (core/reduce_float.c).
SAME_BITS	= -ffp-contract=off
ALL_CFLAGS	= -std=gnu11 -Wall -Wextra -Wmissing-prototypes -Wshadow -fvisibility=hidden -fPIC $(SAME_BITS) \
		  -iquote . -Iuapi -D_GNU_SOURCE -MMD -MP $(HARDENING) $(if $(DEBUG),-DCOLL_DEBUG) \
		  $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all \
		  -fno-omit-frame-pointer) $(CFLAGS)
ALL_LDFLAGS	= -Wl,-z,relro,-z,now,-z,noexecstack $(if $(SANITIZE),-fsanitize=$(SANITIZE)) $(LDFLAGS)
LIBRARY_LIBS	= -luring -lnettle -lm -lpthread
LIBS		= -ljansson $(LIBRARY_LIBS)

# FILE_CFLAGS: what some files need besides, set below for their objects.
COMPILE		= $(CC) $(ALL_CFLAGS) $(FILE_CFLAGS)
LINK		= $(CC) -pie $(ALL_LDFLAGS)
LINK_SHARED	= $(CC) -shared $(ALL_LDFLAGS)

# A step is one line, "CC file"; V=1: the whole command.
verbose		= $(filter-out 0,$(V))
step		= $(if $(verbose),,@echo '$(1) $(2)';)
Q		= $(if $(verbose),,@)
SUBMAKE		= +@$(MAKE) --no-print-directory BUILD=$(BUILD)
# To the kernel's makefile O means something else.
MAKEOVERRIDES	:= $(filter-out O=%,$(MAKEOVERRIDES))

# ---- sources -----------------------------------------------------------------

objects		= $(patsubst %.c,$(BUILD)/%.o,$(1))

CORE		:= $(wildcard core/*.c core/*/*.c)
ALGO		:= $(wildcard algo/*.c algo/*/*.c) $(EXTRA_ALGO)
ALGO_LIST	= $(BUILD)/algo/list.c
LIBCOLL		:= $(wildcard libcoll/*/*.c)
SIM		:= $(wildcard sim/*.c)
FLIT		:= $(wildcard flit/*.c)
NODE		:= $(wildcard node/*.c)
OBSERVE		:= $(wildcard node/observe/*.c)
REPORT		:= $(wildcard node/report/*.c)
COLL		:= $(filter-out tools/collnoise.c tools/noise/% tools/store/%,$(wildcard tools/*.c tools/*/*.c))
# Text that is in the programs: the palette, the script and the style of pages.
PALETTE		= $(BUILD)/tools/common/palette.gp.o
STYLE		= $(BUILD)/tools/common/palette.css.o $(BUILD)/node/report/page.css.o
PAGE		= $(STYLE) $(BUILD)/tools/noise/page.js.o
COLLNOISE	:= tools/collnoise.c $(filter-out %/arena.c %/emit.c,$(wildcard tools/common/*.c)) \
		   $(wildcard tools/noise/*.c)
COLLD		:= $(wildcard daemon/*.c daemon/*/*.c)
STORE		= $(BUILD)/libexec/coll/coll-store

.DEFAULT_GOAL	:= all
.SECONDARY:
.DELETE_ON_ERROR:
.PHONY: all help deps demo bench bench-online bench-choice figures spec clean FORCE

include mpi/mpi.mk
include bindings/python/python.mk
include bindings/torch/torch.mk

all: $(BUILD)/libcoll.a $(BUILD)/libcoll.so $(BUILD)/coll $(BUILD)/collnoise \
	$(STORE) $(BUILD)/colld $(COLLMPI)	## the library, the tools, the daemon, the shim

# ---- objects -----------------------------------------------------------------

# Objects depend on the flags that they were compiled with.
FLAGS		:= $(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS)
$(BUILD)/flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(subst ','\'',$(FLAGS))' | cmp -s - $@ || \
		printf '%s\n' '$(subst ','\'',$(FLAGS))' >$@

$(BUILD)/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call step,CC,$<)$(COMPILE) -c $< -o $@ $(FILE_AFTER)

# The linker puts sections of this name next to each other.
OBJCOPY		:= $(shell $(CC) -print-prog-name=objcopy)
$(BUILD)/short_call: libcoll/short_call
	@mkdir -p $(@D)
	@sed '/^\(#\|$$\)/d; s/.*/--rename-section .text.&=.text.hot.&/' $< >$@
SHORT_CALL	:= $(if $(SANITIZE)$(filter -flto%,$(CFLAGS)),,$(call objects,$(LIBCOLL) core/reduce.c))
$(SHORT_CALL): $(BUILD)/short_call
$(SHORT_CALL): FILE_CFLAGS += -ffunction-sections
$(SHORT_CALL): FILE_AFTER = && $(OBJCOPY) @$(BUILD)/short_call $@

# The compiler's loops are the product in the reductions, and in the simulator's passes over
# all ranks.
$(call objects,core/reduce.c core/reduce_float.c): FILE_CFLAGS += -O3
$(call objects,sim/levels.c sim/redundant.c): FILE_CFLAGS += -O3

# Loaded when a PMIx server starts a rank; without its header that way is left out.
$(call objects,libcoll/boot/pmix.c): FILE_CFLAGS += $(shell pkg-config --cflags pmix 2>/dev/null)

# Netlink: to coll.ko, and to the kernel's routing.
NETLINK_CFLAGS	:= $(shell pkg-config --cflags libnl-genl-3.0 libnl-route-3.0)
NETLINK_LIBS	:= $(shell pkg-config --libs libnl-genl-3.0)
SWITCH_LIBS	:= $(shell pkg-config --libs libcurl libnl-route-3.0)
$(foreach part,node daemon tools/noise tests/vm,$(BUILD)/$(part)/%.o): FILE_CFLAGS += $(NETLINK_CFLAGS)

# The names of the family's attributes are in one place, the header.
$(BUILD)/node/netlink.o: FILE_CFLAGS += -I$(BUILD)/node
$(BUILD)/node/netlink.o: $(BUILD)/node/netlink_names.h
$(BUILD)/node/netlink_names.h: node/netlink_names.awk uapi/coll_netlink.h
	@mkdir -p $(@D)
	$(call step,GEN,$@)awk -f $^ >$@

# Every algorithm's file is in the list. EXTRA_ALGO names files outside the tree.
$(ALGO_LIST): algo/list.awk $(ALGO)
	@mkdir -p $(@D)
	$(call step,GEN,$@)LC_ALL=C awk -f $^ >$@

$(BUILD)/algo/list.o: $(ALGO_LIST) $(BUILD)/flags
	$(call step,CC,$<)$(COMPILE) -c $< -o $@

# One palette for all pictures; texts become strings that carry their file's name.
$(BUILD)/tools/common/palette.css: as = css
$(BUILD)/tools/common/palette.gp: as = gnuplot
$(BUILD)/tools/common/palette.css $(BUILD)/tools/common/palette.gp: tools/common/palette.awk tools/common/palette
	@mkdir -p $(@D)
	$(call step,GEN,$@)awk -v as=$(as) -f $^ >$@

embed		= $(call step,GEN,$@)awk -v name=$(subst .,_,$(basename $(@F))) -f $^ >$@
$(BUILD)/tools/common/palette.css.c $(BUILD)/tools/common/palette.gp.c: %.c: tools/common/embed.awk %
	$(embed)
$(BUILD)/node/report/page.css.c $(BUILD)/tools/noise/page.js.c: $(BUILD)/%.c: tools/common/embed.awk %
	@mkdir -p $(@D)
	$(embed)
$(PALETTE) $(PAGE): %.o: %.c $(BUILD)/flags
	$(call step,CC,$<)$(COMPILE) -c $< -o $@

# ---- library, tools, daemon --------------------------------------------------

LIBRARY		= $(call objects,$(CORE) $(ALGO) $(LIBCOLL)) $(BUILD)/algo/list.o
SONAME		= libcoll.so.0

$(BUILD)/libcoll.a: $(LIBRARY)
	@rm -f $@
	$(call step,AR,$@)ar qcs $@ $^

# Schedules as JSON are the tools' alone: no call of the library needs jansson.
$(BUILD)/$(SONAME): $(filter-out %/text_json.o,$(LIBRARY)) libcoll/libcoll.map
	$(call step,LD,$@)$(LINK_SHARED) -Wl,-soname,$(SONAME) \
		-Wl,--version-script=libcoll/libcoll.map $(filter %.o,$^) $(LIBRARY_LIBS) -o $@

$(BUILD)/libcoll.so: $(BUILD)/$(SONAME)
	@ln -sf $(SONAME) $@

$(BUILD)/coll: $(call objects,$(COLL) $(SIM) $(FLIT) $(OBSERVE) $(REPORT) $(addprefix node/,activity.c capture.c cgroup.c \
		cpus.c limit.c small_file.c task.c units.c)) $(PALETTE) $(STYLE) $(BUILD)/libcoll.a
	$(call step,LD,$@)$(LINK) $^ $(LIBS) -o $@

$(STORE): $(BUILD)/tools/store/coll-store.o $(BUILD)/libcoll.a
	@mkdir -p $(@D)
	$(call step,LD,$@)$(LINK) $^ $(LIBS) -o $@

$(BUILD)/collnoise: $(call objects,$(COLLNOISE) $(SIM) $(NODE) node/report/html.c) $(PALETTE) $(PAGE) $(BUILD)/libcoll.a
	$(call step,LD,$@)$(LINK) $^ $(NETLINK_LIBS) $(LIBS) -o $@

$(BUILD)/colld: $(call objects,$(COLLD) $(NODE) $(OBSERVE) $(REPORT)) $(STYLE) $(BUILD)/libcoll.a
	$(call step,LD,$@)$(LINK) $^ $(SWITCH_LIBS) $(NETLINK_LIBS) -lmicrohttpd $(LIBS) -o $@

# ---- what is run -------------------------------------------------------------

help:						## this list
	@awk -f tests/lib/make_help.awk $(MAKEFILE_LIST)

PACKAGES = build-essential perl pkg-config liburing-dev nettle-dev libjansson-dev libcmocka-dev \
	   gnuplot-nox iproute2 jq procps libnl-3-dev libnl-genl-3-dev libnl-route-3-dev libmicrohttpd-dev \
	   libcurl4-openssl-dev \
	   qemu-system-x86 cpio sparse \
	   openmpi-bin libopenmpi-dev mpich libmpich-dev gfortran libpmix-dev strace cmake \
	   python3-dev python3-numpy python3-setuptools python3-wheel python3-venv

deps:						## install the Debian packages that are missing
	@./.ci/deps $(PACKAGES)

demo: deps					## set up, build, and run the main job
	$(SUBMAKE) all $(BUILD)/tests/multi/changing_noise
	@BUILD=$(BUILD) tools/demo.sh

bench: all $(BUILD)/tests/multi/guidelines	## side by side with Open MPI and MPICH
	$(Q)BUILD=$(BUILD) sh tests/bench/peers.sh -t memory
	$(Q)BUILD=$(BUILD) sh tests/bench/peers.sh -t tcp
	$(Q)BUILD=$(BUILD) sh tests/bench/loops.sh
	$(Q)BUILD=$(BUILD) sh tests/bench/protect.sh 3
	$(Q)BUILD=$(BUILD) sh tests/bench/guidelines.sh
	$(Q)BUILD=$(BUILD) sh tests/bench/guidelines.sh -l 1ms/100M,10ms/100M -t 120 0.1
	$(Q)BUILD=$(BUILD) sh tests/bench/lab_choice.sh -l 0.05ms/100M,1ms/100M,10ms/100M -t 300

bench-choice: $(BUILD)/tests/bench/simulated_choice	## simulated: the choice of algorithms beside the best, seconds
	$(Q)$(BUILD)/tests/bench/simulated_choice -m 512
	$(Q)$(BUILD)/tests/bench/simulated_choice -m 16 -l 4

# Under tests/bench/noise, which was recorded. Ten minutes of CPU; 2^18 and 2^20 ranks by the script.
bench-online: $(BUILD)/tests/bench/online_choice	## simulated: the choice at run time beside the best fixed one
	$(Q)BUILD=$(BUILD) sh tests/bench/online_choice.sh

# Schedules as pictures, and the papers' figures.
FIGURES = $(addprefix $(BUILD)/figures/,$(addsuffix .svg,barrier.dissemination.8 \
	  bcast.circulant.5 allreduce.butterfly.8 allreduce.butterfly-redundant.4 \
	  allreduce.rabenseifner.4 allgather.bruck.5))
figures: $(FIGURES)				## the papers' figures; QUICK=1: fewer points
	@ls $^
	@BUILD=$(BUILD) sh sim/figures.sh $(if $(QUICK),--quick)
	@BUILD=$(BUILD) sh flit/figures.sh $(if $(QUICK),--quick)

$(BUILD)/figures/%.svg: $(BUILD)/coll
	@command -v dot >/dev/null || ./.ci/deps graphviz
	@mkdir -p $(@D)
	$(call step,DOT,$@)$(BUILD)/coll schedule $(subst ., ,$*) --dot >$(@:.svg=.dot) && \
		dot -Tsvg $(@:.svg=.dot) -o $@

# The family's description for YNL, from the header. It is kept in the tree.
spec:						## uapi/coll.yaml anew from the headers
	$(call step,GEN,uapi/coll.yaml)awk -f node/netlink_spec.awk \
		uapi/coll_noise.h uapi/coll_circuit.h uapi/coll_netlink.h >uapi/coll.yaml

include tests/tests.mk

include packaging/install.mk
include kmod/kmod.mk

# A folder that the caller chose may hold other things.
clean:						## remove what was built
	rm -rf $(if $(filter build build/%,$(BUILD)),build,$(addprefix $(BUILD)/,flags proved* short_call \
		libcoll.* coll collnoise colld libexec bindings python wheel torch torch-source core algo libcoll sim flit node daemon tools mpi tests \
		freestanding module sparse figures demo fuzz fuzzing libfuzzer coverage vm address thread \
		debug))

-include $(shell find $(BUILD) -mindepth 1 \( -name address -o -name thread -o -name debug -o -name module \
	-o -name fuzzing -o -name libfuzzer -o -name coverage \) -prune -o -name '*.d' -print 2>/dev/null)

endif
