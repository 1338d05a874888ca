! collectives - the same as collectives.c, of Fortran: late, never-comes, two-functions, receive-cycle.
! Arguments as in zoo.h; the communicator has the order of MPI_COMM_WORLD.
program collectives
  use, intrinsic :: iso_fortran_env, only: int64
  use mpi
  implicit none
  character(len=64) :: kind, name, text
  integer :: culprit, partner, tag, rank, size, comm, sum, ierr, i
  integer :: status(MPI_STATUS_SIZE)
  integer, allocatable :: large(:), other(:)

  call get_command_argument(1, kind)
  call get_command_argument(2, text); read (text, *) culprit
  call get_command_argument(3, text); read (text, *) partner
  call get_command_argument(4, text); read (text, *) tag
  call get_command_argument(5, name)
  call mpi_init(ierr)
  call mpi_comm_rank(MPI_COMM_WORLD, rank, ierr)
  call mpi_comm_size(MPI_COMM_WORLD, size, ierr)
  call mpi_comm_dup(MPI_COMM_WORLD, comm, ierr)
  call mpi_comm_set_name(comm, trim(name), ierr)
  allocate (large(1048576), other(1048576))
  large = 0
  do i = 1, 20
    call compute(0.02d0)
    call mpi_allreduce(i, sum, 1, MPI_INTEGER, MPI_SUM, comm, ierr)
  end do
  select case (trim(kind))
  case ('late')
    do
      call compute(merge(0.09d0, 0.01d0, rank == culprit))
      call mpi_allreduce(i, sum, 1, MPI_INTEGER, MPI_SUM, comm, ierr)
    end do
  case ('never-comes')
    do while (rank == culprit)
      call compute(1d0)
    end do
    call mpi_allreduce(i, sum, 1, MPI_INTEGER, MPI_SUM, comm, ierr)
  case ('two-functions')
    if (rank == culprit) then
      call mpi_bcast(large, 1048576, MPI_INTEGER, partner, comm, ierr)
    else
      call mpi_allreduce(large, other, 1048576, MPI_INTEGER, MPI_SUM, comm, ierr)
    end if
    call mpi_barrier(comm, ierr)
  case ('receive-cycle')
    call mpi_recv(i, 1, MPI_INTEGER, modulo(rank - 1, size), tag, comm, status, ierr)
  case default
    call mpi_abort(MPI_COMM_WORLD, 2, ierr)
  end select
contains
  subroutine compute(seconds)
    double precision, intent(in) :: seconds
    integer(int64) :: now, rate, until

    call system_clock(now, rate)
    until = now + int(seconds * rate, int64)
    do while (now < until)
      call system_clock(now)
    end do
  end subroutine
end program
