#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
# usage: tests/bench/online_choice.sh [RANKS ...]
#
# What the choice that a job makes at run time loses to fixed ones, under noise that was recorded
# (tests/bench/noise), by online_choice.c, which says more. RANKS: powers of two (2^10, 2^12, 2^14, 2^16).
# 2^20 ranks take a minute of CPU for each of some ten choices and each noise, and 1 GB. SCALE=1: more
# simulated calls; SURVEYS=200: longer phases.
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
for noise in agent interrupts; do
	for ranks in ${*:-1024 4096 16384 65536}; do
		echo "== $noise"
		[ "$ranks" -gt 500000 ] && few=-f || few=
		"$build/tests/bench/online_choice" -r "$ranks" -p "${SURVEYS:-200}" -s "${SCALE:-1}" $few \
			"replay:tests/bench/noise/$noise" || exit 1
	done
done
