#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# A wrong value is refused with exit code 2 before a job is started, or a daemon is asked.
. "$(dirname "$0")/../lib/tap.sh"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

refused() {	# WHY ARGUMENT ...
	why=$1
	shift
	timeout 20 "$COLL" "$@" >"$work/out" 2>"$work/err"
	is "coll $*: 2, and says why" "$?/$(cat "$work/err" "$work/out")" "2/$why"
}
modes="a list of call, thread, helper, kernel, auto with commas between"
refused "coll bench overlap: --algo 'foo'; valid: auto, doubling, lanes, leader, linear, one-shot, twotier, world" \
	bench overlap --collective exscan --algo foo
refused "coll bench overlap: --algo 'linear:x=1': linear has no option 'x'; valid: segment" \
	bench overlap --collective exscan --algo linear:x=1
refused "coll bench overlap: --modes ','; valid: $modes" bench overlap --modes ,
refused "coll bench overlap: --modes ''; valid: $modes" bench overlap --modes ''
refused "coll circuit: N 'x'; valid: a whole number from 0 to 64" circuit ports a x
for action in "ports NODE 1" "drain NODE" "release NODE b" "request NODE b"; do
	set -- $action
	refused "coll circuit: NODE ''; valid: a node's name of 1 to 63 bytes" circuit "$1" "" ${3:+"$3"}
done
refused "coll circuit: PEER ''; valid: a node's name of 1 to 63 bytes" circuit request a ''
tap_end
