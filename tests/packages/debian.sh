#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
# usage: BUILD=build tests/packages/debian.sh [SUITE]		default bookworm
#
# Debian's packages in a chroot of their own: installed, used, purged. As root, with a mirror in
# reach (DEBIAN_MIRROR); half an hour. The packages are those of make deb; for another SUITE than
# this machine's they are built in a chroot of it. DKMS=no: without the kernel's headers; TORCH=no:
# without python3-coll-torch. The chroots are in a folder under /tmp, in a mount namespace, and go
# with it.
. "${0%/*}/../lib/tap.sh"
. "${0%/*}/../lib/chroot.sh"
suite=${1:-bookworm}
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
packages=$(realpath "$BUILD")/packages
here=$(realpath "${0%/*}/../..")
names="libcoll0 libcoll-dev coll-tools colld coll-dkms libcollmpi-openmpi libcollmpi-mpich python3-coll \
	python3-coll-torch coll-doc"
[ "$DKMS" != no ] || names=$(echo "$names" | sed 's/coll-dkms//')
[ "$TORCH" != no ] || names=$(echo "$names" | sed 's/python3-coll-torch//')

# Mounts are seen by this process and its children alone.
if [ -z "$COLL_TEST_MOUNTS" ]; then
	[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP it needs root"; exit; }
	COLL_TEST_MOUNTS=1 exec unshare --mount --propagation private -- "$0" "$@"
fi
work=$(mktemp -d /tmp/coll-packages.XXXXXX)
root=$work/root
trap 'chroot_remove "$work"' EXIT
trap 'exit 1' INT TERM

inside() { chroot_inside "$root" "$@"; }
apt() { chroot_apt "$root" "$@"; }

# ---- a bare Debian ------------------------------------------------------------------------

if [ -n "$COLL_TEST_CHROOT" ]; then
	cp -a "$COLL_TEST_CHROOT" "$root"
else
	ok "debootstrap $suite" quiet debootstrap --variant=minbase "$suite" "$root" "$mirror"
fi
chroot_network "$root"
ok "its list of packages" quiet apt update

# ---- the packages -----------------------------------------------------------------------

# What they need is named otherwise in each suite.
build_packages() {
	chroot_seen "$builder" && mkdir "$builder/tree" && mount --bind "$here" "$builder/tree" || return
	apt_there install build-essential && apt_there build-dep $profile /tree &&
		chroot_inside "$builder" env DEB_BUILD_PROFILES="${profile#-P}" /tree/packaging/deb.sh /packages
}
apt_there() { chroot_apt "$builder" "$@"; }

if [ "$suite" != "$(. /etc/os-release && echo "$VERSION_CODENAME")" ]; then
	builder=$work/builder packages=$work/builder/packages profile=
	[ "$TORCH" != no ] || profile=-Ppkg.coll.notorch
	cp -a "$root" "$builder"
	ok "they are built in $suite" quiet build_packages
fi
for name in $names; do
	ok "$name was built" ls "$packages/${name}"_*.deb
done
errors() { lintian --tag-display-limit 0 --fail-on error "$packages"/*.changes >"$work/lintian" 2>&1; }
ok "lintian finds no error" errors
sed 's/^/# /' "$work/lintian"

# ---- what is there before -------------------------------------------------------------------

chroot_seen "$root" || exit 1
# Tools to use them with, of which none is coll's.
ok "compilers and MPIs" quiet apt install gcc libc6-dev pkg-config cmake make openmpi-bin libopenmpi-dev mpich \
	libmpich-dev python3 python3-numpy procps man-db
if [ "$DKMS" != no ]; then
	ok "the kernel's headers, DKMS" quiet apt install linux-headers-amd64 dkms
fi

# Caches and logs are apt's and dpkg's.
contents() {
	inside find / -xdev \( -path /proc -o -path /dev -o -path /tmp -o -path /var/cache -o -path /var/log \
		-o -path /var/lib/apt -o -path /var/lib/dpkg -o -path /var/lib/systemd -o -path /root \
		-o -name __pycache__ \) -prune -o -print | LC_ALL=C sort
}
inside dpkg-query -W -f '${Package}\n' | sort >"$work/packages"
contents >"$work/before"

# ---- in -----------------------------------------------------------------------------------

mkdir "$root/tmp/debs"
for name in $names; do
	cp "$packages/${name}"_*.deb "$root/tmp/debs"
done
ok "they are installed" quiet apt install $(cd "$root/tmp/debs" && ls | sed 's|^|/tmp/debs/|')
configured() { inside dpkg --audit; }
ok "nothing is left to configure" silent configured

# ---- use ----------------------------------------------------------------------------------

mkdir "$root/tmp/use"
awk '/^```c$/ { on = 1; next } /^```$/ && on { exit } on' "$here/README.md" >"$root/tmp/use/sum.c"
ok "README's program compiles" quiet inside sh -c \
	'cd /tmp/use && gcc -Wall -Werror sum.c -o sum $(pkg-config --cflags --libs libcoll)'
is "and runs" "$(inside coll run -n 3 --no-prefix -- /tmp/use/sum 2>&1 | sort)" "rank 0 of 3: sum 6
rank 1 of 3: sum 6
rank 2 of 3: sum 6"
ok "the examples, by CMake" quiet inside sh -c 'apt-get -qy install g++ >/dev/null 2>&1
	cp -r /usr/share/doc/coll-doc/examples /tmp/use/examples
	cd /tmp/use/examples && gunzip -q *.gz 2>/dev/null; cmake -B build && cmake --build build'
like "Python" "$(inside coll run -n 2 --no-prefix -- python3 -c '
import coll, numpy
with coll.open() as context:
    print("all", context.world.allreduce(numpy.ones(1)), flush=True)' 2>&1)" '^all \[2\.\]'
if [ "$TORCH" != no ]; then
	is "PyTorch" "$(inside coll run -n 2 --no-prefix -- python3 -W ignore -c '
import os, coll_torch, torch, torch.distributed as dist
dist.init_process_group("coll", init_method="file:///tmp/use/store", rank=int(os.environ["COLL_RANK"]), world_size=2)
total = torch.ones(3)
dist.all_reduce(total)
os.write(1, f"all {total.tolist()}\n".encode())' 2>&1)" "all [2.0, 2.0, 2.0]
all [2.0, 2.0, 2.0]"
fi
cat >"$root/tmp/use/mpi.c" <<'END'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	int rank, one = 1, sum;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (!rank)
		printf("sum %d\n", sum);
	MPI_Finalize();
	return 0;
}
END
for mpi in openmpi mpich; do
	options=
	[ $mpi != openmpi ] || options="--allow-run-as-root --oversubscribe"
	like "a program of $mpi, by coll" "$(inside sh -c "cd /tmp/use && mpicc.$mpi mpi.c -o $mpi &&
		export COLL_EXPLAIN=1 LD_PRELOAD=\$(echo /usr/lib/*/coll/$mpi/libcollmpi.so) &&
		mpirun.$mpi $options -n 2 ./$mpi" 2>&1 | tr '\n' ' ')" 'allreduce of 1 x 4 bytes.*sum 2|sum 2.*allreduce of 1 x 4 bytes'
done
like "collnoise" "$(inside collnoise measure --duration 300ms 2>&1 | head -1)" 'CPUs? watched for'
echo "housekeeping 0" >"$root/tmp/use/policy"
ok "colld reads a policy" inside colld --policy /tmp/use/policy --check
ok "manual pages" quiet inside sh -c 'man -w coll collnoise colld coll_allreduce coll_ibcast coll-job libcollmpi'
ok "completion" quiet inside bash -c '. /usr/share/bash-completion/completions/coll && complete -p coll'
ok "the unit is enabled" test -L "$root/etc/systemd/system/multi-user.target.wants/colld.service"
if [ "$DKMS" != no ]; then
	kernel=$(ls "$root/lib/modules" | grep amd64 | sort -V | tail -1)
	ok "DKMS builds the module for $kernel" quiet inside dkms install coll/0.1 -k "$kernel" --force
	ok "it is there" quiet inside modinfo -k "$kernel" coll
fi

# ---- out ----------------------------------------------------------------------------------

rm -rf "$root/tmp/use" "$root/tmp/debs"
ok "they are purged" quiet apt purge $names
# Also what others recommend, such as libcurl4 the certificates that PyTorch needs.
ok "with what they needed" quiet apt autoremove --purge -o APT::AutoRemove::RecommendsImportant=false \
	-o APT::AutoRemove::SuggestsImportant=false
inside dpkg-query -W -f '${Package}\n' | sort | comm -13 "$work/packages" - >"$work/stayed"
grep -Ev '^(g\+\+|libstdc\+\+|gcc|cpp)' "$work/stayed" >"$work/residue"
is "no package stayed" "$(cat "$work/residue")" ""
contents | comm -13 "$work/before" - | grep -i coll >"$work/residue"
is "no file stayed" "$(cat "$work/residue")" ""
tap_end
