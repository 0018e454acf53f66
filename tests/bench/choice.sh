# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# What the choice of algorithms costs, for scripts that have BUILD and a folder $out, and define
#
#	choice_bench COLLECTIVE OPTION ...	runs coll bench, with COLL_EXPLAIN=1
#
# Each collective is measured with the chosen algorithm and with every other one, in turn in the same
# run, by few calls. The best of many noisy medians is too good. So the chosen one and the three best
# others, if they took less than 1.5 of the best time, are measured once more, for longer, in turn: what counts
# is this final. Lines go to $out/$choice_name.csv:
#
#	all,PLACE,COLLECTIVE,RANKS,ENGINE,BYTES,ALGORITHM,ITERATIONS,WRONG,MEAN,P50,...
#	final,...			the same
#	chosen,PLACE,COLLECTIVE,BYTES,ALGORITHM

# auto, and all algorithms of a collective but those whose names are like the pattern. Not those that are
# for clusters, circuits or noise alone, or that are there to be compared with.
choice_algorithms() {	# COLLECTIVE PATTERN
	"$BUILD/coll" verify --list | awk -v collective="$1" -v without="^($2)$" '
		$1 == collective && $2 !~ without &&
		$2 !~ /^(world|direct|rings|debruijn|butterfly-(leaf|leaf-last|relayed))$/ { list = list "," $2 }
		END { print "auto" list }'
}

choice_begin() {	# NAME
	choice_name=$1
	mkdir -p "$out"
	: >"$out/$choice_name.csv"
	: >"$out/$choice_name.errors"
	choice_failed=0
}

choice_fails() {	# PLACE COLLECTIVE
	choice_failed=$((choice_failed + 1))
	{
		echo "$1, $2:"
		cat "$out/$choice_name.err"
	} >>"$out/$choice_name.errors"
	return 1
}

# Appends the lines of a run.
choice_lines() {	# KIND PLACE
	awk -v head="$1,$2," '/^collective,/ { next } {
		split($0, quoted, "\"")	# of injection, of algorithm
		line = quoted[1] "," quoted[3] quoted[4] quoted[5]
		gsub(/,,+/, ",", line)
		print head line }' "$out/$choice_name.out" >>"$out/$choice_name.csv"
}

# "coll: allreduce of 1 x 8 bytes, 16 ranks ...: leader:segment=8192 (least predicted time ..."
choice_chosen() {	# PLACE COLLECTIVE
	awk -v place="$1" -v collective="$2" '
		index($0, "coll: " collective " of ") == 1 && sub(/ \(least predicted time.*/, "") {
			bytes = $4 * $6
			sub(/ \(noise.*/, "")
			name = $NF
			sub(/:.*/, "", name)
			if (!seen[bytes]++)
				print "chosen," place "," collective "," bytes "," name
		}' "$out/$choice_name.err" >>"$out/$choice_name.csv"
}

# "BYTES ALGORITHM,..." for each size with others that may be better than the chosen one.
choice_finalists() {	# PLACE COLLECTIVE
	sort -t, -k6n,6 -k11n,11 "$out/$choice_name.csv" | awk -F, -v place="$1" -v collective="$2" '
		function say() { if (list) print bytes, list; list = ""; many = 0 }
		FILENAME != "-" {
			if ($1 == "chosen" && $2 == place && $3 == collective)
				chosen[$4] = $5
			next
		}
		$1 != "all" || $2 != place || $3 != collective || $7 == "auto" { next }
		$6 != bytes { say(); bytes = $6; best = $11 }
		$7 != chosen[bytes] && $11 < 1.5 * best && many++ < 3 { list = list "," $7 }
		END { say() }' "$out/$choice_name.csv" -
}

# Measures a collective with these sizes: CALLS of each algorithm, then SECONDS for each size.
choice_measure() {	# PLACE COLLECTIVE SIZES CALLS SECONDS PATTERN
	choice_sizes="--size $3"
	[ "$2" = barrier ] && choice_sizes=
	# shellcheck disable=SC2086
	choice_bench "$2" $choice_sizes --iterations "$4" --csv --algo "$(choice_algorithms "$2" "$6")" \
		>"$out/$choice_name.out" 2>"$out/$choice_name.err" || { choice_fails "$1" "$2"; return; }
	choice_lines all "$1"
	choice_chosen "$1" "$2"
	choice_finalists "$1" "$2" >"$out/$choice_name.finalists"
	while read -r choice_size choice_others; do
		[ "$2" = barrier ] || choice_sizes="--size $choice_size"
		# shellcheck disable=SC2086
		choice_bench "$2" $choice_sizes --time "$5" --csv --algo "auto$choice_others" \
			>"$out/$choice_name.out" 2>"$out/$choice_name.err" </dev/null ||
			{ choice_fails "$1" "$2"; continue; }
		choice_lines final "$1"
	done <"$out/$choice_name.finalists"
}

# The table; with `all`, of the cells too where the chosen one is good enough.
choice_report() {	# [all]
	sort -s -t, -k1,1 "$out/$choice_name.csv" | awk -v all="${1-}" -f "$(dirname "$0")/choice.awk"
	choice_code=$?
	[ $choice_failed -eq 0 ] && return $choice_code
	echo "$choice_failed runs failed: $out/$choice_name.errors" >&2
	return 1
}
