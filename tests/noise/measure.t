#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# collnoise measures, records, reports, and speaks the formats of others.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/collnoise.sh"
unset COLL_RANK COLL_CONFIG

# ---- measure -------------------------------------------------------------------------

cpus=$(nproc)
ok "measure" status 0 measure --duration 2s --json
holds "every CPU, but for how late a busy machine lets it start" "(.cpus | length) == $cpus and
	all(.cpus[]; .watched_ns > 100e6 and .watched_ns < 20e9)"
holds "an iteration of the loop takes nanoseconds" 'all(.cpus[]; .loop_ns > 0.1 and .loop_ns < 5000)'
holds "the clock's rate is known" ".clock.error_ppm < $(limit 50 10000)"
holds "percentiles are in order" 'all(.cpus[].duration; .count == 0 or
	(.min_ns <= .p20_ns and .p20_ns <= .p50_ns and .p50_ns <= .p80_ns and .p80_ns <= .p90_ns and
	 .p90_ns <= .p99_ns and .p99_ns <= .p999_ns and .p999_ns <= .max_ns))'
holds "the histogram holds all events" 'all(.cpus[];
	([.histogram[].count] | add // 0) == .duration.count and
	([.histogram[].total_ns] | add // 0) == .duration.total_ns)'
holds "the share is what was taken" 'all(.cpus[];
	(.share - .duration.total_ns / .watched_ns | fabs) < 1e-6 and .share < 1)'
holds "no event is shorter than the threshold" 'all(.cpus[].duration; .count == 0 or .min_ns >= 190)'
holds "it says that causes are not known" '.module | test("not loaded") or . == "loaded"'

ok "one CPU, in parts" status 0 measure -c 0 -d 0.3s -p 20ms -r 5ms --json
holds "so much of it was watched" '(.cpus | length) == 1 and .cpus[0].watched_ns > 20e6 and
	.cpus[0].watched_ns < 250e6'
ok "rtla's histogram" status 0 measure -d 0.2s --histogram -b 10 -E 5
like "its head" "$(cat "$work/out")" '^# RTLA osnoise histogram$'
like "its CPUs" "$(cat "$work/out")" '^Index +CPU-000'
like "its end" "$(cat "$work/out")" '^count: +[0-9]+'
ok "the table" status 0 measure -d 0.2s -D
like "has a line for each CPU" "$(cat "$work/out")" '^0 +[0-9.]+% '
like "and -D tells of the clock" "$(cat "$work/err")" '^clock [a-z_]+: [0-9.]+ ns a tick'

# ---- thresholds ------------------------------------------------------------------------

ok "a verdict passed" status 0 measure -d 0.1s --max-share 100% --max-length 1h --max-rate 1e9 --json
holds "says so" '.verdict.passed and (.verdict.limits | length) > 0'
ok "a verdict not passed is exit code 2" status 2 measure -d 0.5s --max-rate 0 --json
holds "says which limit" '(.verdict.passed | not) and any(.verdict.limits[]; .what == "rate" and
	(.passed | not) and .limit == 0 and .value > 0)'
ok "-s ends it, with exit code 2" status 2 measure -c 0 -d 50s -T 1us -s 1us --json
holds "at once" '.stopped_by_threshold and .all.watched_ns < 20e9 and .all.duration.max_ns >= 990'
ok "so does -S" status 2 measure -c 0 -d 50s -S 5us -p 100ms -r 100ms --json
ok "and acts are done" status 2 measure -c 0 -d 50s -T 1us -s 1us --on-threshold "shell,command=echo a, b >'$work/act'"
is "as they were asked for" "$(cat "$work/act")" "a, b"
sleep 60 &
victim=$!
ok "a signal is sent" status 2 measure -c 0 -d 50s -T 1us -s 1us --on-threshold signal,num=9,pid=$victim
wait $victim
is "to whom was named" $? 137
ok "without a threshold nothing is" status 0 measure -d 0.1s --on-threshold "shell,command=touch '$work/not'"
ok "indeed" test ! -e "$work/not"
ok "a trace of what stopped it" status 2 measure -c 0 -d 50s -T 1us -s 1us "-t=$work/trace" -q
like "is in osnoise's words" "$(cat "$work/trace")" \
	'sample_threshold: start [0-9]+[.][0-9]{9} duration [0-9]+ ns interference 0'
