#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# coll_agree and coll_shrink: the survivors of kills and of ranks that stand still go on.
build=${BUILD:-build}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count=0

start() {	# SURVIVORS RANKS WHEN [VICTIM ...]
	shift
	ranks=$1
	shift
	"$build/coll" run -q -k -n "$ranks" -t 60 --no-prefix -- \
		"$build/tests/multi/agree_and_shrink" "$@" >"$work/$ranks $*" 2>&1 &
}

finish() {
	survivors=$1
	shift
	count=$((count + 1))
	if [ "$(grep -c '^survived$' "$work/$*")" -eq "$survivors" ]; then
		echo "ok $count - $* (of ranks: when, who)"
	else
		echo "not ok $count - $* (of ranks: when, who)"
		head -20 "$work/$*" | sed 's/^/# /'
	fi
}

for step in start finish; do
	$step 1 1 none
	$step 5 5 none
	$step 2 2 set
	$step 4 5 before 3
	$step 4 5 before 0
	$step 4 7 before 0 1 6
	$step 4 5 during 0
	$step 4 6 during 0 3
	$step 1 2 during 1
	$step 4 5 absent 0
	$step 4 5 absent 4
	$step 4 5 passed 0
	$step 4 5 passed 4
	wait
done
echo "1..$count"
