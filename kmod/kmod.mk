# SPDX-License-Identifier: GPL-2.0
#
# coll.ko, by the kernel's own build, and its source for DKMS.

.PHONY: module install-dkms

# Headers of the running kernel, or else the newest there are.
KDIR		= $(firstword $(wildcard /lib/modules/$(shell uname -r)/build) \
		  $(lastword $(sort $(wildcard /lib/modules/*/build))))

# The kernel's build writes beside its sources: it gets links to them. Nothing here reads BTF,
# which would need pahole.
# [MODULE_MAKE=]: the make that runs it, where compilers are elsewhere or for another processor.
MODULE		= $(BUILD)/module
MODULE_MAKE	= $(MAKE)
MODULE_SOURCES	= Kbuild dkms.conf uapi core kmod

module:						## coll.ko into build/module; [KDIR=] the kernel's headers
	@test -e "$(KDIR)/Makefile" || { \
		echo "no kernel headers$(if $(KDIR), in $(KDIR)): as root:" \
			"apt-get install -y linux-headers-amd64, or KDIR=..." >&2; exit 1; }
	@mkdir -p $(MODULE)
	@find $(MODULE) -xtype l -delete
	@cp -asf $(addprefix $(CURDIR)/,$(MODULE_SOURCES)) $(MODULE)
	+$(call step,MODULE,$(MODULE)/coll.ko)$(MODULE_MAKE) --no-print-directory \
		$(if $(or $(verbose),$(SPARSE)),,-s) -C $(KDIR) M=$(abspath $(MODULE)) \
		CONFIG_DEBUG_INFO_BTF_MODULES= $(SPARSE) modules

# dkms add $(PREFIX)/src/coll-$(VERSION)
DKMSDIR		= $(PREFIX)/src/coll-$(VERSION)
install: install-dkms
install-dkms:
	$(Q)install -d $(DESTDIR)$(DKMSDIR)
	$(Q)install -m 644 Kbuild dkms.conf $(DESTDIR)$(DKMSDIR)
	$(Q)set -e; for file in $(wildcard uapi/* core/*.[ch] core/*/*.[ch] kmod/*.[ch] kmod/*/*.[ch]); do \
		install -D -m 644 $$file $(DESTDIR)$(DKMSDIR)/$$file; done
