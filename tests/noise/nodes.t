#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# collnoise nodes puts nodes side by side and names those that differ from the others.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/collnoise.sh"

# capture NAME US: one second of a CPU with an event of US every 10 ms.
capture() {
	awk -v us="$2" 'BEGIN { print "# noise"; for (i = 0; i < 100; i++) print i * 10000000 "\t" us * 1000
		print "# Measurement period: 1 s" }' >"$work/$1.txt"
	status 0 import -o "$work/$1" "$work/$1.txt" || cat "$work/err" >&2
}

for name in a b c d; do
	capture $name 10
done
capture odd 300

ok "nodes that are alike" status 0 nodes "$work/a" "$work/b" "$work/c" "$work/d"
ok "none differs" found '^0 of 4 nodes differ' out
ok "one that differs: exit code 2" status 2 nodes "$work/a" "$work/b" "$work/odd" "$work/c" "$work/d" \
	--plot "$work/nodes.svg"
ok "it is named" found '/odd: 3\.[0-9]+% of the time is taken there, 30 times the median' out
ok "it stands first" tap_like "$(sed -n 2p "$work/out")" '/odd '
ok "it is counted" found '^1 of 5 nodes differs' out
ok "a picture" grep -q '<svg' "$work/nodes.svg"
ok "the same as JSON" status 2 nodes --json "$work/a" "$work/b" "$work/odd" "$work/c" "$work/d"
holds "with what it differs by" '.outliers == 1 and (.nodes[0].node | endswith("/odd")) and
	.nodes[0].more_time and ([.nodes[1:][] | .more_time or .longer] | any | not)'
ok "two nodes are too few" status 0 nodes "$work/a" "$work/odd"
ok "which is said" found 'no node can be told from the others' out

# ---- measured now ------------------------------------------------------------------------

cat >"$work/shell" <<'END'
#!/bin/sh
[ "$1" = down ] && exit 255
shift
exec sh -c "$*"
END
chmod +x "$work/shell"
"$noise" nodes --hosts x,y,z -d 1 --ssh "$work/shell" --json -- -c 0 >"$work/out" 2>"$work/err"
ok "three hosts measure" test $? -ne 1
holds "all of them come, with the CPU that was asked for" '.came == 3 and ([.nodes[].cpus] == [1, 1, 1]) and
	([.nodes[].node] | sort) == ["x", "y", "z"]'
ok "a host that is down: exit code 1" status 1 nodes --hosts x,down,z -d 1 --ssh "$work/shell" --json
holds "the others are shown" '.came == 2 and .nodes[2] == { node: "down", came: false }'
ok "its name is said" found 'down: no measurement came' err

# ---- in an allocation of Slurm -----------------------------------------------------------

# An srun that sorts the nodes the other way round than they were asked for; "down" prints nothing, and
# with "stuck" it never ends.
mkdir "$work/slurm"
cat >"$work/slurm/srun" <<'END'
#!/bin/sh
printf '%s\n' "$@" >"${0%/*}/words"
while [ "$1" != sh ]; do
	case $1 in
	--nodelist) list=$2 && shift ;;
	-*) ;;
	*) echo "srun: error: $1" >&2 && exit 1 ;;
	esac
	shift
done
case ,$list, in
*,stuck,*) exec sleep 100 ;;
*,refused,*) echo "srun: error: Invalid node name specified" >&2 && exit 1 ;;
esac
[ "$list" = 'n[08-10],m2' ] && list=n08,n09,n10,m2
number=0
for node in $(printf '%s\n' "$list" | tr , '\n' | sort -r); do
	[ "$node" = down ] || { echo "a prolog's words" && SLURMD_NODENAME=$node "$@"; } | sed -u "s/^/ $number: /" &
	number=$((number + 1))
done
wait
END
chmod +x "$work/slurm/srun"
export SLURM_JOB_ID=7 SLURM_JOB_NODELIST='n[08-10],m2'
PATH=$work/slurm:$PATH
"$noise" nodes -d 1 --json -- -c 0 >"$work/out" 2>"$work/err"
ok "in an allocation: all its nodes, by srun" test $? -ne 1
holds "each by its own name" '([.nodes[].node] | sort) == ["m2", "n08", "n09", "n10"] and .came == 4'
ok "the list as it was given" grep -qxF 'n[08-10],m2' "$work/slurm/words"
ok "one task a node, beside the job's" test "$(grep -cx -e --nodes=4 -e --ntasks=4 -e --overlap \
	"$work/slurm/words")" -eq 3
"$noise" nodes --hosts x,down,z -d 1 --json -- -c 0 >"$work/out" 2>"$work/err"
is "a node is silent: exit code 1" $? 1
holds "the others are shown, with the CPU that was asked for" '.came == 2 and .nodes[2].node == "down" and
	([.nodes[:2][].cpus] == [1, 1])'
ok "its name is said" found 'down: no measurement came: it printed nothing' err
ok "one that does not end: exit code 1" status 1 nodes --launcher srun --hosts x,stuck -d 1 --timeout 1s
ok "... after the time that it has" found 'srun did not end within 2 s' err
ok "srun refuses: exit code 1" status 1 nodes --hosts refused,z -d 1
ok "... with its words" found 'srun: error: Invalid node name' err
ok "... and code" found 'srun ended with exit code 1; valid: .*--launcher ssh' err
ok "a node that measures twice: exit code 1" status 1 nodes --hosts x,x,y -d 1
ok "... which is said" found 'x: a second measurement came' err

# Slurm's prolog: srun would wait for it to end.
printf '#!/bin/sh\nshift 4\nexec sh -c "$*"\n' >"$work/slurm/ssh"
chmod +x "$work/slurm/ssh"
rm "$work/slurm/words"
export SLURM_SCRIPT_CONTEXT=prolog_slurmd
"$noise" nodes --hosts x,y -d 1 --json >"$work/out" 2>"$work/err"
holds "in a prolog the nodes measure" '.came == 2'
ok "... without srun" test ! -e "$work/slurm/words"
refused 'captures of two nodes at least, or --hosts' nodes -d 1
unset SLURM_SCRIPT_CONTEXT
"$noise" nodes --hosts x,y -d 1 --ssh "$work/shell" --json >"$work/out" 2>"$work/err"
holds "a remote shell that is named is used there, too" '.came == 2'
refused 'ssh goes with --launcher ssh' nodes --launcher srun --ssh "$work/shell"
refused 'needs --hosts' nodes --launcher ssh
refused "launcher 'pdsh'; valid: auto, ssh, srun" nodes --launcher pdsh
SLURM_JOB_NODELIST='n[3-1]'
refused "SLURM_JOB_NODELIST 'n\[3-1\]'; valid: names as Slurm lists them" nodes
unset SLURM_JOB_ID SLURM_JOB_NODELIST
refused 'there is no allocation of Slurm' nodes --launcher srun
ok "no srun: exit code 1" exits 1 env PATH=/nowhere "$noise" nodes --launcher srun --hosts a,b -d 1
ok "... and what is valid" found 'cannot start srun: .*; valid: srun of Slurm in PATH, or --launcher ssh' err

# ---- refusals -----------------------------------------------------------------------------

refused 'the captures of two nodes' nodes
refused 'the captures of two nodes' nodes "$work/a"
refused "valid: names with commas between" nodes --hosts a,,b
refused "valid: names with commas between" nodes --hosts a:2,b
refused "valid" nodes --hosts a,b -d 0
echo nonsense >"$work/nonsense"
ok "a file that is no capture" status 1 nodes "$work/a" "$work/nonsense"

tap_end
