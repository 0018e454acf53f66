# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# For scripts that need coll lab: sourced after tap.sh. Skips all where there are no namespaces.
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

if ! "$COLL" lab -c 1 -t 10 -- true 2>"$work/why"; then
	echo "1..0 # SKIP no network namespaces here: $(head -1 "$work/why")"
	exit 0
fi
