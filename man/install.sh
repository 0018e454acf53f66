#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
# usage: man/install.sh MANDIR
#
# Installs the pages, and for every other name a page is found by a link to it:
# the names in the page's NAME section, and all three forms of each collective.
# The table of algorithms in coll.7 is what coll verify --list says.
set -e
source=$(dirname "$0")
mandir=${1:?usage: man/install.sh MANDIR}

link() {	# NAME PAGE
	page=${2##*/}
	section=${page##*.}
	[ -e "$mandir/man$section/$1.$section" ] ||
		echo ".so man$section/$page" >"$mandir/man$section/$1.$section"
}

names() {	# PAGE: what its NAME section names
	sed -n '/^\.SH NAME/,/\\-/p' "$1" | sed '1d; s/\\-.*//; s/[,\\]/ /g; s/&//g'
}

for page in "$source"/*.[1-9]; do
	install -d "$mandir/man${page##*.}"
	install -m 644 "$page" "$mandir/man${page##*.}"
done
"${BUILD:-build}/coll" verify --list |
	awk -f "$source/algorithms.awk" - "$source/coll.7" >"$mandir/man7/coll.7"
for page in "$source"/*.3; do
	for name in $(names "$page"); do
		link "$name" "$page"
	done
done
for name in $(names "$source/coll_allreduce.3"); do
	link "coll_i${name#coll_}" coll_allreduce.3
	link "${name}_init" coll_allreduce.3
done