ok "which import understands" status 0 import --from osnoise -o "$work/traced" "$work/trace"
cd "$work"
noise=$(cd - >/dev/null && realpath "$noise")
ok "-a is all three" status 2 measure -c 0 -d 50s -a 1 -q
cd - >/dev/null
like "with rtla's name for the file" "$(cat "$work/osnoise_trace.txt")" 'sample_threshold: start'
ok "one that is not stopped writes none" status 0 measure -c 0 -d 0.1s -s 1h "-t=$work/none"
ok "indeed not" test ! -e "$work/none"
what="the kernel's own events beside it"
if [ -w /sys/kernel/tracing/instances ]; then
	ok "$what" status 2 measure -c 0 -d 50s -s 1us -e sched:sched_switch --filter 'prev_prio > 0' \
		-e irq "-t=$work/both" -q
	like "are in the trace" "$(cat "$work/both")" '^# tracer: nop'
	ok "no event" status 1 measure -s 1us -t -e nosuch:event
	like "  is named" "$(cat "$work/err")" "-e 'nosuch:event'.*valid: a line of available_events"
	ok "a bad filter" status 1 measure -s 1us -t -e sched:sched_switch --filter '(('
	like "  is named" "$(cat "$work/err")" "-e 'sched:sched_switch', --filter"
	"$noise" measure -c 0 -d 50s -s 1s -e irq "-t=$work/both" -q &
	traces=$!
	traced() { [ -e "/sys/kernel/tracing/instances/collnoise-$1" ]; }
	ok "one that runs" soon 20 traced $traces
	status 1 measure -s 1us -t -e nosuch:event
	ok "keeps its instance when another one begins" traced $traces
	kill -9 $traces
	wait $traces 2>/dev/null
	status 1 measure -s 1us -t -e nosuch:event
	is "and nothing is left" "$(ls /sys/kernel/tracing/instances | grep -c collnoise)" 0
else
	skip "$what" "no tracefs here that this user may write"
fi
ok "a profile" status 2 measure -d 0.5s -T 50ns --profile isolated
like "has a name" "$(cat "$work/out")" '^verdict isolated: FAILED'

# ---- captures -----------------------------------------------------------------------------

capture=$work/capture
ok "record" status 0 record -d 0.3s -o "$capture" --json
cp "$work/out" "$work/first"
ok "report reads it" status 0 report "$capture" --json
is "the same figures" "$(jq -S '[.cpus, .spectrum, .sources, .epoch_ns]' "$work/out")" \
	"$(jq -S '[.cpus, .spectrum, .sources, .epoch_ns]' "$work/first")"
ok "compared with itself" status 0 report "$capture" --compare "$capture" --json
holds "there is no difference" '(.compare.significant | not) and .compare.ks_distance == 0 and
	.compare.share_ratio == 1'
ok "measure compares" status 0 measure -d 0.2s --compare "$capture"
like "in words" "$(cat "$work/out")" 'taken: [+-][0-9.]+ points'

totals='[.cpus[] | [.duration.count, .duration.total_ns]]'
for format in netgauge osnoise ftq; do
	ok "export to $format" status 0 export --to $format "$capture" -o "$work/$format"
	case $format in
	osnoise) set -- "$work/$format" ;;
	*) set -- "$work/$format".[0-9]* ;;
	esac
	is "files of $format" $# "$([ $format = osnoise ] && echo 1 || echo "$cpus")"
	ok "import from $format" status 0 import -o "$work/again" "$@"
	ok "report of it" status 0 report "$work/again" --json
	if [ $format = ftq ]; then
		ok "the same shares" quiet jq -es "[.[0].cpus, .[1].cpus] | transpose |
			all((.[0].share - .[1].share | fabs) < $(limit 0.05 0.4))" "$work/out" "$work/first"
	else
		is "the same events" "$(jq -c "$totals" "$work/out")" \
			"$(jq -c "$totals" "$work/first")"
	fi
