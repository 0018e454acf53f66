# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# For scripts that have BUILD, $here and a folder $out: peer.c for each library.

# In /tmp/coll-peers of $root, a Debian with MPIs.
peer_programs_of_root() {	# MPI ...
	mkdir -p "$root/tmp/coll-peers" && cp "$here"/*.c "$here"/*.h "$root/tmp/coll-peers/" || return 1
	for peer_mpi; do
		chroot "$root" "mpicc.$peer_mpi" -O2 -DPEER_MPI /tmp/coll-peers/peer.c -o "/tmp/coll-peers/peer.$peer_mpi" &&
			chroot "$root" gcc -O2 -fPIC -shared /tmp/coll-peers/yield_in_poll.c -o /tmp/coll-peers/yield.so ||
			return 1
	done
}

# peer_programs LIBRARIES: of coll, openmpi, mpich, floor. Makes $out/peer.LIBRARY; with MPICH $out/yield.so too. The
# MPIs' are made in $root, where that is set.
peer_programs() {
	case " $1 " in *" openmpi "*) peer_mpis="openmpi" ;; *) peer_mpis= ;; esac
	case " $1 " in *" mpich "*) peer_mpis="$peer_mpis mpich" ;; esac
	if [ "${root:-}" ]; then
		# shellcheck disable=SC2086 # words
		peer_programs_of_root $peer_mpis || return 1
		peer_mpis=
	fi
	for peer_mpi in $peer_mpis; do
		command -v "mpicc.$peer_mpi" >/dev/null ||
			"$here/../../.ci/deps" openmpi-bin libopenmpi-dev mpich libmpich-dev || return 1
		"mpicc.$peer_mpi" -O2 -DPEER_MPI "$here/peer.c" -o "$out/peer.$peer_mpi" || return 1
		[ "$peer_mpi" = openmpi ] ||
			gcc -O2 -fPIC -shared "$here/yield_in_poll.c" -o "$out/yield.so" || return 1
	done
	case " $1 " in
	*" floor "*) gcc -O2 -Wall -DPEER_FLOOR -D_GNU_SOURCE "$here/peer.c" -o "$out/peer.floor" || return 1 ;;
	esac
	peer_root=$here/../..
	gcc -O2 -Wall -I"$peer_root" -I"$peer_root/uapi" "$here/peer.c" "$BUILD/libcoll.a" -luring -lnettle \
		-lm -o "$out/peer.coll"
}
