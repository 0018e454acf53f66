#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# A new algorithm is one file and nothing else: it is built here from outside the tree, and
# found in the list, the choice, the verifier, the man page's table and the fast simulation.
. "$(dirname "$0")/../lib/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The dissemination barrier by another name, and said to cost half.
sed -e 's/coll_barrier_dissemination/coll_barrier_example/' -e '/^const struct coll_algo coll_barrier_world/,/^};/d' \
	-e 's/"dissemination"/"example"/' -e 's/log2_ceil(call->ranks) \*/0.5 * &/' \
	algo/barrier/dissemination.c >"$work/example.c"

# The objects that are there already are taken: only what is new is compiled.
mkdir "$work/build"
for part in flags core algo libcoll sim flit tools; do
	cp -a "$BUILD/$part" "$work/build/"
done
rm -f "$work/build/algo/list."*
ok "it compiles and is linked" quiet make --no-print-directory BUILD="$work/build" \
	EXTRA_ALGO="$work/example.c" "$work/build/coll"
COLL=$work/build/coll

like "coll verify lists it" "$("$COLL" verify --list)" "^barrier +example "
like "coll schedule prints it" "$("$COLL" schedule barrier example 5 --rank 0)" "send|recv"
ok "the verifier takes it" quiet "$COLL" verify --collective barrier --algorithm example --quick
"$COLL" sim barrier --ranks 4096 --json >"$work/out"
holds "it is chosen where it costs least" '.algorithms[0].algo == "example"'
holds "the fast simulation takes it" '.algorithms[0].path == "levels"'
table() {
	"$COLL" verify --list | awk -f man/algorithms.awk - man/coll.7 | grep '^barrier'
}
like "the man page's table has it" "$(table)" "example"
tap_end
