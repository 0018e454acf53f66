#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
#	tools/demo_changing.sh FOLDER
#
# A job whose noise changes, for make demo: a table by phase of what its allreduces take by three ways in turns,
# and whether what is chosen by itself is within 10 % of the best of the others; then whether its
# report names what was planted: a daemon, and a rank whose messages are late. In FOLDER: changing.csv, the
# script of a picture changing.gp, and the report.
#
# BUILD; DEMO_RANKS (8); DEMO_PHASE: seconds of each of the four phases (8).
set -e
out=${1:?usage: tools/demo_changing.sh FOLDER}
build=${BUILD:-build}
phase=${DEMO_PHASE:-8}
ranks=${DEMO_RANKS:-8}
scene=$build/tests/multi/changing_noise
planted_daemon=backup planted_rank=1	# the rank: of changing_noise.c

echo "Now the noise changes while a job of $ranks ranks runs, each $phase s: quiet; messages of rank $planted_rank are late; a"
echo "daemon runs on one CPU; quiet. The butterfly, T=2 and what is chosen by itself, without any option, take turns."
mkdir -p "$out"
rm -f "$out/daemon"
(
	until [ -e "$out/daemon" ]; do
		sleep 0.1
	done
	cpu=$(taskset -pc $$ | sed 's/.*[-, ]//')
	exec taskset -c "$cpu" "$scene" daemon "$planted_daemon" "$out/daemon"
) &
daemon=$!
trap 'rm -f "$out/daemon"; kill $daemon 2>/dev/null || :' EXIT
trap 'exit 1' HUP INT TERM
COLL_MEMORY=off "$build/coll" run -q -n "$ranks" --no-prefix --report "$out/report" -- \
	"$scene" "$phase" "$out/daemon" >"$out/changing.part"
{
	echo "seconds,phase,way,calls,mean_us,algorithm"
	cat "$out/changing.part"
} >"$out/changing.csv"
rm "$out/changing.part"
awk -F, -f tools/demo_changing.awk "$out/changing.csv"
awk -F, -v plot=1 -f tools/demo_changing.awk "$out/changing.csv" >"$out/changing.gp"

# ---- what its report names -----------------------------------------------------

"$build/coll" report --json "$out/report.flight" >"$out/report.json"
# The program that had the ranks' cores for longest; whose messages cost most.
daemon_named=$(jq -r '[.loss[] | select(.taken_by)] | unique_by(.rank) | [.[].taken_by[] | select(.kind == "task")] |
	group_by(.name) | max_by(map(.seconds) | add) // [{ name: "no program" }] | .[0].name' "$out/report.json")
link_named=$(jq -r '[.loss[] | select(.kind == "late-messages")] | max_by(.cost_seconds) | if . then "to rank \(.rank)" +
	(if .from != null then " from rank \(.from)" else " from several" end) else "none" end' "$out/report.json")
verdict() {	# TRUE
	if [ "$1" = 1 ]; then echo yes; else echo NO; fi
}
daemon_right=0 link_right=0
[ "$daemon_named" != "$planted_daemon" ] || daemon_right=1
case "$link_named " in
*"rank $planted_rank "*) link_right=1 ;;
esac
echo
printf '%-10s %-28s %-28s %s\n' named planted "by the report" right
printf '%-10s %-28s %-28s %s\n' daemon "$planted_daemon" "$daemon_named" "$(verdict $daemon_right)"
printf '%-10s %-28s %-28s %s\n' link "messages of rank $planted_rank" "$link_named" "$(verdict $link_right)"
echo
echo "What its report says of what it lost (all of it: $out/report):"
sed -n '1,3p; /^who  /,/^$/p; /^causes/,/^$/p' "$out/report"
