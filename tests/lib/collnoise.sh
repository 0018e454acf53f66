# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# For scripts that test collnoise: sourced after tap.sh.
noise=$BUILD/collnoise
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# status EXPECTED ARGUMENT...: collnoise ends with this exit code.
status() {
	expected=$1
	shift
	exits "$expected" "$noise" "$@"
}

# refused PATTERN ARGUMENT...: collnoise refuses the arguments with a message like this.
refused() {
	said=$1
	shift
	ok "refused: collnoise $*" status 2 "$@"
	like "  with the reason" "$(cat "$work/err")" "$said"
}
