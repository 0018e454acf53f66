# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# For scripts that need another Debian: roots made by debootstrap, whose apt reaches what this machine's reaches.

# chroot_seen ROOT: the kernel's files and devices. In a mount namespace, with which they go.
chroot_seen() {
	mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev"
}

# chroot_network ROOT: names and proxies of this machine.
chroot_network() {
	cp /etc/resolv.conf "$1/etc/resolv.conf" 2>/dev/null
	# As Debian's installer writes.
	printf '%s\n' '127.0.0.1 localhost' "127.0.1.1 $(hostname)" '::1 localhost ip6-localhost ip6-loopback' \
		>"$1/etc/hosts"
	env | grep -i '^[a-z]*_proxy=' | sed 's/^\([^=]*\)_proxy=\(.*\)/Acquire::\1::Proxy "\2";/' \
		>"$1/etc/apt/apt.conf.d/99proxy"
	for chroot_file in /etc/apt/apt.conf.d/*roxy*; do
		[ ! -e "$chroot_file" ] || cp "$chroot_file" "$1/etc/apt/apt.conf.d/"
	done
}

# chroot_inside ROOT COMMAND...: with the environment of a new machine, for 25 minutes at most or chroot_time seconds.
chroot_inside() {
	chroot_root=$1
	shift
	timeout "${chroot_time:-1500}" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
		DEBIAN_FRONTEND=noninteractive chroot "$chroot_root" "$@" </dev/null
}

# chroot_apt ROOT ARGUMENT...
chroot_apt() {
	chroot_root=$1
	shift
	chroot_inside "$chroot_root" apt-get -qy -o Dpkg::Use-Pty=0 -o APT::Install-Recommends=false "$@"
}

# chroot_mounts FOLDER: what is mounted in it, the innermost first.
chroot_mounts() {
	awk -v folder="$1/" 'index($5, folder) == 1 { print $5 }' /proc/self/mountinfo | sort -r
}

# chroot_remove FOLDER: with roots in it. What a mount still shows is this machine's: then it stays.
chroot_remove() {
	chroot_mounts "$1" | while read -r chroot_mount; do
		umount -l "$chroot_mount" 2>/dev/null
	done
	[ -n "$(chroot_mounts "$1")" ] || rm -rf --one-file-system "$1"
}
