#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
# core/ needs nothing of the world but memcpy, memmove, memset and memcmp: the
# kernel takes it as it is. No libgcc either.

objects=${BUILD:-build}/freestanding/core

set -- "$objects"/*.o "$objects"/*/*.o
if [ ! -e "$1" ]; then
	echo "1..1"
	echo "not ok 1 - no objects in $objects"
	exit 1
fi

echo "1..$#"
defined=$(nm --defined-only --format=posix "$@" | awk 'NF > 1 { print $1 }')
allowed="memcpy memmove memset memcmp coll_assert_failed $(echo $defined)"
number=0
failed=0
for object in "$@"; do
	number=$((number + 1))
	foreign=
	for symbol in $(nm --undefined-only --format=posix "$object" | awk '{ print $1 }'); do
		case " $allowed " in
		*" $symbol "*) ;;
		*) foreign="$foreign $symbol" ;;
		esac
	done
	if [ -z "$foreign" ]; then
		echo "ok $number - ${object##*/}"
	else
		echo "not ok $number - ${object##*/} needs$foreign"
		failed=1
	fi
done
exit $failed
