#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# A job that measures has noise of ranks from colld of its node: there its ranks share a core, so that their messages do
# not tell whose it was. Not without colld, nor from a file that is another user's. /run is the test's own.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/own_run.sh"
cp "$BUILD/coll" "$BUILD/tests/multi/colld_noise" "$BUILD/tests/multi/report_cause" "$work"
ranks() {	# SECONDS: two on the last CPU; what they say is in $work/ranks
	timeout -k 1 $(($1 + 30)) setpriv --reuid=$user --regid=$user --clear-groups taskset -c "$last" \
		"$work/coll" run -q -n 2 --bind none --no-prefix -- "$work/colld_noise" "$1" >"$work/ranks" 2>&1
}

setsid taskset -c "$last" "$work/report_cause" burn backup$$ 150 50 &
pids="$pids $!"
ok "without colld the job runs" ranks 6
is "... and no rank has noise by it" "$(grep -c '^rank .: no noise by colld$' "$work/ranks")" 2

printf 'housekeeping %s\napplication %s\nkeep comm=*\n' "$first" "$last" >"$work/policy"
"$BUILD/colld" --policy "$work/policy" --act advise --metrics 0 2>"$work/said" &
daemon=$!
pids="$pids $daemon"
"$job" begin one $user
ok "with colld the job runs" ranks 60
sed 's/^/# /' "$work/ranks"
is "both ranks have the noise that colld told" "$(grep -c '^rank .: # noise .* others took the cores of ranks, by colld of' \
	"$work/ranks")" 2
is "... and they have agreed on it" "$(sed -n 's/^rank .: //p' "$work/ranks" | sort -u | wc -l)" 1
like "... and the choice says where it comes from" "$(cat "$work/ranks")" \
	'^why: .*least time with noise .*measured by colld before call [0-9]+'
rate=$(sed -n 's/^rank 0: # noise *= *\([0-9.e+]*\)x.*/\1/p' "$work/ranks")
share=$(sed -n 's/^rank 0: .*: \([0-9.e+]*\) % lately.*/\1/p' "$work/ranks")
ok "... of as much as was taken: 5 to 90 % of the ranks' time ($share)" awk -v s="${share:-0}" 'BEGIN { exit !(s >= 5 && s <= 90) }'
ok "... 1 to 2000 times a second ($rate)" awk -v r="${rate:-0}" 'BEGIN { exit !(r >= 1 && r <= 2000) }'

# What another user has put there is not looked at.
mv /run/coll/observed/$user "$work/observed"
kill $daemon
wait $daemon 2>/dev/null
mkdir -p /run/coll/observed
cp "$work/observed" /run/coll/observed/$user
chown $((user + 500)) /run/coll/observed/$user
chmod 644 /run/coll/observed/$user
ok "beside another user's file the job runs" ranks 6
is "... and has no noise by it" "$(grep -c '^rank .: no noise by colld$' "$work/ranks")" 2
head -c 100000 /dev/urandom >/run/coll/observed/$user
chown 0 /run/coll/observed/$user
ok "beside a file of random bytes the job runs" ranks 6
is "... and has no noise by it" "$(grep -c '^rank .: no noise by colld$' "$work/ranks")" 2
"$job" end one >/dev/null 2>&1
tap_end
