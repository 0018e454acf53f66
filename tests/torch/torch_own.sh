#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
# usage: BUILD=build tests/torch/torch_own.sh [PATTERN...]
#
# PyTorch's own tests of torch.distributed with the backend coll, under its own name and, for tests that run
# with those alone, under the names gloo and mpi. Some minutes. $BUILD/torch_own.json: what came out.
# RANKS=: how many, by default 4.
BUILD=${BUILD:-build}
here=${0%/*}
python=${PYTHON:-/usr/bin/python3}
PYTHONPATH=$(realpath "$BUILD")/torch
PYTHONDONTWRITEBYTECODE=1
TMPDIR=$(mktemp -d)
export PYTHONPATH PYTHONDONTWRITEBYTECODE TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
trap 'exit 1' INT TERM
unset COLL_RANK COLL_CONFIG COLL_SECRET
results=$BUILD/torch_own.json
rm -f "$results"
[ $# -gt 0 ] || set -- '*'
for name in coll gloo mpi; do
	timeout -k 10 2400 "$python" -W ignore "$here/torch_own.py" --as $name --ranks "${RANKS:-4}" \
		--results "$results" "$@" 2>"$TMPDIR/err" || cat "$TMPDIR/err"
done | awk '
	# One list of tests: a test skipped under one name, and not under another, is not skipped.
	/^(not )?ok / { match($0, / - [^ ]+/); name = substr($0, RSTART, RLENGTH)
			if (!(name in said)) order[++count] = name
			else if (/# SKIP/) { last = ""; next }
			said[name] = $0; note[name] = ""; last = name; next }
	/^1\.\./ { last = ""; ended++; next }
	last != "" && /^#/ { note[last] = note[last] $0 "\n" }
	END {
		for (i = 1; i <= count; i++) {
			line = said[order[i]]
			sub(/ok [0-9]+/, "ok " i, line)
			printf "%s\n%s", line, note[order[i]]
		}
		if (ended != 3)
			printf "not ok %d - all three parts ran to their end\n", ++count
		print "1.." count
	}'
