#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
# Includes and calls go down the floors that the table beside this file lists: no file
# includes, and no object calls, what its folder's line does not name. A call is a symbol
# that an object wants and another folder's object defines; the symbol's address counts too.
. "${0%/*}/../lib/tap.sh"
table=${0%/*}/floors
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

find uapi core algo libcoll kmod sim flit node daemon tools mpi bindings -name '*.[ch]' |
	LC_ALL=C sort >"$work/sources"
sed 's|/[^/]*$||' "$work/sources" | sort -u >"$work/folders"

# The table by folders that exist, one line a fact: "may A B", "line PATTERN".
awk -v folders="$work/folders" '
function like(name, pattern) {
	gsub(/\*/, "[^/]*", pattern)
	return name ~ ("^" pattern "$")
}
BEGIN { while ((getline name <folders) > 0) exists[name] }
/^#/ || !NF { next }
{
	line = $0
	split(line, half, /:[ \t]*/)
	print "line", half[1]
	wants[half[1]] = half[2]
}
END {
	for (name in exists) {
		by = name in wants ? name : ""
		for (pattern in wants)
			if (by == "" && pattern ~ /\*/ && like(name, pattern))
				by = pattern
		if (by == "") {
			print "unlisted", name
			continue
		}
		print "listed", by
		n = split(wants[by], want, " ")
		for (i = 1; i <= n; i++)
			for (other in exists)
				if (other != name && like(other, want[i]))
					print "may", name, other
	}
}' "$table" | LC_ALL=C sort -u >"$work/facts"

# Includes, one a line: FOLDER FILE:LINE OTHER-FOLDER. Names are of the same folder, of the
# tree, or of uapi/; the one generated header belongs to where its rule puts it.
xargs grep -HnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' <"$work/sources" |
	awk -F '"' -v sources="$work/sources" '
function folder(path) { sub(/\/?[^\/]*$/, "", path); return path }
BEGIN { while ((getline name <sources) > 0) exists[name] }
{
	split($1, at, ":")
	here = folder(at[1])
	if ((here "/" $2) in exists)
		other = folder(here "/" $2)
	else if ($2 in exists)
		other = folder($2)
	else if (("uapi/" $2) in exists)
		other = "uapi"
	else
		other = $2 == "netlink_names.h" ? here : "nowhere:" $2
	if (other != here)
		print here, at[1] ":" at[2], other
}' >"$work/includes"

for header in libcoll/coll.h libcoll/shim.h; do
	gcc -E -P -iquote . -Iuapi -D_GNU_SOURCE "$header" 2>/dev/null
done | grep -o '\bcoll_[a-z0-9_]*(' | tr -d '(' | sort -u >"$work/declared"

# Calls, one a line: FOLDER OBJECT:SYMBOL OTHER-FOLDER, within the programs and within the
# module. Objects whose source is gone do not count.
for world in . module; do
	(cd "$BUILD/$world" 2>/dev/null && find core algo libcoll kmod sim flit node daemon \
		tools mpi bindings -name '*.o' 2>/dev/null | sort) | while read -r object; do
		source=$(echo "${object%.o}.c" | sed 's|^mpi/[^/]*/|mpi/|')
		[ -e "$source" ] && echo "$object"
	done >"$work/objects"
	[ -s "$work/objects" ] || continue
	(cd "$BUILD/$world" && xargs nm -A -P) <"$work/objects" 2>/dev/null |
		awk -v declared="$work/declared" '
	function folder(path) {
		sub(/\/[^\/]*$/, "", path)
		return path ~ /^mpi\// ? "mpi" : path
	}
	BEGIN { while ((getline name <declared) > 0) public[name] }
	{ sub(/:$/, "", $1) }
	$3 ~ /[TDBRVWC]/ { places[$2] = places[$2] " " folder($1) }
	$3 == "U" { calls[$1 ":" $2] }
	END {
		for (call in calls) {
			split(call, part, ":")
			here = folder(part[1])
			n = split(places[part[2]], place, " ")
			if (!n || index(places[part[2]] " ", " " here " "))
				continue
			other = place[1]
			if (part[2] in public && other ~ /^libcoll/ && here !~ /^libcoll/)
				other = "libcoll"
			print here, call, other
		}
	}'
