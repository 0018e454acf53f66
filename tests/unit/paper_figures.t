#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Papers 1, 2 and 5: sim/figures.sh writes every figure, and their claims hold (docs/papers/paper-1.md).
. "$(dirname "$0")/../lib/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
here=$(dirname "$0")

# number NAME EXPONENT RUNS ALPHA SIZE PERIOD DURATION ALGORITHM: of the last algorithm
number() {
	"$COLL" sim allreduce --ranks $((1 << $2)) --runs "$3" --alpha "$4" --size "$5" \
		--os-noise "periodic:period=$6,duration=$7" \
		--link-noise "poisson:rate=$(awk -v p="$6" 'BEGIN { print 1 / p }'),duration=$7" \
		--noise-semantics event --algo "$8" --json |
		sed -n "s/.*\"algo\".* \"$1\": \([^,}]*\).*/\1/p" | tail -1
}

holds() {	# EXPRESSION of awk
	awk "BEGIN { exit !($1) }"
}

long=$(number effect 12 10 1e-6 99000 1e-3 1e-5 butterfly)
short=$(number effect 12 10 1e-6 8 1e-3 1e-5 butterfly)
ok "1: jitter matters where a message takes less than an event: $short, $long" \
	holds "$long < 1.1 && $short > 2"
far=$(number effect 14 10 1e-6 8 1e-2 1e-4 butterfly)
near=$(number effect 14 10 1e-7 8 1e-2 1e-4 butterfly)
ok "2: a tenth of the latency, several times the effect: $near, $far" \
	holds "$near > 4 * $far && $near > 40"
rare=$(number effect 12 10 1e-6 8 1e-3 1e-6 butterfly)
much=$(number effect 12 10 1e-6 8 1e-3 1e-4 butterfly)
ok "3: it matters above 1/100 of the time: $rare, $much" holds "$rare < 1.3 && $much > 6"
both=butterfly,butterfly-redundant:T=9
few=$(number ratio 5 30 1e-7 8 1e-3 1e-5 butterfly,butterfly-redundant:T=5)	# all that 2^5 ranks have
some=$(number ratio 11 30 1e-7 8 1e-3 1e-5 "$both")
many=$(number ratio 16 10 1e-7 8 1e-3 1e-5 "$both")
ok "4: redundancy gains most from 2^7 to 2^14: $few, $some, $many" \
	holds "$few > 0.6 && $some < 0.16 && $many > 0.4"
one=$(number mean_s 6 30 1e-6 8 1e-3 1e-5 butterfly-redundant:T=1)
all=$(number mean_s 6 30 1e-6 8 1e-3 1e-5 butterfly-redundant:T=6)
ok "5: few ranks need a small T: $one, $all" holds "$one < 1.25 * $all"
one=$(number mean_s 12 30 1e-7 8 1e-3 1e-5 butterfly-redundant:T=1)
all=$(number mean_s 12 30 1e-7 8 1e-3 1e-5 butterfly-redundant:T=6)
ok "5: many a larger one: $one, $all" holds "$one > 1.25 * $all"

if ! command -v gnuplot >/dev/null; then
	skip "the figures" "no gnuplot"
	tap_end
	exit
fi
ln -s "$(cd "$(dirname "$COLL")" && pwd)/coll" "$work/coll"
ok "the figures" quiet env BUILD="$work" LARGEST=4 sh "$here/../../sim/figures.sh" --quick
mv "$work/figures/jitter-share-1ms.csv" "$work/before"
rm "$work/figures/columns/share-1ms-0.1-to-4-quick-0.25.csv"
LARGEST=4 BUILD="$work" sh "$here/../../sim/figures.sh" --quick >/dev/null 2>"$work/said"
is "what is there is not made again" "$(grep -c ': kept$' "$work/said")" 19
ok "and is the same" cmp "$work/before" "$work/figures/jitter-share-1ms.csv"
missing=
for figure in jitter-5 jitter-6 jitter-7 jitter-8 jitter-9 jitter-10 jitter-11 jitter-12 \
	jitter-13 jitter-14 jitter-15 jitter-16 jitter-17 jitter-18 jitter-19 jitter-20 jitter-21 \
	circuits-6-linear circuits-7-ring circuits-8-doubling circuits-9-binomial \
	clusters-4-bcast clusters-4-allreduce clusters-5-gather clusters-5-alltoall; do
	[ "$(wc -l <"$work/figures/$figure.csv")" -gt 3 ] &&
		grep -q '</svg>' "$work/figures/$figure.svg" || missing="$missing $figure"
done
is "all of them" "$missing" ""
best=$(sed -n 's/^1048576,"\(.*\)",\([^,]*\),.*/\2 \1/p' "$work/figures/clusters-4-allreduce.csv" |
	sort -g | head -1 | cut -d' ' -f2)
is "eight links carry allreduce best" "$best" rabenseifner-extended:n=8
tap_end
