! SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
! use mpi_f08: typed handles, array sections, optional error codes.
program module_f08
  use mpi_f08
  implicit none
  type(MPI_Comm) :: comm
  type(MPI_Request) :: requests(3)
  integer :: rank, ranks, i, sums(5), mine(5), everything(2, 64)
  double precision :: x

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm)
  mine = [(rank + i, i = 1, 5)]
  call MPI_Allreduce(mine, sums, 5, MPI_INTEGER, MPI_SUM, comm)
  do i = 1, 5
    if (sums(i) /= ranks * (ranks - 1) / 2 + ranks * i) call wrong('allreduce')
  end do
  everything(:, rank + 1) = [rank, -rank]
  call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, everything, 2, MPI_INTEGER, comm)
  do i = 1, ranks
    if (everything(1, i) /= i - 1 .or. everything(2, i) /= 1 - i) call wrong('allgather')
  end do
  x = merge(2.5d0, 0d0, rank == 0)
  call MPI_Ibcast(x, 1, MPI_DOUBLE_PRECISION, 0, comm, requests(1))
  call MPI_Ibarrier(comm, requests(2))
  call MPI_Ireduce(mine, sums, 5, MPI_INTEGER, MPI_MAX, 0, comm, requests(3))
  call MPI_Waitall(3, requests, MPI_STATUSES_IGNORE)
  if (x /= 2.5d0) call wrong('ibcast')
  if (rank == 0 .and. sums(5) /= ranks + 4) call wrong('ireduce')
  call MPI_Comm_free(comm)
  call must_count(5, 0)
  call MPI_Finalize()
  if (rank == 0) print '(a)', 'use mpi_f08 is right'
contains
  subroutine wrong(what)
    character(*), intent(in) :: what
    print '(2a)', 'wrong: ', what
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine
end program
