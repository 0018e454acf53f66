# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Hosts as network namespaces, for scripts that source tap.sh first. The script runs again in a
# namespace of its own, has a folder $dir, and at its end neither is left.

if [ -z "$COLL_HOSTS_INSIDE" ]; then
	[ "$(id -u)" = 0 ] || user=-Ur
	# shellcheck disable=SC2086
	if ! unshare $user -n true 2>/dev/null; then
		echo "1..0 # SKIP no network namespaces here"
		exit 0
	fi
	COLL_HOSTS_INSIDE=1 exec unshare $user -n "$0" "$@"
fi
unset COLL_HOSTS_INSIDE
dir=$(mktemp -d)
hosts_pids=
hosts_end() {
	# shellcheck disable=SC2086
	[ -z "$hosts_pids" ] || kill $hosts_pids 2>/dev/null
	rm -rf "$dir"
}
trap hosts_end EXIT
trap 'exit 1' HUP INT TERM

# A process to be ended with the script.
host_ends() { hosts_pids="$hosts_pids $1"; }

# A namespace for at most $hosts_seconds; $host is a process of it.
host_make() {
	unshare -n sleep "${hosts_seconds:-300}" &
	host=$!
	host_ends $host
	tries=100	# until it has a namespace of its own
	while [ "$(readlink /proc/$host/ns/net)" = "$(readlink /proc/self/ns/net)" ] && [ $tries -gt 0 ]; do
		sleep 0.02
		tries=$((tries - 1))
	done
	nsenter -n -t $host ip link set lo up
}

# host_shell PATTERN PID ...: $dir/shell HOST COMMAND, as ssh: in the namespace of the process of the
# first PATTERN that HOST fits, or here.
host_shell() {
	{
		echo '#!/bin/sh'
		echo 'case $1 in'
		while [ $# -gt 0 ]; do
			echo "$1) exec nsenter -n -t $2 sh -c \"\$2\" ;;"
			shift 2
		done
		echo '*) exec sh -c "$2" ;;'
		echo 'esac'
	} >"$dir/shell"
	chmod +x "$dir/shell"
}
