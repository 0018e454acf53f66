#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
#	measure_calls.sh COLL ROUNDS SECONDS [PREFIX]
#
# The calls of measure.sh: prints lines "[PREFIX ]ranks bytes round measure p50 mean", times in us.
coll=$1 rounds=$2 seconds=$3 prefix=${4:+$4 }

# Sets what a line of the CSV says: mawk is not everywhere.
figures() {	# < CSV
	p50= mean=
	while IFS=, read -r collective _ _ _ _ _ _ _ us half _; do
		[ "$collective" != allreduce ] || { mean=$us p50=$half; }
	done
}

round=0
while [ "$round" -lt "$rounds" ]; do
	for ranks in ${RANKS:-2 8}; do
		for size in ${SIZES:-8 64K}; do
			case $((round % 4)) in	# each has each place
			0) order="off auto always off-again" ;;
			1) order="off-again always auto off" ;;
			2) order="auto off off-again always" ;;
			*) order="always off-again off auto" ;;
			esac
			for measure in $order; do
				COLL_MEASURE=${measure%-again} COLL_MEASURE_TIME=1ms "$coll" bench allreduce \
					--algo butterfly -n $ranks --size $size --time "$seconds" --csv >/tmp/measure.$$ &&
					figures </tmp/measure.$$ &&
					echo "$prefix$ranks $size $round $measure $p50 $mean"
			done
		done
	done
	round=$((round + 1))
done
rm -f /tmp/measure.$$
