#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Applications from Debian under the shim: hpcc and lammps, which Debian has for Open MPI,
# ScaLAPACK's LU (Fortran) for MPICH, and an FFT of ours with both. They check their own
# results; the reports show what of them went through libcoll. Takes some minutes on few cores.
here=$(dirname "$0")
. "$here/../lib/tap.sh"
. "$here/mpi.sh"
BUILD=$(realpath "$BUILD")
work=$BUILD/mpi/programs
mkdir -p "$work"
MPI_SECONDS=${MPI_SECONDS:-600}

has() {		# PATTERN FILE
	grep -Eq -e "$1" "$2"
}

show() {
	sed 's/^/# /' "$1"
}

# ---- our FFT ----------------------------------------------------------------

for mpi in $(mpis); do
	mpicc.$mpi -O2 -std=gnu11 -D_GNU_SOURCE "$here/fft.c" -lfftw3 -lm -ldl -o "$work/fft.$mpi"
	for ranks in 1 2 4 8; do
		ok "$mpi: fft, $ranks ranks" quiet mpi_run "$mpi" "$ranks" "$work/fft.$mpi" 32
	done
	ok "$mpi: fft with a trace" quiet mpi_run "$mpi" 4 \
		env COLL_MPI_TRACE="$work/trace.$mpi" COLL_MPI_REPORT="$work/fft.$mpi.report" \
		"$work/fft.$mpi" 64
	show "$work/fft.$mpi.report"
	is "$mpi: the trace has its 8 alltoall" "$(grep -c '^alltoall ' "$work/trace.$mpi.0")" 8
	ok "$mpi: and runs in the simulator" quiet "$BUILD/coll" sim replay "$work/trace.$mpi"
done

# ---- ScaLAPACK: LU with Debian's own input, which checks its residuals ------------

scalapack() (	# in a directory of its own
	cd "$work/scalapack" && cp /usr/share/scalapack/LU.dat . &&
		mpi_run mpich 4 env COLL_MPI_REPORT="$work/scalapack.report" "$xdlu" \
			>"$work/scalapack.out" 2>&1
)
xdlu=/usr/lib/$(gcc -print-multiarch)/scalapack/mpich-tests/xdlu
if [ -x "$xdlu" ] && [ -e "$BUILD/mpi/mpich/libcollmpi.so" ]; then
	mkdir -p "$work/scalapack"
	ok "mpich: ScaLAPACK's LU runs" scalapack
	ok "mpich: ScaLAPACK: tests passed" has '^ +[1-9][0-9]* tests completed and passed' \
		"$work/scalapack.out"
	ok "mpich: ScaLAPACK: none failed" has '^ +0 tests completed and failed' "$work/scalapack.out"
	ok "mpich: ScaLAPACK: its collectives were ours" has '^(allreduce|bcast|reduce) +blocking' \
		"$work/scalapack.report"
	show "$work/scalapack.report"
else
	skip "mpich: ScaLAPACK" "$xdlu is not there, or MPICH"
fi

[ -e "$BUILD/mpi/openmpi/libcollmpi.so" ] || { tap_end; exit; }

# ---- mpi4py: MPI_THREAD_MULTIPLE, loaded with RTLD_LOCAL -----------------------

ok "mpi4py" quiet mpi_run openmpi 4 env COLL_MPI_REPORT="$work/python.report" \
	/usr/bin/python3 "$here/python.py"
ok "mpi4py: its collectives were ours" has '^bcast +blocking' "$work/python.report"

# ---- hpcc --------------------------------------------------------------------

cat >"$work/hpccinf.txt" <<INPUT
HPLinpack benchmark input file
for the shim
HPL.out      output file name (if any)
8            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
400          Ns
1            # of NBs
40           NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
2            Ps
2            Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
2            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
0            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
0            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
##### This line (no. 32) is ignored (it serves as a separator). ######
0                               Number of additional problem sizes for PTRANS
1200 10000 30000                values of N
0                               number of additional blocking sizes for PTRANS
40 9 8 13 13 20 16 32 64        values of NB
INPUT

hpcc_run() (
	cd "$work" && rm -f hpccoutf.txt &&
		mpi_run openmpi 4 env COLL_MPI_REPORT="$work/hpcc.report" hpcc
)
ok "hpcc runs" quiet hpcc_run
ok "hpcc: its own checks succeed" has '^Success=1' "$work/hpccoutf.txt"
ok "hpcc: linpack's residual passes" has '1 tests completed and passed residual checks' \
	"$work/hpccoutf.txt"
ok "hpcc: nothing failed" test "$(grep -c FAILED "$work/hpccoutf.txt")" = 0
ok "hpcc: its collectives were ours" has '^allreduce .* blocking|^allreduce +blocking' \
	"$work/hpcc.report"
show "$work/hpcc.report"

# ---- lammps ------------------------------------------------------------------

cat >"$work/melt.lmp" <<INPUT
units		lj
atom_style	atomic
lattice		fcc 0.8442
region		box block 0 10 0 10 0 10
create_box	1 box
create_atoms	1 box
mass		1 1.0
velocity	all create 1.44 87287
pair_style	lj/cut 2.5
pair_coeff	1 1 1.0 1.0 2.5
neighbor	0.3 bin
neigh_modify	delay 0 every 20 check no
fix		1 all nve
thermo		50
run		200
INPUT

energies() {	# the thermodynamic table: step, temperature, energies, pressure
	awk '/^ *Step Temp/ { on = 1; next } /^Loop/ { on = 0 } on' "$1"
}

same_energies() {
	[ "$(energies "$1" | wc -l)" -ge 5 ] || return 1
	energies "$1" >"$work/with"
	energies "$2" | paste "$work/with" - | awk '
		{ for (i = 1; i <= 6; i++) { d = $i - $(i + 6); if (d < 0) d = -d;
			if (d > 1e-6 * ($i < 0 ? -$i : $i) + 1e-9) bad = 1 } }
		END { exit bad }'
}

ok "lammps runs" quiet mpi_run openmpi 4 env COLL_MPI_REPORT="$work/lammps.report" \
	lmp -in "$work/melt.lmp" -log "$work/lammps.log" -screen none
ok "lammps runs without the shim" quiet mpi_bare openmpi 4 \
	lmp -in "$work/melt.lmp" -log "$work/lammps.bare" -screen none
ok "lammps: the same energies at every step" same_energies "$work/lammps.log" "$work/lammps.bare"
ok "lammps: its collectives were ours" has '^allreduce +blocking' "$work/lammps.report"
show "$work/lammps.report"
tap_end
