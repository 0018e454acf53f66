# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
# What is installed, and what make uninstall removes: everything of a second, unused installation.

.PHONY: install uninstall install-python install-torch torch-source

LIBDIR		= $(PREFIX)/lib
LIBEXECDIR	= $(PREFIX)/libexec
INCLUDEDIR	= $(PREFIX)/include
MANDIR		= $(PREFIX)/share/man
DOCDIR		= $(PREFIX)/share/doc/coll
UNITDIR		= $(PREFIX)/lib/systemd/system
BASHDIR		= $(PREFIX)/share/bash-completion/completions
ZSHDIR		= $(PREFIX)/share/zsh/site-functions
VERSION		= $(shell awk '/define COLL_VERSION_M/ { v = v dot $$3; dot = "." } END { print v }' \
		  libcoll/coll.h)
# From a folder to another, for files that may be moved together.
relative	= $(shell realpath -m --relative-to=$(1) $(2))
CMAKEDIR	= $(LIBDIR)/cmake/coll
# Where Debian's Python looks: one folder for all versions in /usr, one for each elsewhere.
PYTHONDIR	= $(PREFIX)/lib/$(if $(filter /usr,$(PREFIX)),python3,python$(PYTHON_VERSION))/dist-packages
prefixed	= sed 's|/usr/local/|$(PREFIX)/|'

# Programs find the library by the loader's cache, which root renews; elsewhere they are told where it is.
find_library	= ldconfig 2>/dev/null; \
		  ldconfig -p | sed -n '/$(SONAME) /s/.* => //p' | xargs -r realpath | \
			grep -qx "$$(realpath $(LIBDIR))/$(SONAME)" || \
			echo 'programs find libcoll.so with LD_LIBRARY_PATH=$(LIBDIR), or once ldconfig knows it'

