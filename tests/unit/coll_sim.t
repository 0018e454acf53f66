#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# coll sim as a command: its output, equal for equal seeds, and its errors.
. "$(dirname "$0")/../lib/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

sim() {
	"$COLL" sim "$@" 2>&1
}

json() {	# ALGORITHM NAME: what JSON says
	sed -n "s/.*\"algo\": \"$1\".* \"$2\": \([^,}]*\).*/\1/p" "$work/json"
}

between() {	# VALUE LEAST MOST
	awk -v v="$1" -v a="$2" -v b="$3" 'BEGIN { exit !(v != "" && v + 0 >= a && v + 0 <= b) }'
}

noise="--os-noise periodic:period=1e-3,duration=1e-5 --link-noise poisson:rate=1000,duration=1e-5"
paper="allreduce --ranks 4096 --size 8 --alpha 1e-7 --beta 1e-9 --gamma 1e-10 $noise
	--noise-semantics event --algo butterfly,butterfly-redundant:T=best --runs 30 --seed 1 --json"

# shellcheck disable=SC2086
sim $paper >"$work/json"
ok "the effect of jitter on the butterfly" between "$(json butterfly effect)" 7 16
ok "its ideal time" between "$(json butterfly ideal_s)" 1.3055e-6 1.3057e-6
ok "the redundant one is faster" between "$(json butterfly-redundant ratio)" 0.05 0.2
ok "with a best T" between "$(json butterfly-redundant best_T)" 2 12
# shellcheck disable=SC2086
sim $paper --threads 1 >"$work/again"
ok "same seed, same bytes" cmp "$work/json" "$work/again"
# shellcheck disable=SC2086
sim $paper --path events --ranks 64 >"$work/events"
# shellcheck disable=SC2086
sim $paper --path levels --ranks 64 >"$work/levels"
is "both paths give the same times" "$(sed 's/"levels"/"events"/' "$work/levels")" "$(cat "$work/events")"

like "LogGOPSim's time of 2^20 ranks" \
	"$(sim barrier --algo dissemination --alpha 2542ns --overhead 1500ns --ranks 1048576 --json)" \
	'"mean_s": 0.00011084,'
like "results are proved" "$(sim allreduce --algo ring --ranks 9 --size 999 --prove --json)" \
	'"proved": true'
nodes="--ranks 256 --levels 16+ --alpha 2us --beta 1ns"
# shellcheck disable=SC2086
sim allreduce $nodes --size 16M --algo lanes:segment=16M,butterfly --json >"$work/json"
is "a NIC carries 2 n (N - 1) / N bytes with lanes" "$(json lanes nic_sent)" 31457280
is "and 16 * 4 n with a butterfly" "$(json butterfly nic_sent)" 1073741824
# shellcheck disable=SC2086
like "by cost, a leader for few bytes" "$(sim allreduce $nodes --overhead 500ns --gap 300ns)" ' leader '
# shellcheck disable=SC2086
like "by cost, lanes for many" "$(sim allreduce $nodes --size 16M)" ' lanes:'
like "right results on nodes and domains" \
	"$(sim alltoall --ranks 24 --levels 8+/4+ --algo lanes,leader --size 800 --prove --json)" '"proved": true'
like "sizes of nodes that are none" "$(sim allreduce --levels 8+8 --ranks 64)" \
	"levels '8[+]8'; valid: .* of 64 ranks together"
like "a critical path" "$(sim bcast --algo binomial --ranks 8 --critical-path)" \
	'message from rank 0 to rank'
sim bcast --algo binomial --ranks 8 --timeline "$work/trace" >/dev/null
like "a timeline" "$(cat "$work/trace")" '"ph":"X"'
like "CSV" "$(sim scan --ranks 4..16 --csv --algo linear)" '^scan,"linear",16,8,'
like "a histogram" "$(sim allreduce --algo butterfly $noise --runs 9 --histogram 3 --json)" \
	'"histogram": .*"runs": \[[0-9]*, [0-9]*, [0-9]*\]'
if command -v gnuplot >/dev/null; then
	for ranks in 4..16 8; do
		sim allreduce --algo butterfly,butterfly-redundant:T=best $noise --runs 3 \
			--ranks $ranks --plot "$work/plot.svg" >/dev/null
		like "a picture, $ranks ranks" "$(tr -d '\n' <"$work/plot.svg")" 'butterfly-redundant:T=best.*</svg>'
		rm -f "$work/plot.svg"
	done
else
	skip "a picture" "no gnuplot"
fi
like "a picture of another kind" "$(sim allreduce --plot x.png)" "plot 'x.png'; valid: .*svg"
like "two clusters" \
	"$(sim barrier --algo butterfly --ranks 8 --clusters 2 --wan-alpha 5ms --alpha 1us --csv)" \
	',0.005002,'
