#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
# coll.ko uses no symbol that only a distribution's kernel exports: without a boot, from the
# module as built for a test kernel and the list of what mainline exports.
. "${0%/*}/../lib/tap.sh"
list=${0%/*}/exports

# Those of the module that mainline's kernel does not export. It has thunks for all registers, and the
# compiler takes some.
foreign() {	# MODULE KERNEL
	nm -u "$1" | awk -v kernel="$2" '
	FNR == NR { for (i = 2; i <= NF; i++) exported[$1, $i] = 1; next }
	!(($2, kernel) in exported) && $2 !~ /^__x86_indirect_thunk_/ { print $2 }' "$list" -
}

# Asked for at run time, and done without where there is none.
optional=$(grep -rhoE '\bsymbol_get\([a-z_0-9]+\)' "${0%/*}/../../kmod" | sed 's/.*(\(.*\))/\1/' | sort -u)

ok "the list names symbols of two kernels" test "$(grep -c ' 6.1 6.12$' "$list")" -gt 100
is "symbols that are used only where a kernel exports them" "$(echo $optional)" task_work_add
for kernel in 6.1 6.12; do
	module=$BUILD/vm/$kernel/module/coll.ko
	if [ -e "$module" ]; then
		is "kernel $kernel: mainline exports all that coll.ko uses" "$(foreign "$module" "$kernel")" ""
	else
		skip "kernel $kernel: mainline exports all that coll.ko uses" "make check-vm builds it"
	fi
done
tap_end
