#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Ranks that are built for different CPUs compute the same bits of the same numbers: where the CPU can fuse a product
# and a sum, neither what they choose by nor what they reduce does.
. "${0%/*}/../lib/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

case $(uname -m) in
x86_64) fuses=-mfma pattern='vfn?m(add|sub)' ;;
aarch64) fuses= pattern='[[:space:]]fn?m(add|sub|la|ls)[[:space:]]' ;;
*)
	echo "1..0 # SKIP it is not known which CPUs fuse here"
	exit 0
	;;
esac

build() {	# OBJECT FLAGS
	make --no-print-directory BUILD="$work" CFLAGS="-O2 $fuses $2" "$work/$1"
}
fused() {	# OBJECT
	objdump -d "$work/$1" | grep -Eq "$pattern"
}

ok "without the flag a product and a sum are fused" quiet build libcoll/topology/lateness.o -ffp-contract=fast
ok "... as this test sees" fused libcoll/topology/lateness.o
for object in core/reduce_float.o libcoll/base/fit.o libcoll/topology/lateness.o libcoll/topology/late_ranks.o \
	libcoll/topology/crowded_costs.o algo/redundancy/redundancy.o; do
	ok "$object is built for such a CPU" quiet build $object
	ok "... and fuses none" silent eval '! fused $object'
done
tap_end
