! pcontrol_f08 DIR: levels of MPI_Pcontrol from Fortran with mpi_f08: 0, 1, 2 and 41; at the hold point "said" 41 was the last.
program pcontrol
  use mpi_f08
  implicit none
  interface
    subroutine hold(dir, name, rank)
      character(len=*), intent(in) :: dir, name
      integer, intent(in) :: rank
    end subroutine
  end interface
  character(len=4000) :: dir
  integer :: rank

  dir = '-'
  if (command_argument_count() > 0) call get_command_argument(1, dir)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Pcontrol(0)
  call MPI_Pcontrol(1)
  call MPI_Pcontrol(2)
  call MPI_Pcontrol(41)
  call hold(trim(dir), 'said', rank)
  call MPI_Finalize()
end program
