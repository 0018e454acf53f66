#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Under PyTorch's torchrun: on one node, and on two as far as it knows. It tells the exit
# codes of ranks in words, and ends with 1 itself.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/launcher.sh"
COLL=$(realpath "$COLL")
if ! command -v torchrun >/dev/null; then
	skip "torchrun" "it is not installed"
	tap_end
	exit
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
port=$((20000 + $$ % 10000))	# below those that the kernel hands out
# Debian 12's fails unless output is sent somewhere: its Python 3.11 has no Std(0).
torchrun="torchrun --no_python -r 1 -t 1 --log_dir $work --master_port $port"

by "torchrun" 1 $torchrun --nproc_per_node

two_nodes() {
	COLL_SECRET=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
	export COLL_SECRET
	for node in 0 1; do
		timeout -k 5 100 $torchrun --master_addr 127.0.0.1 --nnodes 2 --node_rank $node \
			--nproc_per_node 2 "$COLL" bench barrier --time 0.1 >"$work/node.$node" 2>&1 &
		eval "node$node=\$!"
	done
	wait "$node0" && wait "$node1"
}
ok "torchrun on two nodes: coll bench ends well" two_nodes
like "torchrun on two nodes: on 4 ranks" "$(cat "$work/node.0")" 'barrier, 4 ranks'
timeout -k 5 100 $torchrun --nproc_per_node 2 "$COLL" bench nonsense >"$work/failed" 2>&1
ok "torchrun tells a rank's exit code" said 'exitcode *: 2' "$work/failed"
tap_end
