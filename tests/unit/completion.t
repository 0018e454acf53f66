#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# The completion of bash offers what the tables of options say; that of zsh is well formed.
. "$(dirname "$0")/../lib/tap.sh"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

for program in coll collnoise; do
	"$BUILD/$program" completion bash >"$work/$program.bash"
	"$BUILD/$program" completion zsh >"$work/_$program"
	# shellcheck disable=SC1090
	. "$work/$program.bash"
	if command -v zsh >/dev/null; then
		ok "$program: zsh reads its script" quiet zsh -n "$work/_$program"
	else
		skip "$program: zsh reads its script" "zsh is not installed"
	fi
done

# offers WHAT WANTED WORD...: the words, of which the last is being typed.
offers() {
	what=$1 wanted=$2
	shift 2
	COMP_WORDS=("$@")
	COMP_CWORD=$(($# - 1))
	"_$1"
	is "$what" "${COMPREPLY[*]}" "$wanted"
}
offers "a command" bench coll b
offers "a command of collnoise" "record report replay" collnoise re
offers "a collective" "alltoall alltoallv" coll bench allto
offers "a subcommand beside collectives" overlap coll bench o
offers "an option" "--engine" coll bench allreduce --en
offers "a value" "uring" coll bench allreduce --engine u
offers "values of a subcommand's option" "shared own kernel" coll bench overlap --place ""
offers "options of a subcommand" "--place --pace --plot" coll bench overlap --p
offers "a collective as value" "reduce_scatter reduce_scatter_block" coll bench overlap --collective reduce_
offers "actions" "check init fini suggest" collnoise pin ""
offers "launchers" "ssh srun" collnoise nodes --launcher s
offers "formats" "capture netgauge osnoise ftq csv" collnoise export --to ""

# every option of each command, as its help has them
all_options() {	# PROGRAM COMMAND...
	"$BUILD/$1" "${@:2}" --help | sed -n 's/^  \(-.,\|   \) --\([a-z0-9-]*\).*/--\2/p' | sort
}
offered() {
	COMP_WORDS=("$@" --)
	COMP_CWORD=$#
	"_$1"
	printf '%s\n' "${COMPREPLY[@]}" | sort
}
for command in "coll bench" "coll bench overlap" "coll circuit" "coll lab" "coll run" "coll schedule" \
	"coll completion" "coll sim" "coll sim replay" "coll sim circuit" "coll sim flit" "coll tune" "coll verify" "coll wan" \
	"collnoise measure" "collnoise nodes" "collnoise record" "collnoise inject" "collnoise replay" \
	"collnoise predict" "collnoise pin" "collnoise check" "collnoise calibrate" \
	"collnoise import" "collnoise export" "collnoise report"; do
	# shellcheck disable=SC2086
	is "all options of $command" "$(offered $command)" "$(all_options $command)"
done
offers "shells" "bash zsh" coll completion ""
for program in coll collnoise; do
	like "$program completion --help" "$("$BUILD/$program" completion --help 2>&1)" "^usage: .*coll completion bash"
done
for command in bench "bench overlap" completion; do
	# shellcheck disable=SC2086
	is "coll help $command is its --help" "$("$BUILD/coll" help $command 2>&1)" "$("$BUILD/coll" $command --help)"
done
ok "two shells are refused" exits 2 "$BUILD/coll" completion bash zsh
ok "another shell is refused" exits 2 "$BUILD/coll" completion fish
ok "by name" found "'fish'; valid: bash, zsh" err
tap_end
