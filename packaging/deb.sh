#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
# usage: packaging/deb.sh FOLDER
#
# Builds Debian's packages of what git tracks (in an unpacked archive: of all files) into FOLDER.
# It installs nothing: make deb has what it needs.
set -e
folder=$(realpath -m "${1:?usage: packaging/deb.sh FOLDER}")
cd "$(dirname "$0")/.."
version=$(sed -n '1s/^coll (\(.*\)).*/\1/p' debian/changelog)
source=$folder/coll-$version

rm -rf "$folder"
mkdir -p "$source"
{ git ls-files 2>/dev/null | grep . || find . -type f ! -path './build/*' ! -path './.git/*'; } |
	tar -cf - --no-recursion -T - | tar -xf - -C "$source"
cd "$source"
dpkg-buildpackage -us -uc "-j${JOBS:-2}" >"$folder/log" 2>&1 || {
	tail -40 "$folder/log" >&2
	exit 1
}
cd "$folder"
rm -rf "$source"
ls ./*.deb
