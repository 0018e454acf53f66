# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# For scripts that run MPI programs, also as root and with more ranks than cores.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
# Open MPI 5's launcher has other names for these.
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe PRTE_MCA_hwloc_default_binding_policy=none
# What libcoll executes is tested: nothing is handed to the MPI because it is faster.
export COLL_MPI_HAND="${COLL_MPI_HAND:-off}"

# The MPIs there is a shim for, and a launcher.
mpis() {
	for mpi_name in openmpi mpich mpi; do
		[ -e "$BUILD/mpi/$mpi_name/libcollmpi.so" ] &&
			command -v "$(mpi_launcher "$mpi_name")" >/dev/null && echo "$mpi_name"
	done
}

mpi_launcher() {
	if [ "$1" = mpi ]; then echo mpirun; else echo "mpirun.$1"; fi
}

mpi_compiler() {
	if [ "$1" = mpi ]; then echo mpicc; else echo "mpicc.$1"; fi
}

# mpi_run MPI RANKS COMMAND...: under the shim; mpi_bare: without.
mpi_run() {
	mpi_shim=$(realpath "$BUILD/mpi/$1/libcollmpi.so")
	mpi_launch=$(mpi_launcher "$1")
	mpi_ranks=$2
	shift 2
	timeout -k 5 "${MPI_SECONDS:-100}" "$mpi_launch" -np "$mpi_ranks" \
		env LD_PRELOAD="$mpi_shim" EXPECT_SHIM=1 "$@"
}
mpi_bare() {
	mpi_launch=$(mpi_launcher "$1")
	mpi_ranks=$2
	shift 2
	timeout -k 5 "${MPI_SECONDS:-100}" "$mpi_launch" -np "$mpi_ranks" "$@"
}
