#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Each launcher starts a libcoll program, ends it cleanly when ended itself, and passes on its
# exit code. Slurm's and PyTorch's launchers: slurm.sh, torchrun.sh.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/mpi.sh"
. "$(dirname "$0")/launcher.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What PMIx tells is enough: neither size nor store in the environment.
if command -v mpirun.openmpi >/dev/null && ldconfig -p | grep -q 'libpmix\.so\.2'; then
	by "mpirun of openmpi, by PMIx" 2 mpirun.openmpi -x COLL_BOOT=pmix -n
	said=$(timeout -k 5 100 mpirun.openmpi -n 3 sh -c 'unset OMPI_COMM_WORLD_RANK \
		OMPI_COMM_WORLD_SIZE; exec "$0" bench barrier --time 0.1' "$COLL" 2>&1)
	is "PMIx alone: coll bench ends well" $? 0
	like "PMIx alone: it tells the size" "$said" 'barrier, 3 ranks'
	said=$(timeout -k 5 100 mpirun.openmpi -n 2 sh -c '
		[ "$OMPI_COMM_WORLD_RANK" = 0 ] || exec sleep 4
		COLL_BOOT=pmix COLL_DEADLINE=2s exec "$0" bench barrier --time 0.1' "$COLL" 2>&1)
	like "PMIx: a rank that does not come is an error in time" "$said" \
		'not all of the 2 ranks of PMIx job .* came in time'
else
	skip "PMIx" "Open MPI or libpmix is not installed"
fi

# Two hosts as far as Hydra knows: a proxy and a local size for each.
if command -v mpirun.mpich >/dev/null; then
	hosts="-launcher fork -hosts 127.0.0.1:2,localhost:2"
	by "mpirun of mpich on two hosts, by PMI" 2 mpirun.mpich $hosts -n
	said=$(timeout -k 5 100 mpirun.mpich $hosts -n 4 sh -c '[ "$PMI_RANK" != 1 ] || exec sleep 4
		COLL_DEADLINE=2s exec "$0" bench barrier --time 0.1' "$COLL" 2>&1)
	like "PMI: a rank that does not come is an error in time" "$said" \
		"not all of the 4 ranks reached PMI's barrier in time"
	said=$(COLL_PROTECT=seal timeout -k 5 100 mpirun.mpich $hosts -n 4 "$COLL" bench barrier \
		--time 0.1 2>&1)
	like "PMI: a secret that it carries between hosts seals nothing" "$said" \
		"'seal' is not possible with a secret that Hydra"
	secret=$(head -c 32 /dev/zero | od -An -tx1 -v | tr -d ' \n')
	said=$(COLL_SECRET=$secret COLL_PROTECT=seal timeout -k 5 100 mpirun.mpich $hosts -n 4 \
		"$COLL" bench barrier --time 0.1 2>&1)
	like "PMI: COLL_SECRET does" "$said" 'barrier, 4 ranks'
	under_shim() {
		timeout -k 5 100 mpirun.mpich $hosts -n 4 env COLL_PROTECT=seal "$@" \
			LD_PRELOAD="$(realpath "$BUILD/mpi/mpich/libcollmpi.so")" \
			"$BUILD/tests/mpi/mpich/thread_multiple" 2>&1
	}
	said=$(under_shim)
	is "the shim on two hosts: a job that cannot be sealed is left to the MPI" $? 0
	like "... which had carried its secret" "$said" \
		"'seal' is not possible with a secret that .* collectives are used"
	ok "... and is the shim's with COLL_SECRET" quiet under_shim EXPECT_SHIM=1 COLL_SECRET="$secret"
else
	skip "PMI, and the shim on two hosts" "MPICH is not installed"
fi

for mpi in openmpi mpich; do
	if command -v mpirun.$mpi >/dev/null; then
		by "mpirun of $mpi" 2 mpirun.$mpi -n
	else
		skip "mpirun of $mpi" "it is not installed"
	fi
done

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
ok "torchrun's variables: coll bench ends well" torch 4 "$COLL" bench barrier --time 0.1
like "torchrun's variables: on 4 ranks" "$(cat "$work/torch.0")" 'barrier, 4 ranks'
tap_end
