#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Paper 5: its formulas and the schedules agree, its claims hold (docs/papers/paper-5.md), and the
# verifier finds defects in the use of circuits.
. "$(dirname "$0")/../lib/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# agree CSV: formula and simulation in all rows, but for rounding
agree() {
	awk -F, 'NR > 1 && $5 != "" {
		rows++
		if (($5 - $6) ^ 2 > (1e-6 * $5) ^ 2) { bad = 1; print "# " $0 }
	}
	END { exit bad || rows < 100 }' "$1"
}

# cell ALGORITHM BYTES MODE PORTS COLUMN
cell() {
	awk -F, -v a="$1" -v b="$2" -v m="$3" -v p="$4" -v c="$5" \
		'$1 == a && $2 == b && $3 == m && $4 == p { print $c; exit }' "$work/32.csv"
}

for ranks in 32 16 8; do
	"$COLL" sim circuit --table --csv --ranks $ranks --ports 1,2,3,4 >"$work/$ranks.csv"
	ok "$ranks ranks: the schedules take what the formulas say" agree "$work/$ranks.csv"
done
is "3 and 4 ports coincide in recursive doubling of 32" \
	"$(cell doubling 32 ports 3 6)" "$(cell doubling 32 ports 4 6)"
is "a naive ring sets up 2 (p - 1) circuits of a node: 62 x 32 / 2" \
	"$(cell ring 32 naive 0 7)" 992
ok "and takes 0.6 s at least" \
	awk -v t="$(cell ring 32 naive 0 6)" 'BEGIN { exit !(t > 0.6) }'
is "with two ports it sets up each circuit once" "$(cell ring 32 ports 2 7)" 32
for ranks in 3 7 12; do
	ok "$ranks ranks are simulated as well" quiet \
		"$COLL" sim circuit --table --ranks $ranks --ports 1,2,5
done

# plan ARGUMENT...: the chosen row
plan() {
	"$COLL" sim circuit --json --plan "$@" | grep '"chosen": true'
}
like "short vectors go over a static graph" \
	"$(plan allreduce --size 8 --ranks 16 --ports 4 --simplex)" '"debruijn".*"gap": 1\.0'
like "long vectors over rings" "$(plan allreduce --size 4M --ranks 16 --ports 4)" '"rings"'
like "large blocks directly" \
	"$(plan alltoall --size 16M --ranks 16 --ports 4 --beta 0.8ns)" 'radix=16|"linear"'
like "the number of wavelengths is respected" \
	"$(plan allgather --size 64 --ranks 8 --ports 2 --wavelengths 3)" '"circuits_at_once": [123]}'

"$COLL" sim circuit --trace "$(dirname "$0")/../../sim/traces/ft-a-16.trace" >"$work/trace"
ok "a program's trace: naive is slowest, the planner's choice fastest" awk '
	$1 == "ideal" { ideal = $2 } $1 == "naive" { naive = $2 }
	$1 == "turns" && $4 == 2 { two = $5 } $1 == "turns" && $4 == 4 { four = $5 }
	$1 == "best" && $4 == 4 { best = $5 }
	END { exit !(best < four && ideal < four && four < two && two < naive) }' "$work/trace"

"$COLL" sim circuit --trace "$(dirname "$0")/../../sim/traces/ft-a-16.trace" --wavelengths 4 >"$work/few"
ok "with few wavelengths it takes longer" awk 'FNR == NR { time[FNR] = $(NF - 1); next }
	$1 == "best" { n++; bad += $(NF - 1) <= 2 * time[FNR] } END { exit bad || n != 3 }' "$work/trace" "$work/few"
ok "one wavelength: circuits are set up one after another" quiet "$COLL" sim circuit --wavelengths 1 --ranks 8
like "and no formula is given" "$("$COLL" sim circuit --simplex --ranks 8 --ports 2 --csv)" '^linear,1,naive,0,,'
is "one rank: there is no bound, and JSON" "$("$COLL" sim circuit --plan allreduce --ranks 1 --ports 2 --json |
	jq -c '[.[].gap] | unique')" "[null]"

refused() {
	"$COLL" "$@" >"$work/out" 2>&1
	[ $? -eq 2 ]
}
ok "a reconfiguration delay of 0 is refused" refused sim circuit --delta 0
ok "0 ports are refused" refused sim circuit --ports 0
ok "a share of failures of 1 is refused" refused sim circuit --failures 1
for wrong in "--ports 1," "--ports +1" "--table --plan barrier" "--json --csv" "--size 8" "--trace x --csv" \
	"--trace x --ranks 4"; do
	ok "refused: $wrong" refused sim circuit $wrong
done
for line in "coll-trace ranks=0" "coll-trace ranks=4000000000" "coll-trace ranks=4x" "cpu ns=x" "bcast root=0"; do
	printf 'coll-trace ranks=4\n%s\n' "$line" >"$work/wrong"
	like "a trace's line: $line" "$(timeout 20 "$COLL" sim circuit --trace "$work/wrong" 2>&1)" 'wrong, line 2: '
done

# found DEFECT PATTERN: planted in the circuits of a doubling
found() {
	"$COLL" verify --quick --plant "$1" --collective allgather --algorithm doubling \
		--ranks 4-9 >"$work/out" 2>&1
	[ $? -eq 1 ] && grep -Eq "$2" "$work/out"
}
ok "planted: skip-connect" found skip-connect 'circuit'
ok "planted: skip-release" found skip-release 'never releases it|may have'
ok "planted: early-connect" found early-connect 'at once|may have'
ok "planted: early-release" found early-release 'without a circuit|may be released before it is done|from circuit'
tap_end
