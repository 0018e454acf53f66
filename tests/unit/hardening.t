#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# What is installed is hardened: read-only relocations, all symbols bound at the start, no
# executable stack, stack protector, checked string functions; programs at any address. Libraries bring
# along only what they call.
. "${0%/*}/../lib/tap.sh"

has() {		# FILE READELF-OPTION PATTERN
	LC_ALL=C readelf -W "$2" "$1" 2>&1 | grep -Eq -- "$3"
}

lacks() {
	! has "$@"
}

for name in coll collnoise colld libcoll.so.0 mpi/openmpi/libcollmpi.so mpi/mpich/libcollmpi.so \
	mpi/mpi/libcollmpi.so; do
	file=$BUILD/$name
	case $name in
	mpi/*) [ -e "$file" ] || continue ;;
	*.so*) ;;
	*) ok "$name: position-independent" has "$file" -d 'FLAGS_1.*PIE' ;;
	esac
	ok "$name: read-only relocations" has "$file" -l '^ +GNU_RELRO'
	ok "$name: bound at the start" has "$file" -d 'FLAGS_1.*NOW'
	ok "$name: no executable stack" has "$file" -l '^ +GNU_STACK .* RW +0x'
	case $name in
	*.so*) ok "$name: needs no library of the tools" lacks "$file" -d 'NEEDED.*(jansson|curl|microhttpd|libnl)' ;;
	esac
	ok "$name: stack protector" has "$file" --dyn-syms ' __stack_chk_fail(@|$| )'
	ok "$name: checked string functions" has "$file" --dyn-syms ' __(mem|str|s|vs|sn|vsn|f)[a-z]*_chk'
done
tap_end
