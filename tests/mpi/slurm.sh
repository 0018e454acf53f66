#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Under Slurm: a controller and two nodes of its own on this machine, on loopback, gone
# afterwards. MPICH by PMI-2 on both nodes; Open MPI by PMIx on one, since two nodes on
# one machine get into each other's way there; libcoll's own programs by no MPI at all.
here=$(dirname "$0")
. "$here/../lib/tap.sh"
. "$here/mpi.sh"
. "$here/launcher.sh"
BUILD=$(realpath "$BUILD")
COLL=$BUILD/coll
if [ "$(id -u)" != 0 ] || ! command -v slurmctld >/dev/null || ! command -v slurmd >/dev/null; then
	skip "Slurm" "it needs root, slurmctld and slurmd"
	tap_end
	exit
fi

work=$(mktemp -d)
port=$((20000 + $$ % 10000))	# below those that the kernel hands out
node=$(hostname -s)
export SLURM_CONF="$work/slurm.conf"
cat >"$SLURM_CONF" <<CONF
ClusterName=lab
SlurmctldHost=$node(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool-%n
SlurmctldPidFile=$work/ctld.pid
SlurmdPidFile=$work/slurmd-%n.pid
SlurmctldLogFile=$work/ctld.log
SlurmdLogFile=$work/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
SlurmdParameters=config_overrides
MpiDefault=none
NodeName=n[1-2] NodeHostname=$node NodeAddr=127.0.0.1 Port=[$((port + 1))-$((port + 2))] CPUs=4
PartitionName=all Nodes=n[1-2] Default=YES MaxTime=INFINITE State=UP
CONF
mkdir "$work/state"

# A daemon that a job is to be free of: it is moved while one runs.
if [ "$(nproc)" -gt 1 ]; then
	allowed=$(taskset -pc $$ | sed 's/.*: //')
	first=${allowed%%[-,]*} last=${allowed##*[-,]}
	noisy=nsy$$
	cp "$(command -v sleep)" "$work/$noisy"
	"$work/$noisy" 600 &
	noisy_pid=$!
	cat >"$work/job" <<-CONF
		COLLNOISE=$BUILD/collnoise STATE=$work/noise
		PIN="-c $last -H $first --rule 'pin comm=$noisy'"
		NOISE="-c $last --duration 200ms --max-share 1"
	CONF
	for edge in begin end; do
		printf '#!/bin/sh\nCOLL_JOB_CONFIG=%s exec %s %s 2>>%s\n' "$work/job" \
			"$(realpath "$here/../../daemon/coll-job")" $edge "$work/said.job" >"$work/$edge"
		chmod +x "$work/$edge"
	done
	printf 'Prolog=%s\nEpilog=%s\nPrologFlags=Alloc\n' "$work/begin" "$work/end" >>"$SLURM_CONF"
fi

daemons=${noisy_pid:-}
start() {
	"$@" >"$work/said" 2>&1 &
	daemons="$daemons $!"
}
cleanup() {
	kill $daemons 2>/dev/null
	wait
	rm -rf "$work"
}
trap cleanup EXIT
start slurmctld -D -f "$SLURM_CONF"
start slurmd -D -N n1 -f "$SLURM_CONF"
start slurmd -D -N n2 -f "$SLURM_CONF"

idle() {
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		[ "$(sinfo -h -t idle -o %D 2>/dev/null)" = 2 ] && return
		sleep 1
	done
	sinfo
	return 1
}
ok "two nodes are up" idle

under() {	# MPI SRUN-OPTIONS... -- COMMAND...
	shim=$BUILD/mpi/$1/libcollmpi.so
	shift
	options=
	while [ "$1" != -- ]; do
		options="$options $1"
		shift
	done
	shift
	timeout -k 5 100 srun $options env LD_PRELOAD="$shim" EXPECT_SHIM=1 "$@"
}

for mpi in $(mpis); do
	programs=$BUILD/tests/mpi/$mpi
	case $mpi in
	openmpi) options="--mpi=pmix -N 1" ;;
	*) options="--mpi=pmi2 -N 2" ;;
	esac
	for program in edge_cases thread_multiple "random_calls 3 200"; do
		ok "$mpi, srun $options: $program" quiet \
			under "$mpi" $options -n 4 -- "$programs/"$program
	done
done

cpus_of() {
	taskset -pc "$1" | sed 's/.*: //'
}
back() {	# within ten seconds: an epilog runs after its job
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		[ "$(cpus_of "$noisy_pid")" = "$allowed" ] && return
		sleep 0.5
	done
	cat "$work/said.job"
	return 1
}
if [ -n "${noisy_pid:-}" ]; then
	ok "between jobs nothing is pinned" back
	is "during a job the daemon is on the other CPU" \
		"$(timeout -k 5 60 srun -N 1 -n 1 taskset -pc "$noisy_pid" | sed 's/.*: //')" "$first"
	ok "after it, it is where it was" back
	ok "the noise was judged" grep -q 'noise is within limits' "$work/said.job"
else
	skip "prolog and epilog" "one CPU: there is nowhere to go"
fi

by "srun on one node" 2 srun -N 1 -n
if ldconfig -p | grep -q 'libpmi\.so\.0'; then
	by "srun on two, by libpmi" 2 srun -N 2 -n
else
	skip "srun on two, by libpmi" "libpmi0 is not installed"
fi
by "srun on two, by the plugin for PMI-2" 2 srun --mpi=pmi2 -N 2 -n
by "srun on one, by PMIx" 2 env COLL_BOOT=pmix srun --mpi=pmix -N 1 -n
ok "coll bench on two, by COLL_STORE" quiet env COLL_STORE="127.0.0.1:$((port + 9))" \
	COLL_SECRET="$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')" \
	timeout -k 5 100 srun -N 2 -n 4 "$COLL" bench barrier --time 0.1
timeout -k 5 60 salloc -Q -N 2 "$BUILD/collnoise" nodes -d 500ms --timeout 20s --json -- -c "$(taskset -pc $$ |
	sed 's/.*: //; s/[-,].*//')" >"$work/out" 2>"$work/err"
ok "collnoise nodes in an allocation measures on both" test $? -ne 1
holds "... by their names" '.came == 2 and ([.nodes[].node] | sort) == ["n1", "n2"]'
cancelled() {
	: >"$work/said.srun"
	COLL_EXPLAIN=1 srun -N 1 -n 4 "$COLL" bench barrier --time 100 >"$work/said.srun" 2>&1 &
	pid=$!
	soon 60 said 'coll: barrier of' "$work/said.srun" && scancel --state=RUNNING &&
		soon 60 no_process "$pid" && soon 60 none_runs "$COLL"
}
ok "scancel leaves nothing" cancelled
tap_end
