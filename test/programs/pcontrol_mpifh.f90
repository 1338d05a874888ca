! pcontrol_mpifh DIR: the same as pcontrol_f08 with mpif.h, whose calls reach the library another way.
program pcontrol
  implicit none
  include 'mpif.h'
  character(len=4000) :: dir
  integer :: rank, ierror
  external :: hold

  dir = '-'
  if (command_argument_count() > 0) call get_command_argument(1, dir)
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Pcontrol(0)
  call MPI_Pcontrol(1)
  call MPI_Pcontrol(2)
  call MPI_Pcontrol(41)
  call hold(trim(dir), 'said', rank)
  call MPI_Finalize(ierror)
end program
