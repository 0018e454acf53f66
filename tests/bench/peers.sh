#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Side by side with the MPIs that Debian packages, on this node, in turn within each round:
# a table of medians and of ratios to the better MPI, a heat map and JSON.
#
#	tests/bench/peers.sh [-t memory|tcp] [-c COLLECTIVE,..] [-s BYTES,..] [-r ROOT] [-o OPTIONS]
#		[ROUNDS [SECONDS_PER_CELL [RANKS ...]]]
#
# -r ROOT: the MPIs of another Debian, installed in that folder by debootstrap; as root.
# -o OPTIONS: words for Open MPI's mpirun. Open MPI 6 (of forky) has coll/xhc, which is not its default:
#	debootstrap forky ROOT, with openmpi-bin, libopenmpi-dev, gcc and libc6-dev; PEERS="coll openmpi" and
#	tests/bench/peers.sh -r ROOT -o '--mca coll_xhc_priority 100'
# memory: what each library takes by default within a node. tcp: all over TCP on loopback.
#
# Each cell is the median over the rounds of a round's median; a sample is the time from
# an agreed start until the last rank has returned. The range of the single rounds' ratios
# shows the influence of the machine on a cell. An MPI that polls without limit gets yield.so
# preloaded, which only helps it. Before the table: what the machine itself takes (floors.c).
# The floor of a cell of at most 64 KB is what bare processes take that share memory (peer_floor.h).
set -u
BUILD=${BUILD:-build}
transport=tcp
collectives=barrier,bcast,reduce,allreduce,reduce_scatter,allgather,gather,scatter,alltoall
sizes=8,1024,16384,65536,1048576,16777216
root= options=
while getopts t:c:s:r:o: option; do
	case $option in
	t) transport=$OPTARG ;;
	c) collectives=$OPTARG ;;
	s) sizes=$OPTARG ;;
	r) root=$OPTARG ;;
	o) options=$OPTARG ;;
	*) exit 2 ;;
	esac
done
# What the other Debian sees of this machine is mounted for this script and its children alone.
if [ "$root" ] && [ -z "${PEERS_MOUNTS:-}" ]; then
	PEERS_MOUNTS=1 exec unshare --mount --propagation private -- "$0" "$@"
fi
shift $((OPTIND - 1))
case $transport in
memory | tcp) ;;
*) echo "peers.sh: -t memory or -t tcp, not \"$transport\"" >&2 && exit 2 ;;
esac
rounds=${1:-5} seconds=${2:-0.3}
[ $# -ge 2 ] && shift 2 || set --
ranks=${*:-2 4 8 16}
libraries=${PEERS:-coll openmpi mpich floor}
patience=${PEER_PATIENCE:-300}	# seconds for MPICH, which may hang when it ends
here=$(dirname "$0")
out=$BUILD/bench
name=$out/peers-$transport
mkdir -p "$out"
. "$here/peer_programs.sh"
. "$here/../lib/chroot.sh"
if [ "$root" ]; then
	chroot_seen "$root" && mount --rbind /sys "$root/sys" || exit 1
fi
# COMMAND ...: as the MPI sees it.
of_mpi() {
	${root:+chroot "$root"} "$@"
}

# One round of one library: appends "library ranks collective bytes median p99 min mean".
# Lines that MPICH prints before a hang are kept.
run() {
	library=$1 p=$2
	case $library in
	coll)
		[ $transport = memory ] && memory=auto || memory=off
		COLL_MEMORY=$memory timeout 900 "$BUILD/coll" run --no-prefix -t 900 -n "$p" -- \
			"$out/peer.coll" "$seconds" "$collectives" "$sizes"
		;;
	openmpi)
		[ $transport = memory ] && btl= || btl="--mca pml ob1 --mca btl tcp,self"
		# $btl and $options are words.
		of_mpi env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 900 \
			mpirun.openmpi --oversubscribe --bind-to none $btl $options -np "$p" \
			"$mpi_out/peer.openmpi" "$seconds" "$collectives" "$sizes"
		;;
	mpich)
		[ $transport = memory ] && over= ||
			over="MPIR_CVAR_NOLOCAL=1 UCX_TLS=tcp,self UCX_NET_DEVICES=lo"
		of_mpi env $over timeout "$patience" \
			mpirun.mpich -genv LD_PRELOAD "$mpi_out/yield.so" -np "$p" \
			"$mpi_out/peer.mpich" "$seconds" "$collectives" "$sizes"
		;;
	floor)
		PEER_RANKS=$p timeout 900 "$out/peer.floor" "$seconds" "$collectives" "$sizes"
		;;
	esac 2>>"$out/errors.txt" | grep -E '^[a-z_]+ [0-9]+ ' |
		sed "s/^/$library $p /" >>"$name.txt"
}

heat_map() {
	command -v gnuplot >/dev/null || return
	gnuplot -e "palette='$here/../../tools/common/palette'; data='$name.heat'; picture='$name.svg'; transport='$transport'" \
		"$here/peers_heat.gp" 2>>"$out/errors.txt" && echo "heat map: $name.svg"
}

mpi_out=$(realpath "$out")
[ -z "$root" ] || mpi_out=/tmp/coll-peers
peer_programs "$libraries" && gcc -O2 -Wall "$here/floors.c" -lpthread -o "$out/floors" || exit 1
: >"$name.txt"
: >"$out/errors.txt"
"$out/floors" | tee "$out/floors.txt"
echo
round=1
while [ "$round" -le "$rounds" ]; do
	for p in $ranks; do
		for library in $libraries; do
			[ -t 2 ] && printf '\rround %s of %s, %s ranks, %-8s' "$round" "$rounds" "$p" \
				"$library" >&2
			run "$library" "$p"
		done
	done
	round=$((round + 1))
done
[ -t 2 ] && printf '\r%60s\r' '' >&2
sort -s -k2n,2 -k3,3 -k4n,4 "$name.txt" >"$name.sorted"
awk -v name="$name" -v transport="$transport" -v floors="$out/floors.txt" -f "$here/peers.awk" "$name.sorted" | tee "$name.md"
heat_map
grep -q '^coll ' "$name.txt"
