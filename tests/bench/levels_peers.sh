#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Four nodes of four ranks, with links of 1 Gbit/s and 50 us between them (coll lab): every collective by the
# library's choice among all algorithms, by its choice among flat ones (levels=flat), and by Debian's Open
# MPI, in turn within each round. Open MPI starts its ranks as over ssh, has TCP between the nodes and memory
# inside, as the library has, and yields. All nodes share this machine's cores. Debian's MPICH does not start here:
# UCX finds that ranks of different namespaces of one machine are unreachable over TCP.
#
#	tests/bench/levels_peers.sh [-l DELAY/RATE] [-c COLLECTIVE,..] [-s BYTES,..] [ROUNDS [SECONDS_PER_CELL]]
#
# A sample lasts from an agreed start until the last rank has returned (peer.c); a cell is the median over the
# rounds of a round's median. A library that does not end a round in time has no more cells in it.
if [ -z "${LEVELS_PEERS_INSIDE-}" ]; then
	# The nodes' namespaces have names in a folder that nobody else sees.
	LEVELS_PEERS_INSIDE=yes exec unshare -m --propagation private "$0" "$@"
fi
set -u
BUILD=$(realpath "${BUILD:-build}")
link=50us/1G
collectives=barrier,bcast,reduce,allreduce,reduce_scatter,allgather,gather,scatter,alltoall
sizes=8,1024,16384,262144
while getopts l:c:s: option; do
	case $option in
	l) link=$OPTARG ;;
	c) collectives=$OPTARG ;;
	s) sizes=$OPTARG ;;
	*) sed -n 's/^#	tests/usage: tests/p' "$0" >&2 && exit 2 ;;
	esac
done
shift $((OPTIND - 1))
rounds=${1:-3} seconds=${2:-0.2}
patience=${PEER_PATIENCE:-90}	# seconds of a library and round
nodes=4 each=4
here=$(cd "$(dirname "$0")" && pwd)
out=$BUILD/bench
mkdir -p "$out"
. "$here/peer_programs.sh"

work=$(mktemp -d)
trap 'umount -l "$work" 2>/dev/null; rmdir "$work"' EXIT
trap 'exit 1' HUP INT TERM
mount -t tmpfs none "$work"
peer_programs "coll openmpi" || exit 1

# agent HOST COMMAND, as ssh: in the namespace of that node, with a name and files of its own.
cat >"$work/agent" <<END
#!/bin/sh
while case \$1 in -*) true ;; *) false ;; esac; do
	shift
done
node=\${1#10.77.}
node=\${node%%.*}
shift
export TMPDIR=$work/tmp\$node
exec nsenter --net="$work/net\$node" unshare -u sh -c "hostname node\$node; \$*"
END
chmod +x "$work/agent"

# Of node 0, while the others wait until it has ended. $1: the library.
cat >"$work/round" <<END
#!/bin/sh
unset COLL_RANK COLL_RANKS COLL_LOCAL_RANK COLL_LOCAL_RANKS COLL_STORE COLL_JOB COLL_SECRET COLL_CLUSTERS
export TMPDIR=$work/tmp0 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
hosts=10.77.0.1:$each,10.77.1.1:$each,10.77.2.1:$each,10.77.3.1:$each
peer="$seconds $collectives $sizes 3000"
case \$1 in
levels | flat)
	[ \$1 = flat ] && export COLL_LEVELS=flat
	$BUILD/coll run --no-prefix -t $patience --hosts \$hosts --ssh $work/agent -- $out/peer.coll \$peer ;;
openmpi)
	timeout -k 5 $patience mpirun.openmpi --host \$hosts --bind-to none --mca mpi_yield_when_idle 1 --mca plm_rsh_agent $work/agent \\
		--mca plm_rsh_no_tree_spawn 1 --mca oob_tcp_if_include rail0 --mca pml ob1 \\
		--mca btl tcp,vader,self --mca btl_tcp_if_include rail0 \\
		-np $((nodes * each)) $out/peer.openmpi \$peer ;;
esac
END
chmod +x "$work/round"

cat >"$work/node" <<END
#!/bin/sh
mkdir -p $work/tmp\$COLL_RANK
: >$work/net\$COLL_RANK
mount --bind /proc/self/ns/net $work/net\$COLL_RANK
: >$work/ready\$COLL_RANK
tries=$((patience * 10 + 300))
while [ \$tries -gt 0 ]; do
	if [ \$COLL_RANK = 0 ] && [ \$(ls $work | grep -c ^ready) = $nodes ]; then
		$work/round \$1
		: >$work/done
	fi
	[ -e $work/done ] && exit 0
	sleep 0.1
	tries=\$((tries - 1))
done
exit 1
END
chmod +x "$work/node"

# One round of one library: appends "LIBRARY COLLECTIVE BYTES MEDIAN P99 ...".
run() {
	"$BUILD/coll" lab -c 1+1+1+1 --no-clusters --delay "${link%/*}" --wan "${link#*/}" --nic "${link#*/}" \
		--nic-queue 1M --queue 1M --port-queue 1M -t $((patience + 30)) -- "$work/node" "$1" 2>>"$out/errors.txt" |
		grep -E '^[a-z_]+ [0-9]+ ' | sed "s/^/$1 /" >>"$out/levels_peers.txt"
	for name in net0 net1 net2 net3; do
		umount "$work/$name" 2>/dev/null
	done
	rm -rf "$work"/ready* "$work/done" "$work"/tmp*
}

: >"$out/levels_peers.txt"
: >"$out/errors.txt"
round=1
while [ "$round" -le "$rounds" ]; do
	for library in levels flat openmpi; do
		[ -t 2 ] && printf '\rround %s of %s, %-8s' "$round" "$rounds" "$library" >&2
		run "$library"
	done
	round=$((round + 1))
done
[ -t 2 ] && printf '\r%60s\r' '' >&2

awk "$(cat "$here/median.awk")"'
	{
		cell = $2 " " $3
		if (!(cell in seen)) { seen[cell] = 1; order[++cells] = cell }
		value[cell, $1, ++rounds[cell, $1]] = $4
	}
	function of(cell, library,   i, list) {
		for (i = 1; i <= rounds[cell, library]; i++)
			list[i] = value[cell, library, i]
		return rounds[cell, library] ? median(list, rounds[cell, library]) : 0
	}
	function figure(us) { return us ? sprintf("%.0f", us) : "-" }
	function ratio(us, other) { return us && other ? sprintf("%.2f", us / other) : "-" }
	END {
		print "| collective | bytes | by levels µs | flat µs | Open MPI µs | levels / flat | levels / Open MPI |"
		print "|---|---|---|---|---|---|---|"
		for (i = 1; i <= cells; i++) {
			split(order[i], part, " ")
			c = of(order[i], "levels"); f = of(order[i], "flat")
			o = of(order[i], "openmpi")
			printf "| %s | %s | %s | %s | %s | %s | %s |\n", part[1], part[2], figure(c), figure(f),
				figure(o), ratio(c, f), ratio(c, o)
			if (c && f) { flat += log(c / f); flats++ }
			if (c && o) { peer += log(c / o); peers++; slower += c > o }
		}
		if (flats)
			printf "\n%d cells: %.2f of the flat time in the geometric mean\n", flats,
				exp(flat / flats)
		if (peers)
			printf "%d cells: %.2f of the time of Open MPI, %d slower\n", peers, exp(peer / peers), slower
		exit !flats
	}' "$out/levels_peers.txt"
