! tour DIR: the tour of README.md with `use mpi_f08`.
program tour
  use mpi_f08
  implicit none
  external :: hold
  type(MPI_Comm) :: ring, half
  type(MPI_Win) :: win
  integer :: rank, size, i, got, total
  integer(kind=MPI_ADDRESS_KIND) :: bytes, disp
  double precision :: box(8), gift
  character(len=1024) :: dir

  call get_command_argument(1, dir)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)

  call MPI_Comm_dup(MPI_COMM_WORLD, ring)
  call MPI_Comm_set_name(ring, 'ring')
  total = 0
  do i = 1, 3
    call MPI_Allreduce(1, got, 1, MPI_INTEGER, MPI_SUM, ring)
    total = total + got
  end do

  call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, half)
  call MPI_Comm_set_name(half, 'half')
  call MPI_Barrier(half)
  call MPI_Comm_free(half)

  bytes = 64
  disp = 0
  gift = rank
  call MPI_Win_create(box, bytes, 8, MPI_INFO_NULL, ring, win)
  call MPI_Win_set_name(win, 'box')
  call MPI_Win_fence(0, win)
  call MPI_Put(gift, 1, MPI_DOUBLE_PRECISION, mod(rank + 1, size), disp, 1, MPI_DOUBLE_PRECISION, win)
  call MPI_Win_fence(0, win)

  call hold(dir, 'made', rank)

  call MPI_Win_free(win)
  call MPI_Comm_free(ring)
  call hold(dir, 'freed', rank)

  call MPI_Finalize()
  if (rank == 0) write (*, '(a,i0,a,i0)') 'tour: ', size, ' ranks, sum ', total
end program
