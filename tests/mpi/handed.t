#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Calls that libcollmpi.so hands to the MPI because trials say that it is faster (COLL_MPI_HAND).
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/mpi.sh"
unset COLL_MPI_HAND

has() {		# PATTERN FILE
	grep -Eq -e "$1" "$2"
}

# A job that says by its exit code how many calls were handed over; a launcher adds words of its own.
floats() {	# MPI RANKS ENVIRONMENT...: prints the code
	floats_mpi=$1 floats_ranks=$2
	shift 2
	mpi_run "$floats_mpi" "$floats_ranks" env "$@" "$BUILD/tests/mpi/$floats_mpi/handed" floats \
		>/dev/null 2>&1
	echo $?
}

kept() {	# MPI RANKS WHAT ENVIRONMENT...
	kept_mpi=$1 kept_ranks=$2 kept_what=$3
	shift 3
	ok "$kept_mpi: nothing is handed over: $kept_what" quiet mpi_run "$kept_mpi" "$kept_ranks" \
		env "$@" "$BUILD/tests/mpi/$kept_mpi/handed" kept
}

# Two nodes as far as the MPI knows, of two ranks each.
on_two_nodes() {	# MPI COMMAND...
	two_mpi=$1
	shift
	case $two_mpi in
	mpich) set -- -launcher fork -hosts 127.0.0.1:2,localhost:2 -n 4 "$@" ;;
	*)	# shared memory would have the same names on both
		set -- --mca btl tcp,self --mca plm_rsh_agent "$shell" --host nodea:2,nodeb:2 -np 4 "$@" ;;
	esac
	timeout -k 5 100 "$(mpi_launcher "$two_mpi")" "$@"
}

with_shim() {	# MPI COMMAND...: the environment of mpi_run
	with_mpi=$1
	shift
	echo "env EXPECT_SHIM=1 LD_PRELOAD=$(realpath "$BUILD/mpi/$with_mpi/libcollmpi.so") $*"
}

# An allocation fails on one rank where the shim makes a class, or agrees with the others. The job then ends with
# the reason, or does without; what the MPI does without memory is its own.
without_memory() {	# MPI CALL
	for nth in 1 2 3 5 8; do
		MPI_SECONDS=20 mpi_run "$1" 2 env LD_PRELOAD="$(realpath "$BUILD/tests/chaos/fault.so"):$(realpath \
			"$BUILD/mpi/$1/libcollmpi.so")" "$BUILD/tests/mpi/$1/handed" memory "$2" $nth >"$said" 2>&1
		code=$?
		ok "$1: no rank hangs where allocation $nth in call $2 fails on one" test $code -ne 124 -a $code -ne 137
		[ $nth != 1 ] || ok "$1: ... and the reason is said" has \
			'rank 1: no memory to compare libcoll with the MPI; COLL_MPI_HAND=off' "$said"
		! has '^none' "$said" || break
	done
}

