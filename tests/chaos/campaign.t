#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# A few rounds of the fault campaign (make check-chaos: more of them); and the campaign finds
# what is wrong on purpose.
. "${0%/*}/../lib/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chaos=$BUILD/tests/chaos/chaos

seed=$(date +%s)000
echo "# seed $seed"
rounds=${COLL_TEST_LITTLE:+1}
rounds=${rounds:-3}
for fault in none kill stop-short cut reset strangers memory descriptor clock disk suspend \
		half-open replay store full colld; do
	exits 0 "$chaos" --seed "$seed" --rounds $rounds --only $fault --deadline 6
	code=$?
	if [ -s "$work/err" ] && found '^chaos: .*: needs ' err; then
		skip "$rounds rounds: $fault" "it $(sed -n 's/^chaos: .*: //p' "$work/err")"
	else
		result $code "$rounds rounds: $fault"
	fi
done
exits 0 "$chaos" --seed 1 --rounds 1 --only stop-long --deadline 4
result $? "1 round: stop-long"

# One rank errs: each kind of finding is made, and its round can be repeated.
finds() {	# PLANT PATTERN
	exits 1 "$chaos" --seed 2 --rounds 1 --only none --deadline 2 --limit 12 --plant "$1" &&
		found "$2" err && found '^# repeat: .* --seed 2 ' err
	result $? "found: $1"
}
finds wrong 'of the result is'
finds crash 'FOUND.*ended in the middle|FOUND.*failed without a reason'
finds hang 'FOUND.*(hangs|failed without a reason)'
finds leak 'FOUND.*descriptors left'
finds process 'FOUND.*processes were left'

exits 1 "$chaos" --seed 2 --rounds 6 --only kill --plant blame && found 'blames rank' err
result $? 'found: blame'

exits 0 "$chaos" --seed 1 --rounds 1 --only none --json
holds "the table as JSON" '.faults[] | select(.fault == "all") | .survived == 1'
exits 2 "$chaos" --only gremlins
result $? "a fault that does not exist"
tap_end
