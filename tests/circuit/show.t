#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# coll show names the manager of circuits when ranks wait for it in vain.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/colld.sh"
work=$(mktemp -d) || exit 1
colld= switch= runner=
finish() {
	[ -z "$runner" ] || kill "$runner" 2>/dev/null
	[ -z "$colld" ] || kill -KILL "$colld" 2>/dev/null
	exec 5>&-
	wait
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' HUP INT TERM
mkfifo "$work/stdin"
"$BUILD/tests/circuit/fake_switch" 4 "$work/log" <"$work/stdin" >"$work/ports" 5>&- &
switch=$!
exec 5>"$work/stdin"
soon 10 test -s "$work/ports"
read -r FAKE_SCPI _ <"$work/ports"
printf 'socket %s\nswitch scpi 127.0.0.1:%s\nnode n0 1,2\nnode n1 3,4\n' "$work/socket" \
	"$FAKE_SCPI" >"$work/circuits"
ok "colld starts" start_colld

COLL_CIRCUITS="$work/socket" timeout 100 "$COLL" run --no-prefix -q -n 2 -- sh -c \
	'COLL_NODE=n$COLL_RANK exec "$@"' - "$BUILD/tests/multi/hang" circuit \
	>"$work/said" 2>&1 5>&- &
runner=$!

cause() {
	"$COLL" show --json >"$work/show" 2>/dev/null && jq -e '[.jobs[] |
		select(.program == "hang" and .ranks == 2).cause | select(.why == "'"$1"'")] |
		length > 0' "$work/show"
}
has_runs() {
	"$COLL" show --json | jq -e '[.jobs[] | select(.program == "hang").rank[].calls] | min > 20'
}
ok "ranks use circuits" quiet soon 60 has_runs
kill -STOP "$colld"
ok "a manager that stands still is the cause" quiet soon 30 cause manager
like "... and what is waited for" "$(jq -r '.jobs[] | select(.program == "hang").cause.text' \
	"$work/show")" 'rank [01]: waits for the manager of circuits .* a circuit to rank [01] for'
kill -KILL "$colld"
wait "$colld" 2>/dev/null
colld=
gone() {
	cause manager && jq -r '.jobs[].cause.text' "$work/show" | grep -q 'which is gone'
}
ok "... and one that is gone" quiet soon 30 gone
tap_end
