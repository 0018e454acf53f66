#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Unmodified MPI programs under libcollmpi.so: right results, and every call counted.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/mpi.sh"

has() {		# PATTERN FILE
	grep -Eq -e "$1" "$2"
}

# The same bytes; rounded numbers as near as their lines say.
same_results() {	# PREFIX PREFIX RANKS
	same_rank=0
	while [ $same_rank -lt "$3" ]; do
		[ "$(wc -l <"$1.rounded.$same_rank")" -gt 1000 ] &&
			cmp "$1.exact.$same_rank" "$2.exact.$same_rank" &&
			paste "$1.rounded.$same_rank" "$2.rounded.$same_rank" | awk '
				{ d = $2 - $4; if (d < 0) d = -d }
				$1 != $3 || NF != 4 || !(d <= $1) { bad = 1; print NR ": " $0 }
				END { exit bad }' || return 1
		same_rank=$((same_rank + 1))
	done
}

linked() {	# MPI
	$(mpi_compiler "$1") -std=gnu11 -D_GNU_SOURCE "$(dirname "$0")/thread_multiple.c" \
		-L"$BUILD/mpi/$1" -lcollmpi -lpthread -ldl -o "$BUILD/tests/mpi/$1/linked" &&
		mpi_bare "$1" 3 env LD_LIBRARY_PATH="$(realpath "$BUILD/mpi/$1")" EXPECT_SHIM=1 \
			"$BUILD/tests/mpi/$1/linked"
}

mpi_without_random() {	# MPI PROGRAMS
	said=$(mpi_run "$1" 2 env -u EXPECT_SHIM "$BUILD/tests/multi/without_call" getrandom \
		"$2/thread_multiple" 2>&1) || { printf '%s\n' "$said" | sed 's/^/# /'; return 1; }
	printf '%s\n' "$said" | grep -q "no random bytes for the job's secret"
}

# An allocation fails on one rank where all agree on a communicator's group, or before a reduction. The job then ends
# with the reason, or does without; what the MPI does without memory is its own.
one_without_memory() {	# MPI WHAT [reduction]
	for nth in 1 2 3 4 5 8 13; do
		preload=$(realpath "$BUILD/tests/chaos/fault.so"):$(realpath "$BUILD/mpi/$1/libcollmpi.so")
		said=$(MPI_SECONDS=20 mpi_run "$1" 2 env LD_PRELOAD="$preload" \
			"$BUILD/tests/mpi/$1/many_communicators" memory $nth $3 2>&1)
		code=$?
		ok "$1: no rank hangs where allocation $nth for a $2 fails on one" \
			test $code -ne 124 -a $code -ne 137
		[ $nth != 1 ] || like "$1: ... and the reason is said" "$said" "rank 1: no memory for a $2"
		case $said in *none*) break ;; esac
	done
}