goal="--message-semantics goal --alpha 2500ns --overhead 1500ns --gap 1us --nic 6ns"
# shellcheck disable=SC2086
like "LogGOPSim's time of a fold" \
	"$(sim allreduce --algo butterfly --ranks 100 --size 8000 $goal --gamma 1ns --json)" \
	'"mean_s": 0.000644434,'
# shellcheck disable=SC2086
like "right results by LogGOPSim's rules" \
	"$(sim alltoall --ranks 24 --algo linear,bruck --size 800 --eager 100 $goal --prove --json)" '"proved": true'
# shellcheck disable=SC2086
like "a critical path by LogGOPSim's rules" "$(sim gather --algo linear --ranks 8 $goal --critical-path)" \
	'message from rank'
# shellcheck disable=SC2086
like "LogGOPSim's rules know no clusters" "$(sim bcast --ranks 8 --clusters 2 $goal)" \
	'goal and --clusters; valid: one of them'
# shellcheck disable=SC2086
like "nor have they a path by levels" "$(sim bcast --algo binomial $goal --path levels)" "not on that path"
like "help" "$(sim --help)" 'usage: coll sim'
like "an unknown collective" "$(sim foo)" "no collective 'foo'; valid: barrier"
like "an unknown algorithm" "$(sim bcast --algo foo)" "no algorithm 'foo'; valid:.*binomial"
like "a bad duration" "$(sim bcast --alpha 1x)" "alpha '1x'; valid"
like "bad noise" "$(sim bcast --os-noise periodic:period=1ms)" "needs duration"
half="--os-noise periodic:period=1ms,duration=600us"
# shellcheck disable=SC2086
like "noise of two sources that leaves no time" "$(timeout 60 "$COLL" sim bcast --algo binomial $half $half \
	--noise-semantics occupancy 2>&1)" 'together fill more than 95 %'
like "bad links of no rank" "$(sim bcast --bad-links x)" "up to 16 ranks with commas between"

for none in "--slow 5:100" "--noisy 4 $half" "--bad-links 4 --link-noise poisson:rate=9,duration=3us" "--root 4" \
	"--clusters 5"; do
	# shellcheck disable=SC2086
	like "ranks that are not there: $none" "$(sim reduce --ranks 8,4 $none)" \
		"--[a-z-]+ [45], but there are 4 ranks"
done
like "a T that there is not" "$(sim allreduce --ranks 8 --algo butterfly-redundant:T=4)" \
	'butterfly-redundant:T=4 of 8 ranks; valid: up to 3, the number of exchanges'
like "an n that there is not" "$(sim bcast --ranks 5 --clusters 2 --algo vandegeijn-extended:n=3)" \
	'vandegeijn-extended:n=3 of 5 ranks; valid: up to 2, the ranks of the smallest cluster'
unmet="--os-noise poisson:rate=100,duration=1ms"
# shellcheck disable=SC2086
like "noise that meets no op is told" "$(sim allreduce --ranks 64 --algo butterfly $unmet)" \
	"--os-noise has met no op: .*occupancy"
# shellcheck disable=SC2086
is "... one that does is not" \
	"$(sim allreduce --ranks 64 --algo butterfly $unmet --noise-semantics occupancy | grep -c 'met no op')" 0
like "noisy ranks without noise" "$(sim bcast --noisy 3)" "--noisy needs --os-noise"
like "bad links without noise" "$(sim bcast --bad-links 3)" "--bad-links needs --link-noise"
like "a histogram that nothing prints" "$(sim bcast --histogram 3)" "--histogram needs --json"

# Of a leaf one message is left that others wait for.
sim allreduce --ranks 64 --runs 500 --bad-links 5 --link-noise poisson:rate=33333,duration=3us --noise-semantics occupancy \
	--alpha 1us --overhead 0.1us --algo butterfly,butterfly-leaf:late=5 --json >"$work/json"
ok "bad links of one rank delay a butterfly" between "$(json butterfly others_mean_s)" 9.1e-6 9.6e-6
ok "... and hardly one in which it is a leaf" between "$(json butterfly-leaf others_mean_s)" 7.35e-6 7.8e-6
for path in levels events; do
	bad="allreduce --ranks 64 --runs 20 --link-noise poisson:rate=33333,duration=3us --noise-semantics occupancy --algo butterfly
		--path $path --json"
	# shellcheck disable=SC2086
	sim $bad --bad-links 5 >"$work/json"
	json butterfly mean_s >"$work/mean.$path"
done
ok "bad links on both paths alike" cmp "$work/mean.levels" "$work/mean.events"
like "a path that does not support the job" "$(sim bcast --algo binomial --nic 1ns --path levels)" "not on that path"
tap_end
