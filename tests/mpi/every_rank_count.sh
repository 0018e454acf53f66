#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# unmodified_programs.t at every number of ranks from 1 to 8, and with thousands of random
# calls. Takes some minutes on few cores.
here=$(dirname "$0")
. "$here/../lib/tap.sh"
. "$here/mpi.sh"
MPI_SECONDS=${MPI_SECONDS:-600}
for mpi in $(mpis); do
	programs=$BUILD/tests/mpi/$mpi
	for ranks in 1 2 3 4 5 6 7 8; do
		ok "$mpi: every collective, $ranks ranks" quiet \
			mpi_run "$mpi" "$ranks" "$programs/every_form"
		ok "$mpi: 2000 random calls, $ranks ranks" quiet \
			mpi_run "$mpi" "$ranks" "$programs/random_calls" "$((ranks * 11 + 3))" 2000
		ok "$mpi: odd cases, $ranks ranks" quiet mpi_run "$mpi" "$ranks" "$programs/edge_cases"
	done
done
tap_end
