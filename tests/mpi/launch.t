#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# The launchers people have start a program of libcoll's, end it cleanly when they are
# ended, and hand on its exit code.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/mpi.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$COLL" "$work/coll"		# found again by its path

none_left() {	# within 20 seconds
	for _ in $(seq 1 40); do
		pgrep -f "$work/coll" >/dev/null || return 0
		sleep 0.5
	done
	pgrep -af "$work/coll"
	return 1
}

all_up() {	# that many ranks run; Open MPI that is ended before leaves some
	tries=300
	while [ "$(pgrep -fc "^$work/coll bench")" -lt "$1" ] && [ $tries -gt 0 ]; do
		sleep 0.1
		tries=$((tries - 1))
	done
	sleep 1
}

by() {		# NAME LAUNCHER...: with its options
	name=$1
	shift
	said=$(timeout -k 5 100 "$@" -n 4 "$work/coll" bench barrier --time 0.1 2>&1)
	is "$name: coll bench ends well" $? 0
	like "$name: on 4 ranks" "$said" 'barrier, 4 ranks'
	timeout -k 5 100 "$@" -n 2 "$work/coll" bench nonsense >/dev/null 2>&1
	is "$name: its exit code is handed on" $? 2
	timeout -k 5 100 "$@" -n 4 "$work/coll" bench barrier --time 60 >/dev/null 2>&1 &
	launcher=$!
	all_up 4
	kill -TERM "$launcher"
	wait "$launcher"
	ok "$name: ended, it leaves nothing" none_left
}

# What PMIx tells is enough: neither size nor store in the environment.
if command -v mpirun.openmpi >/dev/null && ldconfig -p | grep -q 'libpmix\.so\.2'; then
	by "mpirun of openmpi, by PMIx" mpirun.openmpi -x COLL_BOOT=pmix
	said=$(timeout -k 5 100 mpirun.openmpi -n 3 sh -c 'unset OMPI_COMM_WORLD_RANK \
		OMPI_COMM_WORLD_SIZE; exec "$0" bench barrier --time 0.1' "$work/coll" 2>&1)
	is "PMIx alone: coll bench ends well" $? 0
	like "PMIx alone: it tells the size" "$said" 'barrier, 3 ranks'
	said=$(timeout -k 5 100 mpirun.openmpi -n 2 sh -c '
		[ "$OMPI_COMM_WORLD_RANK" = 0 ] || exec sleep 4
		COLL_BOOT=pmix COLL_DEADLINE=2s exec "$0" bench barrier --time 0.1' "$work/coll" 2>&1)
	like "PMIx: a rank that does not come is an error in time" "$said" \
		'not all of the 2 ranks of PMIx job .* came in time'
else
	skip "PMIx" "Open MPI or libpmix is not installed"
fi

for launcher in openmpi mpich; do
	if command -v mpirun.$launcher >/dev/null; then
		by "mpirun of $launcher" mpirun.$launcher
	else
		skip "mpirun of $launcher" "it is not installed"
	fi
done

# A controller and a node have to be there: no test sets them up.
if srun -t 1 -n 1 true >/dev/null 2>&1; then
	by "srun" srun
else
	skip "srun" "no Slurm controller answers here"
fi

# As torchrun starts ranks: by variables only.
torch() {	# RANKS COMMAND...
	ranks=$1 rank=0 pids=
	shift
	while [ $rank -lt "$ranks" ]; do
		env RANK=$rank WORLD_SIZE="$ranks" LOCAL_RANK=$rank LOCAL_WORLD_SIZE="$ranks" \
			MASTER_ADDR=127.0.0.1 MASTER_PORT=29871 TORCHELASTIC_RUN_ID="t$$" \
			timeout -k 5 60 "$@" >"$work/torch.$rank" 2>&1 &
		pids="$pids $!"
		rank=$((rank + 1))
	done
	for pid in $pids; do
		wait "$pid" || return
	done
}
ok "torchrun's variables: coll bench ends well" torch 4 "$work/coll" bench barrier --time 0.1
like "torchrun's variables: on 4 ranks" "$(cat "$work/torch.0")" 'barrier, 4 ranks'
tap_end
