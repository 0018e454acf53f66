#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Man pages format without a warning, and leave out no function, option or algorithm.
. "$(dirname "$0")/../lib/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for page in man/*.[1-9]; do
	if command -v groff >/dev/null; then
		ok "$page" silent groff -ww -t -mandoc -z "$page"
	else
		skip "$page" "groff is not installed"
	fi
done

ok "pages are installed" quiet sh man/install.sh "$work/man"

# unexplained LEAST FOUND: of the words that come in, those that FOUND does not find,
# a complaint if there are fewer than LEAST of them.
unexplained() {
	words=0
	while read -r word; do
		words=$((words + 1))
		"$2" "$word" || echo "$word"
	done
	[ $words -ge "$1" ] || echo "only $words words were found"
}

has_page() {
	[ -e "$work/man/man3/$1.3" ]
}

functions() {
	sed -n 's/^[a-z][a-z_0-9 ]*[ *]\(coll_[a-z_]*\)(.*/\1/p' libcoll/coll.h |
		grep -v '^coll_function$' | unexplained 80 has_page
}
ok "every function of coll.h has a page" silent functions

# One declaration a line, with single blanks.
declarations() {
	tr '\n\t' '  ' | sed 's/  */ /g; s/; */;\n/g; s/( /(/g' | grep 'coll_[a-z_]*(' | sort
}
in_header() {
	sed -e 's,/\*.*\*/,,' -e '/^ *\/\*/,/\*\//d' -e '/^#/d' -e 's/ COLL_MUST_CHECK//' libcoll/coll.h |
		sed -n '/^[a-z].*coll_[a-z_]*(/,/;/p' | declarations
}
in_synopsis() {	# the arguments of .BI stand side by side, and blanks count inside of quotes
	sed -s -n '/^\.SH SYNOPSIS/,/^\.SH DESCRIPTION/s/^\.BI //p' man/*.3 | grep -v '#define' |
		awk '{ n = split($0, part, "\""); line = ""
		       for (i = 1; i <= n; i++) {
			       if (i % 2) gsub(" ", "", part[i])
			       line = line part[i]
		       }
		       print line }' | declarations
}
same_declarations() {
	in_header >"$work/header"
	in_synopsis >"$work/synopsis"
	[ "$(wc -l <"$work/synopsis")" -gt 50 ] || echo "only some were found"
	comm -13 "$work/header" "$work/synopsis"
}
ok "each declaration in a page is that of coll.h" silent same_declarations

references() {
	cat man/*.3 | grep -Eo '^\.BR coll_[a-z_]+ \(3\)' | sed 's/^\.BR //; s/ .*//' | sort -u |
		unexplained 15 has_page
}
ok "every function that a page refers to has a page" silent references

in_overview() {
	sed 's/\\-/-/g' man/coll.7 | grep -Fqw -- "$1"
}

options() {
	sed -n '/^static const struct option table/,/^};/s/^\t{ "\([a-z_]*\)".*/\1/p' \
		libcoll/api/options.c | unexplained 10 in_overview
}
ok "every option of the library is in coll.7" silent options

in_table() {
	"$COLL" verify --list | awk -f man/algorithms.awk - man/coll.7 |
		sed -n '/^collective/,/^\.TE/p' | sed 's/\\-/-/g' | grep -Fqw -- "$1"
}
algorithms() {
	"$COLL" verify --list | awk '{ print $2 }' | sort -u | unexplained 10 in_table
}
ok "every algorithm is in coll.7 as it is installed" silent algorithms

# said_by COMMAND...: the options that its help lists.
said_by() {
	"$@" --help | grep -Eo '(^ +|, +)--[a-z-]+' | tr -d ' ,' | grep -vx -e --help | sort -u
}
in_page() {	# PAGE OPTION
	sed 's/\\-/-/g' "man/$1" | grep -Fqw -- "$2"
}
in_collnoise() {
	in_page collnoise.1 "$1"
}
in_colld() {
	in_page colld.8 "$1"
}
noise_options() {
	for command in measure predict report inject replay calibrate import export check pin; do
		said_by "$BUILD/collnoise" $command
	done | sort -u | unexplained 35 in_collnoise
}
ok "every option of collnoise is in its page" silent noise_options
colld_options() {
	said_by "$BUILD/colld" | unexplained 5 in_colld
}
ok "every option of colld is in its page" silent colld_options

tap_end
