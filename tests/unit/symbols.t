#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
# Names that a backtrace or a linker shows: the library's begin with coll_, the module's with
# kcoll_, those of node/ with node_, the Python module's with pycoll_; none is one bare word, and a struct tag means one thing in
# a program.
. "${0%/*}/../lib/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

external() {	# OBJECT ...: "object symbol" of what it defines for others
	nm -A -P --defined-only --extern-only "$@" 2>/dev/null | awk '{ sub(/:$/, "", $1); print $1, $2 }'
}

sources() {	# FOLDER ...
	find "$@" -name '*.[ch]' 2>/dev/null | LC_ALL=C sort
}

# Objects whose source is gone do not count.
objects() {	# ROOT FOLDER ...
	root=$1
	shift
	sources "$@" | sed -n 's/c$/o/p' | while read -r object; do
		[ ! -e "$root/$object" ] || echo "$root/$object"
	done
}

ok "the library has symbols" test "$(external "$BUILD/libcoll.a" | wc -l)" -gt 100
# The linker's own, of static probes.
foreign() { external "$BUILD/libcoll.a" | grep -v -e ' coll_' -e ' _\.stapsdt\.base$'; }
ok "the library's begin with coll_" silent eval '! foreign'

node_foreign() { external $(objects "$BUILD" node) | grep -Ev ' (node|netlink)_'; }
ok "what colld and collnoise share begins with node_ or netlink_" silent eval '! node_foreign'

binding_foreign() { external $(objects "$BUILD" bindings) | grep -Ev ' (pycoll_|PyInit__coll$)'; }
ok "the Python module's begin with pycoll_" silent eval '! binding_foreign'

# What the kernel's macros make of tracepoints and of module_init() has the kernel's names.
module_foreign() {
	external $(objects "$BUILD/module" kmod) |
		grep -Ev ' (kcoll_|init_module$|cleanup_module$|__(tracepoint|traceiter|SCK__|SCT__|SCK|bpf_|probestub|cfi_|pfx_|export|UNIQUE))'
}
if [ -e "$BUILD/module/coll.ko" ]; then
	ok "the module's begin with kcoll_" silent eval '! module_foreign'
else
	skip "the module's begin with kcoll_" "make module comes first"
fi

# A definition: its name stands in the first column's line, after the type.
bare_functions() {	# FOLDER
	sources "$1" | xargs awk '
	/^[a-z][a-zA-Z0-9_ ]*[ *][a-z0-9]+\(/ && !/;[ \t]*$/ && !/^(return|else|typedef|extern)/ {
		line = $0
		sub(/\(.*/, "", line)
		sub(/.*[ *]/, "", line)
		if (line != "main" && line !~ /^(if|for|while|switch|sizeof)$/)
			print FILENAME ":" FNR ": " line "()"
	}'
}
for part in core algo libcoll kmod sim flit node daemon tools mpi bindings; do
	ok "$part: no function is one bare word" silent bare_functions $part
done

# A program: the folders that it is linked from. Tags of one file alone count as well, since a
# debugger knows all of them.
twice() {	# FOLDER ...
	sources "$@" | xargs awk '
	/^struct [a-z_0-9]+ \{/ {
		if ($2 in at)
			print FILENAME ":" FNR ": struct " $2 " is also in " at[$2]
		else
			at[$2] = FILENAME ":" FNR
	}'
}
ok "a tag means one thing in libcoll" silent twice uapi core algo libcoll
ok "... in coll.ko" silent twice uapi core kmod
ok "... in coll" silent twice uapi core algo libcoll sim flit node $(find tools -mindepth 1 -type d ! -path '*/noise*')
ok "... in collnoise" silent twice uapi core algo libcoll sim node tools/noise
ok "... in colld" silent twice uapi core algo libcoll node daemon
ok "... in libcollmpi" silent twice uapi core algo libcoll mpi

# A longer file holds two nouns, or says at its head why it is one: "Length: reason".
too_long() {	# FOLDER
	sources "$1" | while read -r file; do
		lines=$(wc -l <"$file")
		[ "$lines" -le 600 ] || head -60 "$file" | grep -q 'Length: ' ||
			echo "$file: $lines lines, and no \"Length: reason\" at its head"
	done
}
for part in uapi core algo libcoll kmod sim flit node daemon tools mpi bindings $(ls -d tests/*/ | sed 's,/$,,'); do
	ok "$part: files above 600 lines say why" silent too_long $part
done
tap_end