done
ok "LogGOPSim's lines" awk -F '\t' '/^#/ { next } NF != 2 || $1 !~ /^[0-9]+$/ || $2 !~ /^[0-9]+$/ ||
	$1 < last { exit 1 } { last = $1 }' "$work/netgauge.0"
ok "csv" status 0 export --to csv "$capture"
is "has a line an event" "$(($(wc -l <"$work/out") - 1))" "$(jq '.all.duration.count' "$work/first")"

if command -v gnuplot >/dev/null; then
	ok "report as a picture" status 0 report "$capture" "$work/noise.svg"
	like "with its panels" "$(cat "$work/noise.svg")" 'Spectrum: power over frequency'
else
	skip "report as a picture" "no gnuplot"
fi

# ---- without privileges -------------------------------------------------------------------

ok "check" status 0 check --json
holds "finds things, and advises" '(.findings | length) > 10 and all(.findings[];
	.what != "" and .value != null and (.state != "better" or .advice != ""))'
ok "check --strict" sh -c "'$noise' check --strict >/dev/null; test \$? -eq 2 -o \$? -eq 0"
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	chmod 755 "$work"
	cp "$noise" "$work/collnoise"
	nobody() {
		[ "$1" = nice ] || set -- "$work/collnoise" "$@"
		setpriv --reuid=65534 --regid=65534 --clear-groups "$@" >"$work/out"
	}
	ok "nobody may check" nobody check --json
	ok "nobody may measure" nobody measure -d 0.2s --json
	ok "... under nice" nobody nice -n 3 "$work/collnoise" measure -d 0.2s --json
	holds "and sees noise" '.all.watched_ns > 0'
	ok "nobody may calibrate" nobody calibrate --user -d 1s --json
	holds "and find everything" '.recall_twice_threshold >= 0.999 and .measured_as == "other"'
fi

# ---- what is wrong -------------------------------------------------------------------------

refused "no command 'foo'" foo
refused "'x'; valid: a time from" measure -d x
refused "a time from 50ns" measure -T 10ns
refused "valid: a list like 0,2-3, of the CPUs" measure -c 9999
refused "no profile 'x'; valid: quiet, k-computer, isolated" measure --profile x
refused "one argument too many" measure -d 1s foo
refused "no option '--foo'; valid: --cpus" measure --foo
refused "-p and -r go together" measure -p 10ms
refused "valid: shell,command=COMMAND" measure -s 1us --on-threshold trace
refused "valid: shell,command=COMMAND" measure -s 1us --on-threshold signal,num=0,pid=1
refused "o:NICE" measure -P x:1
refused "--filter 'x'; valid: after the --event" measure --filter x
refused "-e goes with -t" measure -s 1us -e irq
refused "-t goes with -s or -S" measure -t
refused "'x'; valid: a time from" measure -a x
ok "no cgroup" status 1 measure -d 1s -C=/no/such
like "  it says why" "$(cat "$work/err")" "-C '/no/such': .*valid: a folder below /sys/fs/cgroup"
refused "ending in .svg" measure --plot x.png
refused "-o FILE is needed" record -d 1s
refused "-o CAPTURE is needed" import /dev/null
refused "--to FORMAT is needed" export "$capture"
refused "--to 'foo'; valid: capture, netgauge, osnoise" export --to foo "$capture"
refused "ending in .html or .svg" report "$capture" x.pdf
ok "a file that is none" status 1 report /that/is/not
like "is named" "$(cat "$work/err")" '/that/is/not: No such file'
echo "1 2 3" >"$work/bad"
ok "a file with a wrong line" status 1 import -o "$work/again" "$work/bad"
like "is named with it" "$(cat "$work/err")" "bad:1: '1 2 3' is not"
tap_end
