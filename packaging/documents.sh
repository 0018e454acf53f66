#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
# usage: packaging/documents.sh FOLDER
#
# Installs README.md and the pages and pictures that it leads to, with links to what is there.
set -e
umask 022
folder=${1:?usage: packaging/documents.sh FOLDER}
cd "$(dirname "$0")/.."
list=$(mktemp)
trap 'rm -f "$list"' EXIT

{
	ls README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md COPYING packaging/grafana.json
	find docs examples -type f \( -name '*.md' -o -name '*.svg' -o -name '*.[ch]' -o -name '*.cc' -o -name '*.py' \
		-o -name Makefile -o -name CMakeLists.txt \)
} | sort >"$list"

for file in $(cat "$list"); do
	install -d "$folder/${file%"${file##*/}"}"
	case $file in
	*.md) awk -v page="$file" -f packaging/documents.awk "$list" "$file" >"$folder/$file" ;;
	*) install -m 644 "$file" "$folder/$file" ;;
	esac
done
