# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# For tests of a colld and its user's ranks that share the last CPU: sourced after tap.sh. /run is the
# test's own, $work is a folder that the user $user may read, and processes in $pids are ended with it. PIN=no
# is what $job (coll-job) reads.
if [ "$(nproc)" -lt 2 ] || [ "$(id -u)" != 0 ] || ! unshare -m true 2>/dev/null; then
	echo "1..0 # SKIP one CPU, or not root, or no namespace of mounts can be made"
	exit 0
fi
if [ -z "$OWN_RUN" ]; then
	OWN_RUN=1 exec unshare -m sh -c 'mount -t tmpfs none /run && exec sh "$0"' "$0"
fi
job=$(dirname "$0")/../../daemon/coll-job
work=$(mktemp -d)
chmod 755 "$work"
pids=
cleanup() {
	kill -9 $pids
	wait
	rm -rf "$work"
} 2>/dev/null
trap cleanup EXIT
trap 'exit 1' HUP INT TERM

. "$(dirname "$0")/../lib/cpus.sh"
user=$((64000 + $$ % 500))
export COLL_JOB_CONFIG="$work/config"
echo "PIN=no" >"$COLL_JOB_CONFIG"
