#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# The documents hold together: links lead somewhere, every page is reachable, paths exist.
. "$(dirname "$0")/../lib/tap.sh"
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
pages="$(find docs -name '*.md' | sort) $(ls ./*.md | sed 's,^\./,,')"

# text FILE: the page without its blocks of code.
text() {
	awk '/^ *```/ { code = !code; next } !code && !/^    /' "$1"
}

# links FILE: the relative links and pictures of a page, from the top of the tree.
links() {
	text "$1" | grep -Eo '\]\([^) ]+\)' | sed 's/^](//; s/)$//; s/#.*//' |
		grep -Ev '^([a-z]+:|$)' | while read -r link; do
		realpath -m --relative-to=. "$(dirname "$1")/$link"
	done
}

for page in $pages; do
	links "$page" | sort -u | sed "s,^,$page ," >>"$work/links"
done

dead() {
	while read -r page link; do
		[ -e "$link" ] || echo "$page: $link does not exist"
	done <"$work/links"
}
ok "every relative link leads to a file" silent dead

# anchors FILE: of the headings of a page, as GitHub makes them.
anchors() {
	text "$1" | sed -n 's/^#\{1,6\} //p' | tr '[:upper:]' '[:lower:]' |
		sed 's/[`*]//g; s/[^[:alnum:]_ -]//g; s/ /-/g'
}
lost_anchors() {
	for page in $pages; do
		text "$page" | grep -Eo '\]\([^):]*#[^)]+\)' | sed 's/^](//; s/)$//' |
			while read -r link; do
			file=${link%%#*}
			[ -n "$file" ] && file=$(dirname "$page")/$file || file=$page
			[ -e "$file" ] || continue
			anchors "$file" | grep -Fqx -- "${link#*#}" ||
				echo "$page: $link: there is no such heading"
		done
	done
}
ok "every link into a page finds its heading" silent lost_anchors

# Follows links from the README until nothing new is found.
unreachable() {
	echo README.md >"$work/reached"
	while :; do
		awk 'NR == FNR { reached[$1] = 1; next } $1 in reached { print $2 }' \
			"$work/reached" "$work/links" | cat - "$work/reached" | sort -u >"$work/more"
		cmp -s "$work/more" "$work/reached" && break
		mv "$work/more" "$work/reached"
	done
	for page in $pages; do
		grep -Fqx "$page" "$work/reached" || echo "no link leads from the README to $page"
	done
}
ok "every page is reachable from the README" silent unreachable

unused() {
	for picture in docs/pictures/*; do
		grep -Fq " $picture" "$work/links" || echo "no page shows $picture"
	done
}
ok "every picture is shown" silent unused

# A word in backticks is a path if it begins with a folder of the tree.
folders='algo|bindings|core|daemon|debian|docs|examples|flit|kmod|libcoll|man|mpi|node|packaging|sim|tests|tools|uapi'
missing_paths() {
	for page in $pages; do
		text "$page" | grep -Eo '`[^` ]+`' | tr -d '\140' |
			grep -E "^($folders)/[a-zA-Z0-9_./-]*[a-zA-Z0-9_/-]$" | sort -u | while read -r path; do
			# A test is named as it is run: tests/vm/exact.t, tests/mpi/call_overhead.
			[ -e "$path" ] || [ -e "$path.c" ] || [ -e "$path.sh" ] || echo "$page: $path does not exist"
		done
	done
}
ok "every path in the text exists" silent missing_paths

# A name with () in backticks is a function of the tree, or one that the tree calls.
sources='algo bindings core daemon flit kmod libcoll mpi node sim tools uapi'
missing_functions() {
	for page in $pages; do
		text "$page" | grep -Eo '`[a-z_0-9]+\(\)`' | tr -d '\140()' | sort -u | sed "s,^,$page ,"
	done | while read -r page function; do
		grep -rqw --include='*.[ch]' "$function" $sources ||
			echo "$page: $function() does not exist"
	done
}
ok "every function in the text exists" silent missing_functions

# Commands are run by tests/multi/guides.t, or say why not, where a reader does not see it.
unexplained() {
	for page in docs/guide/*.md; do
		awk -v page="$page" '
		/<!-- not run/ && !/^<!-- not run: .* -->$/ { print page ": " $0 }
		/<!-- not run/ { marked = 1; reason = $0; next }
		marked && !/^```sh$/ { print page ": a mark without a block: " $0 }
		marked && match(reason, /tests\/[a-z_\/]*[.](t|sh)/) && system("test -e " substr(reason, RSTART, RLENGTH)) {
			print page ": there is no " substr(reason, RSTART, RLENGTH)
		}
		{ marked = 0 }' "$page"
	done
}
ok "a command that no test runs says why" silent unexplained

tap_end
