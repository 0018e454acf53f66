! SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
! use mpi: the same through the module.
program module_mpi
  use mpi
  implicit none
  integer :: rank, ranks, ierr, requests(2), i, column, code
  integer :: grid(4, 3), counts(64), displs(64), all(64), statuses(MPI_STATUS_SIZE, 2)
  real :: pair(2), best(2)
  integer, external :: handed_with_counts

  call MPI_Init_thread(MPI_THREAD_FUNNELED, code, ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  ! A row of a matrix lies apart in memory.
  grid = rank
  call MPI_Type_vector(3, 1, 4, MPI_INTEGER, column, ierr)
  call MPI_Type_commit(column, ierr)
  call MPI_Bcast(grid(2, 1), 1, column, ranks - 1, MPI_COMM_WORLD, ierr)
  if (any(grid(2, :) /= ranks - 1) .or. any(grid(1, :) /= rank)) call wrong('bcast of a row')
  call MPI_Type_free(column, ierr)
  do i = 1, ranks
    counts(i) = 1
    displs(i) = ranks - i
  end do
  call MPI_Iallgatherv(rank, 1, MPI_INTEGER, all, counts, displs, MPI_INTEGER, MPI_COMM_WORLD, &
                       requests(1), ierr)
  pair = [real(mod(rank, 2)), real(rank)]
  call MPI_Iallreduce(pair, best, 1, MPI_2REAL, MPI_MAXLOC, MPI_COMM_WORLD, requests(2), ierr)
  call MPI_Waitall(2, requests, statuses, ierr)
  do i = 1, ranks
    if (all(ranks - i + 1) /= i - 1) call wrong('iallgatherv')
  end do
  if (best(2) /= min(1, ranks - 1)) call wrong('maxloc')
  call must_count(3 - handed_with_counts(), handed_with_counts())
  call MPI_Finalize(ierr)
  if (rank == 0) print '(a)', 'use mpi is right'
contains
  subroutine wrong(what)
    character(*), intent(in) :: what
    print '(2a)', 'wrong: ', what
    call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
  end subroutine
end program
