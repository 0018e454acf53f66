#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# The order of stores and loads in libcoll/engine/ring.c and exposed.c, by herd7's models of ARMv8 and of
# C11 (RC11): what a file says must not be is not in any execution. With what its line Weaker
# makes of it, it is: so the file asks for what is needed. RC11 has no execution in which loads see
# stores that follow them, with whatever order, so two files have no such line there.
#
# HERD7="PROGRAM OPTIONS": another herd7 than the one that is installed. Debian 12 has none.
. "${0%/*}/../lib/tap.sh"
herd=${HERD7:-herd7}
# shellcheck disable=SC2086
if ! $herd -version >/dev/null 2>&1; then
	echo "1..0 # SKIP herd7 is not installed: opam install herdtools7, or HERD7="
	exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

seen() {	# FILE: Never, Sometimes or Always
	case $1 in
	*.c11.litmus) model='-model rc11.cat' ;;
	*) model= ;;
	esac
	# shellcheck disable=SC2086
	$herd $model "$1" 2>&1 | sed -n 's/^Observation [a-z_]* \([A-Z][a-z]*\) .*/\1/p'
}

for file in "${0%/*}"/*.litmus; do
	name=$(basename "$file" .litmus)
	is "$name: $(sed -n 's/^"\(.*\)"$/\1/p' "$file")" "$(seen "$file")" Never
	weaker=$(sed -n 's/^Weaker=//p' "$file")
	[ "$weaker" ] || continue
	sed "$weaker" "$file" >"$work/$name.litmus"
	is "... not with less order" "$(seen "$work/$name.litmus")" Sometimes
done
tap_end
