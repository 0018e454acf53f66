#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
# usage: one_test.sh TEST [ARGUMENT ...]
#
# Runs a test for prove: for half an hour at most. prove shows of a test that fails only its number, and
# `make check` runs it again, alone, where it may pass: so what failed is said here, on stderr, which prove
# passes on.
said=$(mktemp) || exit 1
trap 'rm -f "$said" "$said.code"' EXIT
{
	timeout -k 5 1800 "$@"
	echo $? >"$said.code"
} | tee "$said"
code=$(cat "$said.code")
{
	awk '/^not ok/ { left = 8; print } /^#/ && left-- > 0 { print } /^ok/ { left = 0 }' "$said" | head -80
	[ "$code" -eq 0 ] || { echo "exit code $code; the last it said:"; tail -5 "$said"; }
} | sed "s|^|$1: |" >&2
exit "$code"
