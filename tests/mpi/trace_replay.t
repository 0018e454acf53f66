#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# The simulator replays the traces that the shim records: collectives of all forms on many
# communicators, and point-to-point messages.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/mpi.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

computed() {	# of the traces: seconds of the rank that computed longest
	for trace in "$work/$1".*; do
		sed -n 's/^cpu ns=//p' "$trace" | awk '{ s += $1 } END { printf "%.9f\n", s / 1e9 }'
	done | sort -n | tail -1
}

less() {		# NUMBER NUMBER
	awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }'
}

replayed() {	# NAME: every rank computes as long as it did, and the last is not done before
	"$COLL" sim replay "$work/$1" --json >"$work/json" || return 1
	awk -v c="$(computed "$1")" -v r="$(jq '[.by_rank[].computing_s] | max' "$work/json")" \
		-v m="$(jq .mean_s "$work/json")" \
		'BEGIN { exit !(c > 0 && r > c - 1e-8 && r < c + 1e-8 && m >= c) }'
}

for mpi in $(mpis); do
	programs=$BUILD/tests/mpi/$mpi
	ok "$mpi: random calls are recorded" quiet env COLL_MPI_TRACE="$work/$mpi-random" \
		sh -c '. tests/mpi/mpi.sh; mpi_run "$@"' sh "$mpi" 4 "$programs/random_calls" 5 200
	ok "$mpi: ... and replayed" replayed "$mpi-random"
	ok "$mpi: every collective is recorded" quiet env COLL_MPI_TRACE="$work/$mpi-sweep" \
		sh -c '. tests/mpi/mpi.sh; mpi_run "$@"' sh "$mpi" 3 "$programs/every_form"
	ok "$mpi: ... and replayed" replayed "$mpi-sweep"
	since=$(date +%s)
	ok "$mpi: a persistent collective is recorded though its handles are freed" quiet env \
		COLL_MPI_TRACE="$work/$mpi-freed" sh -c '. tests/mpi/mpi.sh; mpi_run "$@"' sh "$mpi" 2 \
		"$programs/recorded"
	is "$mpi: ... and messages that were buffered, or received by a handle" \
		"$(cat "$work/$mpi-freed".[01] | grep -Ec '^i?(send|recv) .* bytes=4')" 8
	is "$mpi: ... and each start" "$(grep -c '^iallgather .* bytes=8' "$work/$mpi-freed.1")" 3
	ok "$mpi: ... and a thread has not computed since the machine began" less \
		"$(computed "$mpi-freed")" $(($(date +%s) - since + 1))
	ok "$mpi: ... and replayed" replayed "$mpi-freed"
done
[ -n "$(mpis)" ] || skip "programs" "no MPI is installed"
tap_end
