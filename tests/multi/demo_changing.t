#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# The scene of make demo in which the noise of a job changes, with short phases: its report names the daemon and the
# rank whose messages are late, and of each phase there is a verdict. What the verdicts say takes a machine of its own
# (QUIET).
. "${0%/*}/../lib/tap.sh"
work=$(mktemp -d)
SECONDS_EACH=0
. "${0%/*}/../lib/causes.sh"
trap 'causes_end; rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

ok "the scene runs to its end" exits 0 sh -c 'echo $$ >"$0"; exec "$@"' "$ahead" \
	env DEMO_PHASE="$(limit 8 5)" tools/demo_changing.sh "$work/scene"
table=$(cat "$work/out")
for phase in quiet link-noise daemon quiet-again; do
	like "$phase: auto beside the best other way, and whether that holds" "$table" \
		"^$phase +[0-9]+ +[0-9]+ +[0-9]+ +[0-9.]+ \+- [0-9.]+ of (plain|T=2) +(yes|NO) "
	[ -z "$QUIET" ] || like "$phase: it holds" "$table" "^$phase .* yes "
done
like "the daemon has a verdict" "$table" '^daemon +backup +[^ ]+ +(yes|NO)$'
named() {
	quiet tap_holds '[.loss[].taken_by[]? | select(.kind == "task" and .name == "backup")] | length > 0' \
		"$work/scene/report.json"
}
if [ -n "$QUIET" ]; then
	like "the daemon is named first, by its name" "$table" '^daemon +backup +backup +yes$'
elif named; then
	ok "the report names it among the programs that had the ranks' cores" named
else
	skip "the report names the daemon" "other programs of this machine took more: $(cut -d' ' -f1-3 /proc/loadavg)"
fi
like "the rank is named whose messages are late" "$table" \
	'^link +messages of rank 1 +to rank ([0-9]+ from rank 1|1 from (rank [0-9]+|several)) +yes$'
ok "every way has calls in every phase" test "$(cut -d, -f2,3 "$work/scene/changing.csv" | sort -u | wc -l)" -eq 13
ok "the daemon has ended" test ! -e "$work/scene/daemon"
printf '%s\n' "$table" | sed 's/^/# /'
tap_end
