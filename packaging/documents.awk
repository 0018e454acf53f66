# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
# usage: awk -v page=docs/guide/mpi.md -f packaging/documents.awk INSTALLED PAGE
#
# A page as it is installed: a link to a file that is not in the list INSTALLED, of paths from the top of the tree,
# is text, with the path unless the text names the file. A page of the manual is found by man.

# The target of a link in this page, as a path from the top of the tree.
function from_top(link,	part, count, kept, i, path) {
	sub(/#.*/, "", link)
	path = page
	if (!sub(/\/[^\/]*$/, "/", path))
		path = ""
	count = split(path link, part, "/")
	for (i = 1; i <= count; i++)
		if (part[i] == "..")
			kept--
		else if (part[i] != "" && part[i] != ".")
			part[++kept] = part[i]
	path = part[1]
	for (i = 2; i <= kept; i++)
		path = path "/" part[i]
	return path
}

function is_there(link) {
	return link ~ /^(#|[a-z]+:)/ || (from_top(link) in installed)
}

# What is read instead of a link to a file that is not there.
function plain(text, link,	path, name) {
	path = from_top(link)
	name = path
	sub(/.*\//, "", name)
	return path ~ /^man\// || index(text, name) ? text : text " (`" path "` of the source)"
}

# The "[" that the last "]" of the text closes: texts of links may have pairs of their own.
function opening(text,	i, open) {
	for (i = length(text); i > 0; i--) {
		open += (substr(text, i, 1) == "]") - (substr(text, i, 1) == "[")
		if (!open)
			return i
	}
	return 0
}

FNR == NR { installed[$0]; next }
{ all = all $0 "\n" }

END {
	while (match(all, /\]\([^) \n]+\)/)) {
		before = substr(all, 1, RSTART)
		link = substr(all, RSTART + 2, RLENGTH - 3)
		whole = substr(all, RSTART + 1, RLENGTH - 1)
		all = substr(all, RSTART + RLENGTH)
		at = opening(before)
		if (!at || is_there(link))
			printf "%s%s", before, whole
		else
			printf "%s%s", substr(before, 1, at - 1),
				plain(substr(before, at + 1, length(before) - at - 1), link)
	}
	printf "%s", all
}
