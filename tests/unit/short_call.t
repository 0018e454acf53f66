#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# The functions of libcoll/short_call exist, and are linked next to each other.
. "${0%/*}/../lib/tap.sh"
build=${BUILD:-build}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sed '/^#/d; /^$/d' libcoll/short_call | sort >"$work/names"
nm -n "$build/libcoll.so" | awk '$2 == "T" || $2 == "t" { print $3, $1 }' | sort >"$work/all"
cut -d' ' -f1 "$work/all" >"$work/functions"
is "each name is a function of the library" "$(comm -23 "$work/names" "$work/functions")" ""
is "each once" "$(uniq -d "$work/names")" ""
if [ -n "$SANITIZE" ] || ! grep -q -- ' -O[23]' "$build/flags" || grep -q -- -flto "$build/flags"; then
	skip "they lie in 8 pages" "this tree is compiled otherwise"
else
	join "$work/names" "$work/all" | cut -d' ' -f2 | cut -c 1-13 | sort -u >"$work/pages"
	ok "they lie in $(wc -l <"$work/pages") pages, at most 8" test "$(wc -l <"$work/pages")" -le 8
fi
tap_end
