# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# The palette as text for those who draw: awk -v as=css|gnuplot -f palette.awk palette
# gnuplot, in a script:  load "< awk -v as=gnuplot -f tools/common/palette.awk tools/common/palette"
/^#/ || !NF { next }
{
	light = light sprintf("--%s:%s;", $1, $2)
	dark = dark sprintf("--%s:%s;", $1, $3)
	names = names sprintf("%s = '%s'\n", $1, $2)
	if (sub(/^series/, "", $1))
		types = types sprintf("set linetype %d lc rgb '%s'\n", series = $1, $2)
	else if (sub(/^heat/, "", $1))
		steps = steps sprintf("%s%d '%s'", steps ? ", " : "", $1, $2)
}
END {
	if (as == "css") {
		print ":root{color-scheme:light dark;" light "}"
		print "@media screen and (prefers-color-scheme:dark){:root{" dark "}}"
	} else if (as == "gnuplot") {
		printf "%s%sset linetype cycle %d\nset palette defined (%s)\n", names, types, series, steps
	} else {
		print "palette.awk: as '" as "'; valid: css, gnuplot" >"/dev/stderr"
		exit 1
	}
}
