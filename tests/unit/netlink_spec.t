#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# uapi/coll.yaml, the YNL spec of the netlink family, is generated from the headers and up to
# date. YNL numbers attributes and commands by counting: these numbers are the compiler's.
. "$(dirname "$0")/../lib/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

awk -f node/netlink_spec.awk uapi/coll_noise.h uapi/coll_circuit.h uapi/coll_netlink.h >"$work/coll.yaml"
ok "uapi/coll.yaml is up to date: make spec changes nothing" quiet diff uapi/coll.yaml "$work/coll.yaml"

# "COLL_WATCH_A_CPUS 1" for each attribute and command of the spec.
awk '
	function upper(name) { gsub(/-/, "_", name); return toupper(name) }
	/^[a-z]/ { section = $1 }
	section == "attribute-sets:" && /^    name: / { set = $2; count = 0 }
	section == "attribute-sets:" && /^        name: / { print "COLL_" upper(set) "_A_" upper($2), ++count }
	section == "operations:" && /^      name: / { print "COLL_CMD_" upper($2), ++commands }
' uapi/coll.yaml >"$work/numbers"
ok "the spec has attributes and commands" test "$(wc -l <"$work/numbers")" -gt 60
is "... as many as the header" "$(wc -l <"$work/numbers")" \
	"$(grep -cE '^	COLL_([A-Z]+_A|CMD)_[A-Z_]+( = 1)?,' uapi/coll_netlink.h |
		awk '{ print $1 - 5 }')"
{
	echo '#include "uapi/coll_netlink.h"'
	awk '{ printf "_Static_assert(%s == %d, \"%s\");\n", $1, $2, $1 }' "$work/numbers"
} >"$work/numbers.c"
ok "... with the numbers of the header" quiet ${CC:-gcc} -I. -fsyntax-only "$work/numbers.c"
ok "every enum has its values" silent eval '! grep "entries: \[ *\]" uapi/coll.yaml'
ok "every attribute has a type" test "$(grep -c 'type: unused' uapi/coll.yaml)" = 0
tap_end
