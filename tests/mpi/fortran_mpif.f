! SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
! mpif.h: collectives of a program of the old style.
      subroutine own_max(in, inout, n, type)
      integer n, type, i
      integer in(n), inout(n)
      do i = 1, n
        inout(i) = max(in(i), inout(i))
      end do
      end

      program old
      implicit none
      include 'mpif.h'
      integer rank, ranks, ierr, i, request, op, half
      integer mine(10), got(10), status(MPI_STATUS_SIZE)
      double precision x, y
      logical yes, all
      external own_max

      call MPI_INIT(ierr)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, ranks, ierr)
      do i = 1, 10
        mine(i) = rank * 100 + i
      end do
      call MPI_BCAST(mine, 10, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
      if (mine(10) .ne. 10) call wrong('bcast')
      x = rank + 1
      call MPI_ALLREDUCE(x, y, 1, MPI_DOUBLE_PRECISION, MPI_SUM,
     &                   MPI_COMM_WORLD, ierr)
      if (y .ne. ranks * (ranks + 1) / 2) call wrong('allreduce')
      call MPI_ALLREDUCE(MPI_IN_PLACE, x, 1, MPI_DOUBLE_PRECISION,
     &                   MPI_MAX, MPI_COMM_WORLD, ierr)
      if (x .ne. ranks) call wrong('allreduce in place')
      yes = rank .lt. ranks
      call MPI_ALLREDUCE(yes, all, 1, MPI_LOGICAL, MPI_LAND,
     &                   MPI_COMM_WORLD, ierr)
      if (.not. all) call wrong('land')
      call MPI_OP_CREATE(own_max, .true., op, ierr)
      mine(1) = rank
      call MPI_ALLREDUCE(mine, got, 1, MPI_INTEGER, op,
     &                   MPI_COMM_WORLD, ierr)
      if (got(1) .ne. ranks - 1) call wrong('own max')
      call MPI_OP_FREE(op, ierr)
      call MPI_IBARRIER(MPI_COMM_WORLD, request, ierr)
      call MPI_WAIT(request, status, ierr)
      call MPI_COMM_SPLIT(MPI_COMM_WORLD, mod(rank, 2), rank, half,
     &                    ierr)
      call MPI_BARRIER(half, ierr)
      call MPI_COMM_FREE(half, ierr)
      call must_count(7, 0)
      call MPI_FINALIZE(ierr)
      if (rank .eq. 0) print '(a)', 'mpif.h is right'
      end

      subroutine wrong(what)
      implicit none
      include 'mpif.h'
      character*(*) what
      integer ierr
      print '(2a)', 'wrong: ', what
      call MPI_ABORT(MPI_COMM_WORLD, 1, ierr)
      end
