#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# The pages of section 1 against the tables of options: each option with its default is there,
# and no page has an option that its commands do not take.
. "$(dirname "$0")/../lib/tap.sh"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# "--option default" of each option that --help lists; the default is empty if it is no word.
table() {	# PROGRAM COMMAND...
	table_program=$BUILD/$1
	shift
	"$table_program" "$@" --help | awk '
		function emit() {
			value = ""
			if (match(text, /[(; ]default [^ ;)]+\)/)) {
				value = substr(text, RSTART, RLENGTH)
				sub(/.*default /, "", value)
				sub(/\)$/, "", value)
			}
			if (value == "none" || value == "recognised") value = ""
			if (option != "") print option, value
			option = ""
		}
		/^  (-.,|   ) --/ { emit(); match($0, /--[a-z0-9-]+/)
			option = substr($0, RSTART, RLENGTH); text = $0; next }
		/^                    / { text = text " " $0; next }
		{ emit() }
		END { emit() }' | grep -v '^--help'
}
# Whether the page has the option as a heading, and the default within its text.
explains() {	# PAGE OPTION DEFAULT
	sed 's/\\-/-/g; s/\\f[A-Z]//g' "man/$1" | awk -v option="$2" -v value="$3" '
		/^\./ && match($0, option "([^a-z0-9-]|$)") { lines = 14; found = found || value == "" }
		lines > 0 { lines--; gsub(/ /, ""); if (index($0, value)) found = 1 }
		END { exit !found }'
}
unexplained() {	# PAGE PROGRAM COMMAND...
	page=$1
	shift
	table "$@" >"$work/table"
	[ -s "$work/table" ] || { echo "# no options: $*"; return; }
	cut -d ' ' -f 1 "$work/table" >>"$work/$page"
	while read -r option value; do
		explains "$page" "$option" "$value" || echo "# $*: $option, default '$value'"
	done <"$work/table"
}
page() {	# PAGE COMMAND...
	said=$(unexplained "$@")
	shift
	ok "$*: its page has each option and its default" test -z "$said"
	[ -z "$said" ] || echo "$said"
}
# What the page lists and its commands do not take: but --list of coll verify, --mpi of srun,
# --wan-... for several.
unknown() {	# PAGE
	sed 's/\\-/-/g; s/\\f[A-Z]//g' "man/$1" | sed -n '/^\.SH OPTIONS/,/^\.SH EXAMPLE/p' |
		grep -E '^\.(B|BR|BI|I|IR|RB) ' | grep -Eo -- '(^| |")--[a-z][a-z0-9-]+' |
		tr -d ' "' | sort -u | grep -vxF -f "$work/$1" | grep -vx -e --help -e --check -e --list -e --mpi -e --wan-
}
known() {	# PAGE
	said=$(unknown "$1")
	ok "$1: no option that is not taken" test -z "$said"
	[ -z "$said" ] || echo "$said" | sed 's/^/# /'
}

for command in bench circuit doctor lab report run schedule show sim tune verify wan; do
	page "coll-$command.1" coll $command
done
page coll-bench.1 coll bench overlap
page coll-sim.1 coll sim replay
page coll-sim-circuit.1 coll sim circuit
page coll-sim-flit.1 coll sim flit
for command in calibrate check export import inject latency measure nodes pin predict record replay report; do
	page collnoise.1 collnoise $command
done
for file in man/coll-*.1 man/collnoise.1; do
	known "${file#man/}"
done
tap_end
