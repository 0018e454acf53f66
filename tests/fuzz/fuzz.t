#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# The fuzzers, built with sanitizers, over their seeds and so many inputs more.
directory=${FUZZERS:-${BUILD:-build}/address/tests/fuzz}
count=0

for fuzz in "$directory"/*_fuzz; do
	[ -x "$fuzz" ] || continue
	count=$((count + 1))
	if said=$("$fuzz" "${FUZZ_RUNS:-20000}" 2>&1); then
		echo "ok $count - ${fuzz##*/}: $said"
	else
		echo "not ok $count - ${fuzz##*/}"
		echo "$said" | sed 's/^/# /'
	fi
done
[ $count -gt 0 ] || echo "1..0 # SKIP no fuzzers in $directory: make check-fuzz builds them"
[ $count -eq 0 ] || echo "1..$count"