all_of() {	# MPI RANKS: more than cores only if this MPI yields
	programs=$BUILD/tests/mpi/$1
	for ranks in $2; do
		ok "$1: all ranks hand over the same calls, and take them back, $ranks ranks" quiet \
			mpi_run "$1" "$ranks" "$programs/handed" agree
		ok "$1: tasks under way progress until all ranks are in the call, $ranks ranks" quiet \
			mpi_run "$1" "$ranks" "$programs/handed" tasks
		ok "$1: communicators end during trials, and outnumber the slots, $ranks ranks" quiet \
			mpi_run "$1" "$ranks" "$programs/handed" comms
	done
	ok "$1: a node's communicators hand calls over on several nodes, and others do not" quiet \
		on_two_nodes "$1" $(with_shim "$1" "$programs/handed" nodes)
	like "$1: a rank that does not come to a handed call is an error in time" \
		"$(mpi_run "$1" 2 "$programs/handed" late 2>&1)" \
		'barrier of 2 ranks: the deadline passed: rank 1 has not called it'
	for call in 1 17 27 35 67 131; do
		without_memory "$1" "$call"
	done
	ok "$1: a child may end during trials" quiet mpi_run "$1" 2 "$programs/handed" fork
	ok "$1: ... with the epoll engine" quiet mpi_run "$1" 2 env COLL_ENGINE=epoll "$programs/handed" tasks

	report=$(mktemp)
	ok "$1: a report of handed calls" quiet mpi_run "$1" 2 env COLL_MPI_REPORT="$report" \
		"$programs/handed" agree
	ok "$1: ... says how many, and why" has '^bcast +[0-9]+ calls: the MPI is faster, by trials' "$report"
	ok "$1: ... and how many were tried" has '^bcast +[0-9]+ calls: trials of which is faster' "$report"
	ok "$1: ... with both times of each size" has \
		'^bcast +131072 +[0-9.]+ +[0-9.]+ +[1-9][0-9]*$' "$report"
	rm -f "$report"

	is "$1: sums of two floats have the same bits, and are handed over" \
		"$(test "$(floats "$1" 2 A=)" -gt 26 && echo yes)" yes
	ok "$1: ... also where they are NaN" quiet mpi_run "$1" 2 "$programs/handed" nans
	refused=$(mpi_run "$1" 2 env -u EXPECT_SHIM COLL_MPI_HAND=some "$programs/handed" kept 2>&1)
	is "$1: another value of COLL_MPI_HAND counts as off" $? 0
	like "$1: ... and that is said" "$refused" "COLL_MPI_HAND='some' is not valid .*valid: auto, all or off"

	ok "$1: calls are handed over where nothing keeps them" \
		sh -c '! "$@" >/dev/null 2>&1' - timeout 100 "$(mpi_launcher "$1")" -np 2 env \
		LD_PRELOAD="$(realpath "$BUILD/mpi/$1/libcollmpi.so")" "$programs/handed" kept
	kept "$1" 2 "COLL_MPI_HAND=off" COLL_MPI_HAND=off
	kept "$1" 2 "collectives are named" \
		COLL_MPI=barrier,bcast,allreduce,reduce,allgather,gather,scatter,alltoall,reduce_scatter,scan
	for option in DEADLINE=30s MEMORY=copy MEMORY=off LEVELS=2 CLUSTERS=1+1 MEASURE=auto MEASURE=start \
		NOISE=100x10us LINK_NOISE=10x20us INJECT=os:periodic:period=100ms,duration=1us PROTECT=seal REPORT=/dev/null; do
		kept "$1" 2 "COLL_$option" "COLL_$option"
	done
}

kept_by_name() {	# MPI: an algorithm by name keeps this collective only
	report=$(mktemp)
	mpi_run "$1" 2 env COLL_BCAST=binomial COLL_MPI_REPORT="$report" "$BUILD/tests/mpi/$1/handed" \
		comms >/dev/null 2>&1
	ok "$1: an algorithm by name keeps its collective" \
		sh -c '! grep -Eq "^bcast .*(faster)" "$1" && grep -Eq "^allreduce .*by trials" "$1"' - "$report"
	rm -f "$report"
}

shell=$(mktemp)	# as ssh, and all hosts are this one
said=$(mktemp)
trap 'rm -f "$shell" "$said"' EXIT
printf '#!/bin/sh\nshift\nexec sh -c "$*"\n' >"$shell"
chmod +x "$shell"
more=
[ "$(nproc)" -ge 4 ] && more="3 4"
for mpi in $(mpis); do
	case $mpi in
	mpich)
		all_of mpich "2 $more"
		kept mpich $(($(nproc) + 1)) "more ranks than cores, and an MPI that does not yield" A=
		;;
	*)
		all_of "$mpi" "2 3 4"
		like "$mpi: ... and so is a rank that has died" "$(timeout -k 5 60 "$(mpi_launcher "$mpi")" \
			--enable-recovery -np 2 $(with_shim "$mpi" "$BUILD/tests/mpi/$mpi/handed" dead) 2>&1)" \
			'barrier of 2 ranks: a rank has died: rank 1 has not called it'
		# MPICH's first call after a pause takes as long as libcoll seems to, there.
		ok "$mpi: a rank that comes late to all calls does not hide which library is faster" quiet \
			mpi_run "$mpi" 2 "$BUILD/tests/mpi/$mpi/handed" apart
		is "$mpi: sums of more floats stay with libcoll" "$(floats "$mpi" 3 A=)" 0
		is "$mpi: ... unless that is asked for" \
			"$(test "$(floats "$mpi" 3 COLL_MPI_HAND=all)" -gt 26 && echo yes)" yes
		;;
	esac
	kept_by_name "$mpi"
done
[ -n "$(mpis)" ] || skip "calls handed to the MPI" "no MPI is installed"
tap_end
