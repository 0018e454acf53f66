#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# collnoise predict compared with measurements of real ranks: noise is injected into coll bench, and
# predicted from a capture of the same noise.
#	BUILD=build sh tests/bench/predict.sh [PAUSE [SECONDS [RANKS ...]]]
# PAUSE of each rank before a call: 2ms; 0: calls one after the other. SECONDS of each measurement:
# 20. Prints CSV. The model gets the collective's times without injection, from calls that alternate
# with those of the measurement (a machine changes within a minute), and the time between calls;
# nothing is fitted. The noise sleeps, since spinning would also take the core from other ranks on it.
# So an event lasts until the rank wakes up; the delay of waking up is measured before and after
# (wakeup_delay.c). With a core for each rank some noise spins. Ranks have a higher priority than other
# tasks of the machine, whose noise is not part of the comparison; AMONG=1: the same priority.
set -eu
build=${BUILD:-build}
pause=${1:-2ms} seconds=${2:-20}
[ $# -lt 2 ] || shift
[ $# -lt 1 ] || shift
ranks_list=${*:-2 4 8 16}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

ahead=
[ "${AMONG:-}" ] || ! chrt -f 10 true 2>/dev/null || ahead='chrt -f 10'

cc -O2 "${0%/*}/wakeup_delay.c" -o "$work/wake"

# 200 s of a kind of noise: start and length in ns.
plan() {	# RATE MEAN-MS LENGTH: fixed or exponential
	awk -v rate="$1" -v ms="$2" -v length_is="$3" 'BEGIN {
		srand(rate)
		for (t = 0; (t += -log(1 - rand()) / rate) < 200;)
			printf "%.0f %.0f\n", t * 1e9,
				ms * 1e6 * (length_is == "fixed" ? 1 : -log(1 - rand()))
	}'
}
plan 50 2 fixed >"$work/fixed"
plan 100 1 exponential >"$work/exponential"
{ plan 200 0.25 fixed; plan 20 2 fixed; plan 5 5 fixed; } | sort -n >"$work/mixed"

# A capture of it: each event as long as planned, plus the delay of waking up.
capture() {	# KIND
	case $1 in
	*-spin) cat "$work/${1%-spin}" ;;
	*) awk 'NR == FNR { late[n++] = $1; next }
		{ printf "%s %.0f\n", $1, $2 + 1000 * late[int(rand() * n)] }' \
		"$work/late" "$work/$1" ;;
	esac
}

injection() {	# KIND
	case $1 in
	fixed) echo os:poisson:rate=50,duration=2ms,how=sleep ;;
	exponential) echo os:poisson:rate=100,duration=1ms,length=exponential,how=sleep ;;
	mixed) echo "os:replay:$work/mixed,how=sleep" ;;
	fixed-spin) echo os:poisson:rate=50,duration=2ms,how=spin ;;
	esac
}

figure() {	# NAME: of the last run
	jq "[.. | .$1? // empty] | .[0]" "$work/out"
}

# The prediction for the last run, and its error.
compare() {	# RANKS KIND
	capture "$2" >"$work/capture"
	"$build/collnoise" predict "$work/capture" -n "$1" --algo butterfly \
		--base "$work/quiet" --idle "$(idle)us" --json >"$work/predicted"
	sort -n "$work/quiet" | awk -v ranks="$1" -v kind="$2" \
		-v calls="$(figure iterations)" -v mean="$(figure mean_us)" -v p99="$(figure p99_us)" \
		-v pmean="$(jq '.predictions[0].as_is.mean_s * 1e6' "$work/predicted")" \
		-v pp99="$(jq '.predictions[0].as_is.p99_s * 1e6' "$work/predicted")" '
		{ t[NR] = $1; sum += $1 }
		END {
			printf "%d,%s,%.0f,%.0f,%.0f,%d,%.0f,%.0f,%+.1f %%,%.0f,%.0f,%+.1f %%\n",
				ranks, kind, t[int(NR / 2) + 1], sum / NR,
				t[int(NR * 0.99) + 1], calls, mean, pmean,
				100 * (pmean / mean - 1), p99, pp99, 100 * (pp99 / p99 - 1)
		}'
}

# Microseconds from call to call.
idle() {
	cat "$work/times" "$work/quiet" | awk -v s="$seconds" '
		{ sum += $1 }
		END { printf "%.1f", (s * 1e6 - sum) / NR }'
}

echo 'ranks,noise,quiet_p50_us,quiet_mean_us,quiet_p99_us,calls,measured_mean_us,predicted_mean_us,off,measured_p99_us,predicted_p99_us,off'
for ranks in $ranks_list; do
	kinds='fixed exponential mixed'
	[ "$ranks" -gt "$(nproc)" ] || kinds="$kinds fixed-spin"
	for kind in $kinds; do
		$ahead "$work/wake" "$ranks" 1 >"$work/late"
		$ahead "$build/coll" bench allreduce -n "$ranks" --algo butterfly --size 8 \
			--time "$seconds" --warmup 20 --pause "$pause" --json \
			--inject "$(injection $kind)" --samples "$work/times" \
			--base "$work/quiet" >"$work/out"
		$ahead "$work/wake" "$ranks" 1 >>"$work/late"
		compare "$ranks" $kind
	done
done
