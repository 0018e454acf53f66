#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
# usage: coverage.sh BUILD
#
# Which lines of core/, algo/ and libcoll/ the programs in BUILD have run, which were compiled with
# --coverage: a table of folders, and BUILD/uncovered with all lines that none has run. Fails
# below the limits: 95 % of core/ and of algo/, 85 % of libcoll/.
build=$1

# A line of code that several objects have, such as one of a header, counts once.
find "$build/core" "$build/algo" "$build/libcoll" -name '*.gcno' | sort |
	xargs gcov --stdout 2>/dev/null | awk -F: -v list="$build/uncovered" '
function place(path, parts, count) {	# core algo libcoll/link ...
	count = split(path, parts, "/")
	return parts[1] == "libcoll" && count > 2 ? parts[1] "/" parts[2] : parts[1]
}
$2 + 0 == 0 {
	if ($3 == "Source")
		file = $4
	next
}
file !~ /^(core|algo|libcoll)\// { next }
{
	gsub(/[ *]/, "", $1)
	if ($1 == "-")
		next
	at = file ":" $2 + 0
	if (!(at in code)) {
		order[++lines] = at
		path[at] = file
		text[at] = substr($0, index($0, ":") + 7)
	}
	code[at] += $1 !~ /^[#=%$]/
}
END {
	for (i = 1; i <= lines; i++) {
		at = order[i]
		folder = place(path[at])
		top = folder
		sub(/\/.*/, "", top)
		if (!(folder in all))
			folders[++count] = folder
		all[folder]++
		run[folder] += code[at] > 0
		if (top != folder) {
			all[top]++
			run[top] += code[at] > 0
		}
		if (!code[at])
			print at ": " text[at] >list
	}
	folders[++count] = "libcoll"
	limit["core"] = limit["algo"] = 95
	limit["libcoll"] = 85
	for (i = 1; i <= count; i++) {
		folder = folders[i]
		share = all[folder] ? 100 * run[folder] / all[folder] : 0
		short = folder in limit && share < limit[folder]
		failed += short
		printf "%-20s %6d of %6d lines  %5.1f %%%s\n", folder, run[folder], all[folder], share, \
			short ? "  below " limit[folder] " %" : ""
	}
	print "the others: " list
	exit failed > 0
}'
