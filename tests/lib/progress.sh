#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
# usage: progress.sh STATUS TOTAL PROVE ARGUMENT ...
#
# Runs prove and numbers its lines, "[ 37/214] tests/unit/...". prove's exit code passes through
# the file STATUS, since a pipe has the code of its last command.
status=$1
total=$2
shift 2
{
	"$@"
	echo $? >"$status"
} | {
	number=0
	while IFS= read -r line; do
		case $line in
		[!\ \#]*\ ..*)
			number=$((number + 1))
			printf '[%*d/%d] %s\n' ${#total} $number "$total" "$line" ;;
		*) printf '%s\n' "$line" ;;
		esac
	done
}
exit "$(cat "$status")"
