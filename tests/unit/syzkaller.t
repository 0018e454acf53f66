#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# syzkaller's descriptions of coll.ko, tests/vm/syzkaller: every command and attribute that user
# space may send is in them, with the header's number, and sizes are those of the structs.
. "$(dirname "$0")/../lib/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
text=tests/vm/syzkaller/coll.txt

tests/vm/syzkaller/consts >"$work/const"
ok "coll.txt.const is up to date" quiet diff "$text.const" "$work/const"

# Names of an enum, until what is only in replies.
names() {	# FILE ENUM LAST
	awk -v enum="$2" -v last="$3" '
	$1 == "enum" && $2 == enum { on = 1; next }
	$1 ~ "^" last "," { exit }
	on && /^}/ { exit }
	on && /^\tCOLL_/ { sub(/,.*/, "", $1); if ($1 !~ /UNSPEC|PAD/) print $1 }' "$1"
}
missing() {	# NAMES...: those that the descriptions do not have
	for name; do
		grep -v '^#' $text | grep -qw "$name" || echo "$name"
	done
}
netlink=uapi/coll_netlink.h
commands=$(names $netlink coll_command COLL_CMD_EVENT)
ok "the headers have commands" test "$(echo $commands | wc -w)" -gt 16
is "every command of the family" "$(missing $commands)" ""
is "every command of the file" "$(missing $(names uapi/coll_device.h coll_device_op -))" ""
is "every attribute of noise" "$(missing $(names $netlink coll_noise_attr COLL_NOISE_A_CPU)) $(missing COLL_NOISE_A_COST)" " "
is "every attribute of watches" "$(missing $(names $netlink coll_watch_attr COLL_WATCH_A_CPU)) $(missing COLL_WATCH_A_YIELDS COLL_WATCH_A_OWN COLL_WATCH_A_THREAD)" " "
is "every attribute of pinning" "$(missing $(names $netlink coll_pin_attr COLL_PIN_A_INDEX))" ""
is "every attribute of circuits" "$(missing $(names $netlink coll_circuit_attr COLL_CIRCUIT_A_PORT))" ""
is "every kind of op and message" "$(missing $(names uapi/coll_schedule.h coll_op_kind COLL_OP_KINDS) \
	$(names uapi/coll_wire.h coll_message_kind -))" ""

# Fields of each struct, in order: "coll_peer rank sends recvs zero".
fields() {	# FILE...
	awk '
	/^struct coll_[a-z_]+ \{|^coll_[a-z_]+ \{/ { name = $1 == "struct" ? $2 : $1; line = name; next }
	name && /^}/ { print line; name = ""; next }
	name && /^\t/ {
		gsub(/\/\*.*\*\//, "")
		sub(/\/\*.*/, "")
		if (FILENAME ~ /\.h$/) {
			if ($0 !~ /;/)
				next
			sub(/;.*/, "")
			sub(/^\t(struct )?[a-z_0-9]+ /, "")
			gsub(/\[[^]]*\]|,/, "")
			line = line " " $0
		} else
			line = line " " $1
	}' "$@" | tr -s ' \t' ' ' | sed 's/ $//'
}
fields $text | sed 's/^coll_schedule \(.*\) op peer wait$/coll_schedule \1/
	s/^coll_device_link .*/coll_device_link group rank fd next_run flags zero address bytes/' >"$work/described"
for header in device wire schedule noise; do	# without comments
	${CC:-gcc} -fpreprocessed -E -P "uapi/coll_$header.h" | sed 's/^ /\t/' >"$work/$header.h"
done
fields "$work"/*.h >"$work/headers"
ok "structs are described" test "$(wc -l <"$work/described")" -gt 14
is "with the fields of the headers, in their order" \
	"$(grep -vxF -f "$work/headers" "$work/described" | grep -v '^coll_address')" ""
tap_end
