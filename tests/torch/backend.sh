#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# The backend "coll" of torch.distributed: every operation, a model, failures, torchrun, the example. Some minutes.
. "${0%/*}/../lib/tap.sh"
here=${0%/*}
python=${PYTHON:-/usr/bin/python3}
PYTHONPATH=$(realpath "$BUILD")/torch
PYTHONDONTWRITEBYTECODE=1
COLL=$(realpath "$COLL")
export PYTHONPATH PYTHONDONTWRITEBYTECODE
unset COLL_RANK COLL_CONFIG COLL_SECRET
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Ranks find each other by a file, as torch's file:// does; it is new each time.
ranks() {	# RANKS PROGRAM [CASE]
	count=$1 program=$2
	shift 2
	rm -f "$work/store"
	COLL_TEST_STORE=$work/store timeout -k 5 300 "$COLL" run -q --keep-going --no-prefix -n "$count" -- \
		"$python" -W ignore "$here/$program" "$@" >"$work/out" 2>&1
}
good() {	# HOW-MANY RANKS PROGRAM [CASE]: so many ranks end well.
	wanted=$1
	shift
	ranks "$@"
	[ "$(grep -o 'good' "$work/out" | wc -l)" -eq "$wanted" ] || { sed 's/^/# /' "$work/out"; return 1; }
}

for count in 1 2 3 4 8; do
	ok "every operation, $count ranks" good $count $count every_operation.py
done
COLL_ENGINE=epoll
export COLL_ENGINE
ok "every operation, 3 ranks, epoll" good 3 3 every_operation.py
unset COLL_ENGINE
for count in 2 4; do
	ok "DistributedDataParallel, $count ranks: the same bits on all" good $count $count model.py
done
ok "a rank is killed: the others name it" good 2 3 failures.py dies
ok "a rank sleeps: it is named at the group's timeout" good 2 3 failures.py stops
ok "groups that are closed with messages to such a rank: it is named, and in the time of one" good 2 3 failures.py closes
ok "a wait gives up, and the operation goes on" good 3 3 failures.py deadline
ok "a monitored barrier names the rank that does not come, and the group works on" good 3 3 failures.py monitored
ok "a rank is absent from the start" good 2 3 failures.py absent
ok "a slow store, groups after each other, and a store at fault" good 3 3 failures.py stores

# Debian 12's torchrun fails unless output is sent somewhere: its Python 3.11 has no Std(0).
port=$((20000 + $$ % 10000))
by_torchrun() {
	timeout -k 5 300 torchrun -r 1 -t 1 --log_dir "$work/logs" --master_port $port "$@" >"$work/out" 2>&1 &&
		[ "$(cat "$work"/logs/*/*/*/stdout.log | grep -c "$pattern")" -eq 3 ] ||
		{ sed 's/^/# /' "$work/out"; return 1; }
}
# Debian's torch 2 has no libuv, and its own torchrun asks for it.
has_store() {
	timeout 60 "$python" -W ignore -c 'import torch.distributed as d; d.TCPStore("127.0.0.1", 0, 1, True)' 2>/dev/null
}
if command -v torchrun >/dev/null && has_store; then
	pattern='good$'
	ok "torchrun, 3 ranks" by_torchrun --nproc_per_node 3 "$here/model.py"
	rm -rf "$work/logs"
	pattern='the loss is'
	ok "torchrun, 3 ranks: the example" by_torchrun --nproc_per_node 3 "$here/../../examples/train.py"
else
	skip "torchrun" "it is not installed (make deps-torch), or torch has no libuv"
fi
like "bench: a line for each cell" "$(timeout 200 "$python" -W ignore "$here/../bench/torch_peers.py" --ranks 2 \
	--rounds 3 --sizes 8 --calls all_reduce,ddp 2>&1)" '^all_reduce +8( +[0-9.]+){6}$'
tap_end
