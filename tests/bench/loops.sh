#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# The same MPI program (loops.c) with and without libcollmpi.so, in turn within each round: a table of
# medians over the rounds, and of ratios to the MPI alone.
#
#	tests/bench/loops.sh [-m MPI,..] [-n RANKS,..] [-v VARIANT,..] [-c COLLECTIVE,..] [-s BYTES,..]
#		[-i CALLS,CALLS_OF_64K] [-t SECONDS] [-w SECONDS] [ROUNDS]
#
# A VARIANT is a value of COLL_MPI_HAND: auto, all, off. -t: of a cell at most. -w: before each run it waits
# for so long at most until nothing else wants the cores. Ranks are bound as each MPI does by default,
# which Open MPI does not where ranks share cores. With more ranks than cores MPICH gets yield.so
# preloaded where it runs alone: it polls without limit, and this only helps it.
set -u
BUILD=${BUILD:-build}
mpis=openmpi,mpich
all_ranks=2,4
variants=auto
collectives=barrier,bcast,reduce,allreduce,allreduce_int,reduce_scatter,allgather,gather,scatter,alltoall,iallreduce
sizes=8,1024,16384,65536,1048576
calls=1000,100
seconds=1 patience=0
while getopts m:n:v:c:s:i:t:w: option; do
	case $option in
	m) mpis=$OPTARG ;;
	n) all_ranks=$OPTARG ;;
	v) variants=$OPTARG ;;
	c) collectives=$OPTARG ;;
	s) sizes=$OPTARG ;;
	i) calls=$OPTARG ;;
	t) seconds=$OPTARG ;;
	w) patience=$OPTARG ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
rounds=${1:-5}
here=$(dirname "$0")
. "$here/../mpi/mpi.sh"
out=$BUILD/bench
name=$out/loops
mkdir -p "$out"

words() {
	echo "$1" | tr , ' '
}

# Ticks in which the cores had something to do, and those in which they had not.
ticks() {
	awk '/^cpu / { print $2 + $3 + $4 + $7 + $8 + $9, $5 + $6 }' /proc/stat
}

# Until the cores have been idle for nine tenths of half a second; gives up after -w seconds.
wait_idle() {
	tries=$((2 * patience))
	while [ $tries -gt 0 ]; do
		before=$(ticks)
		sleep 0.5
		[ "$(echo "$before $(ticks)" | awk '{ print (($4 - $2) > 9 * ($3 - $1)) }')" = 1 ] && return
		tries=$((tries - 1))
	done
	[ "$patience" = 0 ] || echo "not idle" >>"$out/errors.txt"
}

# One round of one variant ("alone": without the shim): appends "mpi ranks collective bytes variant mean".
run() (
	mpi=$1 ranks=$2 variant=$3
	[ "$ranks" -gt "$(nproc)" ] ||
		unset OMPI_MCA_hwloc_base_binding_policy PRTE_MCA_hwloc_default_binding_policy
	set -- "$out/loops.$mpi" "$seconds" "${calls%,*}" "${calls#*,}" "$collectives" "$sizes"
	case $variant in
	alone)
		[ "$mpi" = mpich ] && [ "$ranks" -gt "$(nproc)" ] &&
			set -- env LD_PRELOAD="$(realpath "$out/yield.so")" "$@"
		mpi_bare "$mpi" "$ranks" "$@"
		;;
	*) mpi_run "$mpi" "$ranks" env COLL_MPI_HAND="$variant" "$@" ;;
	esac 2>>"$out/errors.txt" | awk -v before="$mpi $ranks" -v variant="$variant" '
		/^[a-z_]+ [0-9]+ [0-9.]+ / { print before, $1, $2, variant, $3 }' >>"$name.txt"
)

: >"$name.txt"
: >"$out/errors.txt"
MPI_SECONDS=${MPI_SECONDS:-900}
for mpi in $(words "$mpis"); do
	"$(mpi_compiler "$mpi")" -O2 -Wall "$here/loops.c" -o "$out/loops.$mpi" || exit 1
done
gcc -O2 -fPIC -shared "$here/yield_in_poll.c" -o "$out/yield.so" || exit 1
round=1
while [ "$round" -le "$rounds" ]; do
	for mpi in $(words "$mpis"); do
		for ranks in $(words "$all_ranks"); do
			for variant in alone $(words "$variants"); do
				[ -t 2 ] && printf '\rround %s of %s, %-8s %s ranks, %-6s' "$round" "$rounds" \
					"$mpi" "$ranks" "$variant" >&2
				wait_idle
				run "$mpi" "$ranks" "$variant"
			done
		done
	done
	round=$((round + 1))
done
[ -t 2 ] && printf '\r%60s\r' '' >&2
echo "load $(cut -d' ' -f1-3 /proc/loadavg), $rounds rounds, calls $calls, $(grep -c '^not idle' \
	"$out/errors.txt") runs beside other work$([ "$patience" != 0 ] || echo ' or more')"
awk -f "$here/median.awk" -f "$here/loops.awk" "$name.txt" | tee "$name.md"
! grep -q '^no cells' "$name.md"
