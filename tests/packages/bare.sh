#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
# usage: tests/packages/bare.sh [SUITE [TARGET]]	default bookworm, demo
#
# README's two commands on a bare Debian, in a chroot of its own: what they need they install. TARGET: demo,
# check, or another target of make. As root, with a mirror in reach (DEBIAN_MIRROR); ten minutes,
# with `check` an hour and a half. Kernels are got once: the cache is this machine's. The chroot is in
# a folder under /tmp, in a mount namespace, and goes with it.
. "${0%/*}/../lib/tap.sh"
. "${0%/*}/../lib/chroot.sh"
suite=${1:-bookworm}
target=${2:-demo}
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
here=$(realpath "${0%/*}/../..")
cache=${COLL_CACHE:-${XDG_CACHE_HOME:-/var/cache}/coll}

# Mounts are seen by this process and its children alone.
if [ -z "$COLL_TEST_MOUNTS" ]; then
	[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP it needs root"; exit; }
	COLL_TEST_MOUNTS=1 exec unshare --mount --propagation private -- "$0" "$@"
fi
work=$(mktemp -d /tmp/coll-bare.XXXXXX)
root=$work/root
trap 'chroot_remove "$work"' EXIT
trap 'exit 1' INT TERM

inside() { chroot_inside "$root" env DEBIAN_MIRROR="$mirror" "$@" 2>&1; }
apt() { chroot_apt "$root" "$@"; }

ok "debootstrap $suite" quiet debootstrap --variant=minbase "$suite" "$root" "$mirror"
chroot_network "$root"
mount --bind "$root" "$root" || exit 1	# unshare -m wants a mount point
mkdir -p "$cache" "$root/var/cache/coll"
chroot_seen "$root" && mount --rbind /sys "$root/sys" && mount --bind "$cache" "$root/var/cache/coll" || exit 1
ok "its list of packages" quiet apt update
# Who has the tree has git, and make.
ok "git and make" quiet apt install git make ca-certificates
ok "a clone" quiet git clone -q "$here" "$root/root/coll"
chroot_time=7200
ok "make $target" inside sh -c "cd /root/coll && make $target"
tap_end
