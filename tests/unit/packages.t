#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Debian's packages without building them: each installed file is in one package, versions agree, and
# what the packages need to be built make deps installs.
. "${0%/*}/../lib/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
version=$(awk '/define COLL_VERSION_M/ { v = v dot $3; dot = "." } END { print v }' libcoll/coll.h)

# As debian/rules does it.
ok "make install" quiet make --no-print-directory install BUILD="$BUILD" DESTDIR="$work/tmp" PREFIX=/usr \
	LIBDIR=/usr/lib/triplet UNITDIR=/lib/systemd/system
(cd "$work/tmp/usr/share/doc" && mv coll coll-doc)
for file in LICENSES/*; do
	rm "$work/tmp/usr/share/doc/coll-doc/${file##*/}"
done
rm -rf "$work"/tmp/usr/src/coll-*/dkms.conf
(cd "$work/tmp" && find . ! -type d | sed 's|^\./||' | LC_ALL=C sort) >"$work/files"

# The patterns of debian/*.install, one a line: PATTERN PACKAGE. debian/rules adds the units.
grep -v '^#' debian/*.install | sed 's|^debian/\(.*\)\.install:\(.*\)|\2 \1|' >"$work/patterns"
echo "lib/systemd/system colld" >>"$work/patterns"
while read -r pattern package; do
	# shellcheck disable=SC2086
	(cd "$work/tmp" && find $pattern ! -type d 2>/dev/null) | sed "s|$| $package|" >"$work/some"
	[ -s "$work/some" ] || echo "$package: no file is like $pattern" >>"$work/unused"
	cat "$work/some" >>"$work/packed"
done <"$work/patterns"
[ -d "$work/tmp/usr/lib/python3" ] || sed -i '/python3-coll:/d' "$work/unused"
[ -e "$work/tmp/usr/lib/python3/dist-packages/coll_torch" ] || sed -i '/python3-coll-torch:/d' "$work/unused"
for mpi in openmpi mpich; do
	[ -d "$work/tmp/usr/lib/triplet/coll/$mpi" ] || sed -i "/libcollmpi-$mpi/d" "$work/unused"
done
touch "$work/unused"
cut -d ' ' -f 1 "$work/packed" | LC_ALL=C sort >"$work/names"
ok "there are files" test "$(wc -l <"$work/files")" -gt 150
is "each is in a package" "$(LC_ALL=C comm -23 "$work/files" "$work/names")" ""
is "and in one only" "$(uniq -d "$work/names")" ""
is "each pattern finds files" "$(cat "$work/unused")" ""

is "the changelog has the version of coll.h" "$(sed -n '1s/^coll (\([^)]*\)).*/\1/p' debian/changelog)" "$version"
is "dkms.conf too" "$(sed -n 's/^PACKAGE_VERSION=//p' dkms.conf)" "$version"
is "the symbols have it" "$(sed -n 's/^ (symver)COLL_\([^ ]*\) .*/\1/p' debian/libcoll0.symbols)" "$version"
is "the packages" "$(sed -n 's/^Package: //p' debian/control | sort | tr '\n' ' ')" \
	"coll-dkms coll-doc coll-tools colld libcoll-dev libcoll0 libcollmpi-mpich libcollmpi-openmpi python3-coll python3-coll-torch "
undescribed() {
	for package in $(sed -n 's/^Package: //p' debian/control); do
		grep -q "\`$package\`" docs/guide/installing.md || echo "$package"
	done
}
ok "docs/guide/installing.md has each" silent undescribed

# Of debhelper's packages make deb says more; those of PyTorch are in a list of their own.
needed() {
	sed -n '/^Build-Depends:/,/^Standards/p' debian/control | tr ',' '\n' |
		sed 's/^Build-Depends://; s/^Standards.*//; s/[[(<].*//; s/ //g; /^$/d; /^d/d'
}
unlisted() {
	needed | while read -r package; do
		{ sed -n '/^PACKAGES/,/^$/p' Makefile; grep '^TORCH_PACKAGES' bindings/torch/torch.mk; } |
			grep -qw -e "$package" || echo "$package"
	done
}
ok "there are packages to build with" test "$(needed | wc -l)" -gt 10
ok "make deps installs them" silent unlisted
tap_end