all_of() {	# MPI RANKS-OF-SWEEP RANKS-OF-RANDOM
	programs=$BUILD/tests/mpi/$1
	for ranks in $2; do
		ok "$1: every collective is right in every form, $ranks ranks" quiet \
			mpi_run "$1" "$ranks" "$programs/every_form"
	done
	for ranks in $3; do
		ok "$1: random calls are right, $ranks ranks" quiet \
			mpi_run "$1" "$ranks" "$programs/random_calls" "$((ranks * 7 + 1))" 300
	done
	report=$(mktemp -d)
	ok "$1: COLL_REPORT=FILE is all that a report takes" quiet mpi_run "$1" 2 env \
		COLL_REPORT="$report/file" "$programs/random_calls" 7 50
	ok "$1: ... which says whom the collectives waited for" has '^Collectives take .* of the time' \
		"$report/file"
	rm -rf "$report"
	alike=$(mktemp -d)
	ok "$1: results are written with the shim" quiet mpi_run "$1" 4 "$programs/write_results" "$alike/with"
	ok "$1: ... and without" quiet mpi_bare "$1" 4 env \
		LD_PRELOAD="$(realpath "$BUILD/tests/mpi/yield.so")" "$programs/write_results" "$alike/without"
	ok "$1: ... and are the same" quiet same_results "$alike/with" "$alike/without" 4
	rm -rf "$alike"
	for ranks in 1 2 4; do
		ok "$1: edge cases are right, $ranks ranks" quiet mpi_run "$1" "$ranks" "$programs/edge_cases"
		ok "$1: arguments are taken rightly, $ranks ranks" quiet mpi_run "$1" "$ranks" "$programs/arguments"
	done
	ok "$1: ... with epoll" quiet mpi_run "$1" 3 env COLL_ENGINE=epoll "$programs/edge_cases"
	ok "$1: collectives advance while ranks enter a call that waits for all" quiet \
		mpi_run "$1" 4 "$programs/entering"
	ok "$1: 600 communicators with 256 descriptors" quiet \
		mpi_run "$1" 4 "$programs/many_communicators"
	one_without_memory "$1" communicator
	one_without_memory "$1" type reduction
	for level in "" threads; do
		ok "$1: what fails is the error of its wait, and of its communicator alone${level:+, $level}" quiet \
			mpi_run "$1" 2 env COLL_DEADLINE=300ms "$programs/failed" $level
	done
	ok "$1: threads call at once" quiet mpi_run "$1" 3 "$programs/thread_multiple"
	ok "$1: a tool sees the program's calls alone" quiet mpi_run "$1" 2 "$programs/profiled"
	ok "$1: the shim may be linked before the MPI" quiet linked "$1"
	for program in mpif mpi f08; do
		if [ -e "$programs/fortran_$program" ]; then
			ok "$1: Fortran programs are right, $program" quiet mpi_run "$1" 3 "$programs/fortran_$program"
		else
			skip "$1: Fortran programs are right, $program" "gfortran is not installed"
		fi
	done
	ok "$1: the MPI may be loaded with RTLD_LOCAL" quiet \
		mpi_run "$1" 2 "$BUILD/tests/mpi/dlopen_local" "$programs/mpi_plugin.so"
	ok "$1: the overhead is below a microsecond" quiet mpi_run "$1" 1 "$programs/call_overhead"

	# A spawned job has no shim here; MPICH 4.0 of Debian cannot spawn at all.
	if mpi_bare "$1" 2 "$programs/spawn" >/dev/null 2>&1; then
		ok "$1: a program spawns another job" quiet mpi_run "$1" 2 "$programs/spawn"
	else
		skip "$1: a program spawns another job" "this MPI cannot"
	fi

	report=$(mktemp)
	ok "$1: a report is written" quiet mpi_run "$1" 2 env COLL_MPI_REPORT="$report" "$programs/edge_cases"
	ok "$1: ... with the collectives" has '^ibcast|^bcast +nonblocking' "$report"
	ok "$1: ... and the calls left to the MPI, with the reason" has 'calls: inter-communicator' "$report"
	for end in MPI_Abort:abort "its end without MPI_Finalize:exit"; do
		rm -f "$report"
		mpi_run "$1" 2 env COLL_MPI_REPORT="$report" "$programs/unfinished" "${end#*:}" \
			>/dev/null 2>&1
		ok "$1: a rank reports its calls until ${end%:*}" has "rank 0 of 2 alone, .* ${end%:*}" "$report"
		ok "$1: ... with its calls" has '^allreduce +blocking .* 7 ' "$report"
	done
	rm -f "$report"
	said=$(mpi_run "$1" 2 env COLL_MPI_REPORT=1 "$programs/unfinished" child 2>&1)
	is "$1: a child of a rank ends" $? 0
	is "$1: ... and is no rank that reports" "$(printf '%s\n' "$said" | grep -c 'rank 0 of 2 alone')" 0
	ok "$1: without random bytes for a secret all calls are left to the MPI" \
		mpi_without_random "$1" "$programs"
	ok "$1: COLL_MPI=off switches the shim off" quiet \
		mpi_run "$1" 2 env -u EXPECT_SHIM COLL_MPI=off "$programs/thread_multiple"
	ok "$1: a rank that cannot join leaves all to the MPI" quiet \
		mpi_run "$1" 3 sh -c 'unset EXPECT_SHIM
			[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" != 1 ] || export COLL_ENGINE=none
			exec "$0"' "$programs/thread_multiple"
	ok "$1: COLL_SECRET on all ranks is the job's, and seals" quiet \
		mpi_run "$1" 2 env COLL_SECRET="$secret" COLL_PROTECT=seal "$programs/thread_multiple"
	said=$(mpi_run "$1" 2 sh -c 'unset EXPECT_SHIM
		[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" != 1 ] || export COLL_SECRET='"$secret"'
		exec "$0"' "$programs/thread_multiple" 2>&1)
	ok "$1: on one rank alone it leaves all to the MPI" test $? -eq 0
	like "$1: ... and that is said" "$said" 'COLL_SECRET is set on rank 1 and not on rank 0'
	ok "$1: clusters are learnt through the MPI" quiet \
		mpi_run "$1" 3 sh -c 'COLL_CLUSTER=c$((${OMPI_COMM_WORLD_RANK:-$PMI_RANK} / 2)) \
			COLL_CLUSTERS=named exec "$0"' "$programs/thread_multiple"
	ok "$1: COLL_MPI=allreduce takes this collective only" quiet \
		mpi_run "$1" 2 env -u EXPECT_SHIM COLL_MPI=allreduce "$BUILD/tests/mpi/dlopen_local" \
		"$programs/mpi_plugin.so"
}

secret=$(head -c 32 /dev/zero | od -An -tx1 -v | tr -d ' \n')
mpis=$(mpis)
for mpi in $mpis; do
	case $mpi in
	mpich) all_of "$mpi" "1 3" "2 7" ;;
	*) all_of "$mpi" "1 2 4" "3 8" ;;
	esac
done

case $mpis in
*openmpi*mpich*)
	said=$(LD_PRELOAD=$(realpath "$BUILD/mpi/openmpi/libcollmpi.so") \
		"$BUILD/tests/mpi/mpich/thread_multiple" 2>&1)
	like "a shim for another MPI says so" "$said" "for another MPI than .*libmpich"
	;;
"") skip "unmodified MPI programs" "no MPI is installed" ;;
esac
tap_end
