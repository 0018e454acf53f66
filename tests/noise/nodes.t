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

# ---- refusals -----------------------------------------------------------------------------

refused 'the captures of two nodes' nodes
refused 'the captures of two nodes' nodes "$work/a"
refused "valid: names with commas between" nodes --hosts a,,b
refused "valid: names with commas between" nodes --hosts a:2,b
refused "valid" nodes --hosts a,b -d 0
echo nonsense >"$work/nonsense"
ok "a file that is no capture" status 1 nodes "$work/a" "$work/nonsense"

tap_end
