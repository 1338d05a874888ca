! stuck_f08 DIR: rank 0 waits in MPI_Barrier, called in waits_for_the_others, until the test lets the others go from
! hold point "late"; stuck_mpifh.f and stuck.py do the same.
program stuck
  use mpi_f08
  implicit none
  integer :: rank
  character(len=1024) :: dir

  call get_command_argument(1, dir)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  if (rank /= 0) call hold(dir, 'late', rank)
  call waits_for_the_others()
  call MPI_Finalize()
contains
  subroutine waits_for_the_others()
    call MPI_Barrier(MPI_COMM_WORLD)
    if (rank == 0) print '(a)', 'stuck_f08: done'
  end subroutine
end program
