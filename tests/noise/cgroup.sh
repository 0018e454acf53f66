# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# A cgroup of the test's own that can be frozen: sourced after $name is set. $group is its
# path, empty where there is none to be had; the caller removes it.
for root in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/freezer; do
	[ "$(id -u)" = 0 ] && mkdir "$root/$name" 2>/dev/null || continue
	if [ -e "$root/$name/cgroup.freeze" ] || [ -e "$root/$name/freezer.state" ]; then
		group=$root/$name
		break
	fi
	rmdir "$root/$name"
done

frozen() {
	cat "$group/cgroup.freeze" "$group/freezer.state" 2>/dev/null |
		sed 's/FROZEN/1/; s/FREEZING/1/; s/THAWED/0/'
}
