#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# The programs of README.md and docs/guide/programming.md, as they stand there; and the commands of all
# guides. A block of sh that is not run has a comment before it, <!-- not run: WHY -->.
. "$(dirname "$0")/../lib/tap.sh"
docs=$(dirname "$0")/../../docs
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
LD_LIBRARY_PATH=$(realpath "$BUILD")
export LD_LIBRARY_PATH
flags="-Ilibcoll -Iuapi -L$BUILD -lcoll"

example() {	# LANGUAGE FILE [PAGE]
	awk -v mark="\`\`\`$1" '$0 == mark { on = 1; next } /^```$/ && on { exit } on' \
		"${3:-$docs/guide/programming.md}" >"$work/$2"
}
run() {		# RANKS COMMAND...: keeps $said
	ranks=$1
	shift
	said=$("$COLL" run -n "$ranks" --no-prefix -- "$@" 2>&1 | sort)
}

example c sum.c "$docs/../README.md"
ok "README: it compiles as C99" quiet ${CC:-gcc} -std=c99 -pedantic -Wall -Wextra -Werror \
	"$work/sum.c" -o "$work/sum" $flags
run 2 "$work/sum"
is "README: all have the sum" "$said" "rank 0 of 2: sum 3
rank 1 of 2: sum 3"

example c half.c
ok "C: it compiles as C99" quiet ${CC:-gcc} -std=c99 -pedantic -Wall -Wextra -Werror \
	"$work/half.c" -o "$work/half" $flags
run 4 "$work/half"
is "C: each half has its greatest" "$said" "rank 0: own 499500, greatest 1001
rank 1: own 500500, greatest 1002
rank 2: own 501500, greatest 1001
rank 3: own 502500, greatest 1002"

if command -v ${CXX:-g++} >/dev/null; then
	example cpp sum.cc
	ok "C++: it compiles as C++11" quiet ${CXX:-g++} -std=c++11 -pedantic -Wall -Wextra -Werror \
		"$work/sum.cc" -o "$work/sum" $flags
	run 2 "$work/sum"
	is "C++: all have the sum" "$said" "rank 0: 3 3 3
rank 1: 3 3 3"
else
	skip "C++" "there is no C++ compiler"
fi

if [ -e "$BUILD/python/coll/_coll.abi3.so" ]; then
	example python sum.py
	# A line at a time: ranks share the pipe.
	run 3 env PYTHONUNBUFFERED= PYTHONPATH="$BUILD/python" PYTHONDONTWRITEBYTECODE=1 \
		"${PYTHON:-/usr/bin/python3}" "$work/sum.py"
	is "Python: all have the sum" "$said" "0 [3.0, 6.0, 9.0]
1 [3.0, 6.0, 9.0]
2 [3.0, 6.0, 9.0]"
else
	skip "Python" "python3-dev is not installed"
fi
# Every line of the guides' commands, in a network of its own. The remote shell stays here.
page=$docs/guide/operating.md
mkdir "$work/operate" "$work/bin"
printf '#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do [ "$1" != -o ] || shift; shift; done\nexec sh -c "$2"\n' \
	>"$work/bin/ssh"
printf '#!/bin/sh\nexec "%s" "$@"\n' "$(realpath "$docs/../daemon/coll-job")" >"$work/bin/coll-job"
chmod +x "$work/bin/ssh" "$work/bin/coll-job"
PATH=$work/bin:$(realpath "$BUILD"):$PATH
for part in conf policy job; do
	example $part operate/$part "$page"
done
example coll operate/coll.conf
example c operate/half.c
example cpp operate/sum.cc
example python operate/sum.py
# An MPI's programs take all cores for themselves, and each waits by spinning.
. "$(dirname "$0")/../mpi/mpi.sh"
unset COLL_MPI_HAND	# as its readers have it
example c operate/heat.c "$docs/guide/mpi.md"
example coll operate/heat.conf "$docs/guide/mpi.md"
shim=$(realpath "$BUILD")/mpi
export shim
# What pkg-config and python3 find where all is installed.
mkdir "$work/pkgconfig"
printf 'Name: libcoll\nDescription: as built\nVersion: 0\nCflags: -I%s -I%s\nLibs: -L%s -lcoll\n' \
	"$(realpath libcoll)" "$(realpath uapi)" "$LD_LIBRARY_PATH" >"$work/pkgconfig/libcoll.pc"
