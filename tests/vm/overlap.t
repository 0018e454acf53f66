#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# What coll.ko hides behind a product without a call in between, and what it takes of the
# application's CPU, over TCP as between nodes, in a machine whose time is what was executed:
# the same on every host.
. "${0%/*}/../lib/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The two parts, as tests/bench/offload.sh has them, as JSON.
overlap="coll bench overlap --json --rounds 1 --iterations 2 --pace 3M --size 64K \
--collective allreduce --algo ring"

measure() {	# CPUS ARGUMENTS: the machine's tests passed, $work/json is there
	"${0%/*}/run" -i -c "$1" -a COLL_MEMORY=off -p "$BUILD/coll" -t 300 -s 280 6.12 "$overlap $2" >"$work/out"
	if grep -q '^1..0 # SKIP' "$work/out"; then
		cat "$work/out"
		exit
	fi
	sed -n 's/^# coll: //p' "$work/out" >"$work/json"
	! grep '^not ok' "$work/out" | grep -v 'gave a result' | grep .
}

ok "in the kernel, on a CPU of its own" measure 2 "--place own --modes kernel"
holds "it hides $(jq '.modes[0].overlap | round' "$work/json") % of 64 KB: 90 and more" \
	'.modes[0] | .wrong == 0 and .overlap >= 90' "$work/json"

ok "in the kernel elsewhere, and by a thread on the application's CPU" \
	measure 3 "--place kernel --modes thread,kernel"
holds "of whose time they take $(jq -c '.modes | map(.taken_us | round)' "$work/json") us: the kernel less" \
	'.modes | map({(.mode): .taken_us}) | add | .kernel < .thread / 2' "$work/json"
tap_end