done | sort -u >"$work/calls"

# Calls within a folder, one a line: FOLDER FILE FILE.
for world in . module; do
	(cd "$BUILD/$world" 2>/dev/null && sed 's/c$/o/' "$work/sources" | grep 'o$' |
		while read -r object; do [ ! -e "$object" ] || echo "$object"; done |
		xargs -r nm -A -P) 2>/dev/null | awk '
	{ sub(/:$/, "", $1) }
	$3 ~ /[TDBRC]/ { home[$2] = $1 }
	$3 == "U" { calls[$1 " " $2] }
	END {
		for (call in calls) {
			split(call, part, " ")
			from = part[1]
			to = other = home[part[2]]
			sub(/[^\/]*$/, "", from)
			sub(/[^\/]*$/, "", to)
			if (from == to && other != part[1])
				print substr(from, 1, length(from) - 1), part[1], other
		}
	}'
done | sort -u >"$work/within"

# not_allowed FOLDER FILE: lines of the FILE that no fact allows.
not_allowed() {
	awk -v here="$1" '
	NR == FNR { if ($1 == "may" && $2 == here) may[$3]; next }
	$1 == here && !($3 in may) { print $2, "of", $3 }' "$work/facts" "$work/$2"
}

none_of() {
	not_allowed "$@" >"$work/out"
	[ -s "$work/out" ] || return 0
	head -20 "$work/out" | sed 's/^/# /'
	return 1
}

# Folders that nobody uses, or that use nobody, are taken away until there is none: what is
# left is in a circle, or between two.
circle() {	# FACT ...: "may A B"
	printf '%s\n' "$@" | awk '
	$1 == "may" { uses[$2, $3]; floor[$2]; floor[$3] }
	END {
		do {
			again = 0
			split("", used)
			split("", user)
			for (pair in uses) {
				split(pair, part, SUBSEP)
				if (part[1] in floor && part[2] in floor) {
					user[part[1]]
					used[part[2]]
				}
			}
			for (name in floor)
				if (!(name in used) || !(name in user)) {
					delete floor[name]
					again = 1
				}
		} while (again)
		for (name in floor)
			print name " is in a circle"
	}'
}

file_circle() {	# FOLDER
	circle "$(awk -v here="$1" '$1 == here { print "may", $2, $3 }' "$work/within")"
}

built() {
	set -- "$BUILD/$1"/*.o "$BUILD/$1"/*/*.o "$BUILD/module/$1"/*.o
	for object; do
		[ ! -e "$object" ] || return 0
	done
	return 1
}

unlisted() { sed -n 's/^unlisted //p' "$work/facts"; }

of_nothing() {
	grep '^line' "$work/facts" | while read -r word pattern; do
		grep -qxF "listed $pattern" "$work/facts" ||
			echo "$pattern: no such folder"
	done
}

ok "every folder with sources has a line" silent unlisted
ok "every line is of a folder" silent of_nothing
ok "the table has no circle" silent circle "$(cat "$work/facts")"
for folder in $(awk '/^(libcoll|kmod|daemon)/ { print $1 }' "$work/within" | sort -u); do
	ok "no circle of calls between the files of $folder" silent file_circle "$folder"
done
while read -r folder; do
	ok "$folder includes what its line names" none_of "$folder" includes
	if ls "$folder"/*.c >/dev/null 2>&1; then
		if built "$folder"; then
			ok "$folder calls what its line names" none_of "$folder" calls
		else
			skip "$folder calls what its line names" "not built"
		fi
	fi
done <"$work/folders"
tap_end