printf '#!/bin/sh\nPYTHONPATH=%s exec %s "$@"\n' "$LD_LIBRARY_PATH/python" "${PYTHON:-/usr/bin/python3}" \
	>"$work/bin/python3"
chmod +x "$work/bin/python3"
export PKG_CONFIG_PATH="$work/pkgconfig"
example circuits operate/circuits "$docs/guide/optical-lab.md"
printf 'COLL=%s COLLNOISE=%s STATE=%s\n' "$(realpath "$COLL")" "$(realpath "$BUILD")/collnoise" "$work/state" \
	>>"$work/operate/job"
COLL_JOB_CONFIG=$work/operate/job
export PATH COLL_JOB_CONFIG
inside=
[ "$(id -u)" = 0 ] || inside=-Ur
if unshare $inside -n true 2>/dev/null; then
	operate() {	# COMMAND LINE
		# shellcheck disable=SC2086
		(cd "$work/operate" && timeout 100 unshare $inside -n sh -ec \
			"ip link set lo up; sysctl -q -p conf; $1") >"$work/said" 2>&1 </dev/null ||
			{ sed 's/^/# /' "$work/said"; return 1; }
	}
	commands() {	# PAGE
		awk '/^```sh$/ { on = last !~ /^<!-- not run: /; next } /^```/ { on = 0 } on { print } { last = $0 }' \
			"$1" | sed 's/ *#.*//; /^$/d'
	}
	for each in "$docs"/guide/*.md; do
		name=$(basename "$each" .md)
		if [ "$name" = mpi ] && ! mpis | grep -qx openmpi; then
			skip "$name" "there is no Open MPI"
			continue
		fi
		commands "$each" >"$work/commands"
		while read -r line; do
			case $line in
			*python3*) [ -e "$BUILD/python/coll/_coll.abi3.so" ] ||
				{ skip "$name: $line" "python3-dev is not installed"; continue; } ;;
			g++*) command -v g++ >/dev/null ||
				{ skip "$name: $line" "there is no C++ compiler"; continue; } ;;
			mpi*.mpich*) mpis | grep -qx mpich ||
				{ skip "$name: $line" "there is no MPICH"; continue; } ;;
			esac
			ok "$name: $line" operate "$line"
		done <"$work/commands"
		eval "lines_$(echo "$name" | tr - _)=$(wc -l <"$work/commands")"
	done
	ok "operating and reproducing have commands" test "$lines_operating" -gt 12 -a "$lines_reproducing" -gt 5
	ok "programming too, to the tuned run" test "$lines_programming" -gt 15
	ok "programming: its file chooses" quiet operate "COLL_CONFIG=coll.conf COLL_EXPLAIN=1 coll run -n 4 ./half"
	ok "... the algorithm, with measured costs for the others" grep -q 'ring (requested)' "$work/said"
	if mpis | grep -qx openmpi; then
		ok "mpi too" test "$lines_mpi" -gt 15
		ok "mpi: its file chooses" quiet operate "mpirun.openmpi -np 4 -x LD_PRELOAD=$shim/openmpi/libcollmpi.so \
			-x COLL_CONFIG=heat.conf -x COLL_EXPLAIN=1 ./heat"
		ok "... the algorithm" grep -q 'butterfly (requested)' "$work/said"
		ok "mpi: a rank stops" quiet operate "! mpirun.openmpi -np 4 -x LD_PRELOAD=$shim/openmpi/libcollmpi.so \
			-x COLL_CONFIG=heat.conf ./heat 3"
		ok "... and is named" grep -q 'allreduce of 4 ranks: the deadline passed: rank 3: ' "$work/said"
	else
		skip "mpi: the file, and a rank that stops" "there is no Open MPI"
	fi
	ok "operating: the settings satisfy the doctor" operate "coll doctor --quick --fail-at note --rate 25G --rtt 1ms \
		buffers windows ports idle-restart"
else
	skip "the commands of the guides" "no network namespaces here"
fi
tap_end