install: all					## [PREFIX=/usr/local] [DESTDIR=]
	@echo 'INSTALL $(DESTDIR)$(PREFIX)'
	$(Q)install -d $(addprefix $(DESTDIR),$(PREFIX)/bin $(PREFIX)/sbin $(UNITDIR) \
		$(LIBDIR)/pkgconfig $(LIBDIR)/coll $(LIBEXECDIR)/coll $(INCLUDEDIR) $(DOCDIR) \
		$(BASHDIR) $(ZSHDIR))
	$(Q)install -m 755 $(BUILD)/coll $(BUILD)/collnoise $(DESTDIR)$(PREFIX)/bin
	$(Q)install -m 755 $(STORE) $(DESTDIR)$(LIBEXECDIR)/coll
	$(Q)install -m 755 $(BUILD)/colld $(DESTDIR)$(PREFIX)/sbin
	$(Q)$(prefixed) daemon/colld.service >$(DESTDIR)$(UNITDIR)/colld.service
	$(Q)$(prefixed) daemon/coll-job@.service >$(DESTDIR)$(UNITDIR)/coll-job@.service
	$(Q)$(prefixed) daemon/coll-job >$(DESTDIR)$(PREFIX)/sbin/coll-job
	$(Q)printf '#!/bin/sh\nexec $(PREFIX)/sbin/coll-job begin\n' >$(DESTDIR)$(LIBDIR)/coll/slurm-prolog
	$(Q)printf '#!/bin/sh\nexec $(PREFIX)/sbin/coll-job end\n' >$(DESTDIR)$(LIBDIR)/coll/slurm-epilog
	$(Q)chmod 755 $(DESTDIR)$(PREFIX)/sbin/coll-job $(DESTDIR)$(LIBDIR)/coll/slurm-prolog \
		$(DESTDIR)$(LIBDIR)/coll/slurm-epilog
	$(Q)install -m 755 $(BUILD)/$(SONAME) $(DESTDIR)$(LIBDIR)
	$(Q)ln -sf $(SONAME) $(DESTDIR)$(LIBDIR)/libcoll.so
	$(Q)install -m 644 $(BUILD)/libcoll.a $(DESTDIR)$(LIBDIR)
	$(Q)$(foreach mpi,$(MPIS),install -d $(DESTDIR)$(LIBDIR)/coll/$(mpi) && \
		install -m 755 $(BUILD)/mpi/$(mpi)/libcollmpi.so $(DESTDIR)$(LIBDIR)/coll/$(mpi) &&) true
	$(Q)install -m 644 libcoll/coll.h uapi/coll_types.h $(DESTDIR)$(INCLUDEDIR)
	$(Q)sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' \
		-e 's|@INCLUDEDIR@|$(INCLUDEDIR)|' -e 's|@VERSION@|$(VERSION)|' \
		libcoll/libcoll.pc.in >$(DESTDIR)$(LIBDIR)/pkgconfig/libcoll.pc
	$(Q)install -d $(DESTDIR)$(CMAKEDIR)
	$(Q)for file in coll-config coll-config-version; do \
		sed -e 's|@PREFIX@|$(call relative,$(CMAKEDIR),$(PREFIX))|' \
			-e 's|@LIBDIR@|$(call relative,$(CMAKEDIR),$(LIBDIR))|' \
			-e 's|@INCLUDEDIR@|$(call relative,$(CMAKEDIR),$(INCLUDEDIR))|' \
			-e 's|@SONAME@|$(SONAME)|' -e 's|@VERSION@|$(VERSION)|' \
			packaging/$$file.cmake.in >$(DESTDIR)$(CMAKEDIR)/$$file.cmake; done
	$(Q)packaging/documents.sh $(DESTDIR)$(DOCDIR)
	$(Q)install -m 644 LICENSES/* $(DESTDIR)$(DOCDIR)
	$(Q)BUILD=$(BUILD) sh man/install.sh $(DESTDIR)$(MANDIR)
	$(Q)for program in coll collnoise; do \
		$(BUILD)/$$program completion bash >$(DESTDIR)$(BASHDIR)/$$program && \
		$(BUILD)/$$program completion zsh >$(DESTDIR)$(ZSHDIR)/_$$program || exit 1; done
	$(Q)$(if $(DESTDIR),,$(call find_library))

# Where Python's headers are. The library is found as by any program: no path is built in.
install: $(if $(PYTHON_INCLUDE),install-python)
install-python: $(PYTHON_MODULE)
	$(Q)install -d $(DESTDIR)$(PYTHONDIR)/coll
	$(Q)install -m 644 $(PYTHON_FILES) $(DESTDIR)$(PYTHONDIR)/coll
	$(call step,LD,$(DESTDIR)$(PYTHONDIR)/coll/_coll.abi3.so)$(LINK_SHARED) \
		$(call objects,$(PYTHON_SOURCES)) -L$(BUILD) -lcoll -lpthread \
		-o $(DESTDIR)$(PYTHONDIR)/coll/_coll.abi3.so

# PyTorch's backend is built on demand alone, so it is installed on demand.
install-torch: $(TORCH_MODULE)			## the backend of torch.distributed
	$(Q)install -d $(DESTDIR)$(PYTHONDIR)/coll_torch
	$(Q)install -m 644 bindings/torch/coll_torch/__init__.py $(DESTDIR)$(PYTHONDIR)/coll_torch
	$(call step,LD,$(DESTDIR)$(PYTHONDIR)/coll_torch/_C.so)$(LINK_TORCH) \
		-o $(DESTDIR)$(PYTHONDIR)/coll_torch/_C.so

torch-source:					## the same for pip, which compiles it, in build/torch-source
	$(Q)sh bindings/torch/source.sh $(PYTHON) $(abspath $(BUILD)/torch-source)

# Folders that are empty then go too; of /usr and /usr/local only those that are coll's.
UNUSED		= $(abspath $(BUILD)/uninstall)
OWN_FOLDERS	= $(if $(filter /usr /usr/local,$(PREFIX)),*coll*,*)
uninstall: all					## [PREFIX=/usr/local] [DESTDIR=]: as for install
	@echo 'UNINSTALL $(DESTDIR)$(PREFIX)'
	@rm -rf $(UNUSED)
	+@$(MAKE) --no-print-directory -s install DESTDIR=$(UNUSED) >/dev/null
	$(Q)cd $(UNUSED) && find . ! -type d | sed 's|^\.||' | while read -r file; do \
		rm -f "$(DESTDIR)$$file"; done
	$(Q)cd $(UNUSED) && find . -path './*__pycache__' -prune -o -type d -print | sed 's|^\.||' | \
		sort -r | while read -r folder; do \
		[ "$${folder##*/}" != coll ] || rm -rf "$(DESTDIR)$$folder/__pycache__"; \
		case $$folder in \
		$(PREFIX)/$(OWN_FOLDERS) | $(PREFIX)) \
			[ ! -d "$(DESTDIR)$$folder" ] || rmdir --ignore-fail-on-non-empty "$(DESTDIR)$$folder";; \
		esac; done
	@rm -rf $(UNUSED)

# ---- packages ----------------------------------------------------------------

DEB_PACKAGES	= debhelper dh-python dh-dkms dkms fakeroot python3-dev $(if $(filter no,$(TORCH)),,$(TORCH_PACKAGES))

.PHONY: deb
deb:						## Debian's packages, into build/packages. TORCH=no: without PyTorch's
	@./.ci/deps $(PACKAGES) $(DEB_PACKAGES)
	$(Q)DEB_BUILD_PROFILES="$(if $(filter no,$(TORCH)),pkg.coll.notorch)" packaging/deb.sh $(BUILD)/packages
