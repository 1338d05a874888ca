! tour DIR: the tour of README.md with `use mpi` and MPI_Init_thread.
program tour
  use mpi
  implicit none
  external :: hold
  integer :: ierr, rank, size, ring, half, win, i, got, total, provided
  integer(kind=MPI_ADDRESS_KIND) :: bytes, disp
  double precision :: box(8), gift
  character(len=1024) :: dir

  call get_command_argument(1, dir)
  call MPI_Init_thread(MPI_THREAD_FUNNELED, provided, ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)

  call MPI_Comm_dup(MPI_COMM_WORLD, ring, ierr)
  call MPI_Comm_set_name(ring, 'ring', ierr)
  total = 0
  do i = 1, 3
    call MPI_Allreduce(1, got, 1, MPI_INTEGER, MPI_SUM, ring, ierr)
    total = total + got
  end do

  call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, half, ierr)
  call MPI_Comm_set_name(half, 'half', ierr)
  call MPI_Barrier(half, ierr)
  call MPI_Comm_free(half, ierr)

  bytes = 64
  disp = 0
  gift = rank
  call MPI_Win_create(box, bytes, 8, MPI_INFO_NULL, ring, win, ierr)
  call MPI_Win_set_name(win, 'box', ierr)
  call MPI_Win_fence(0, win, ierr)
  call MPI_Put(gift, 1, MPI_DOUBLE_PRECISION, mod(rank + 1, size), disp, 1, MPI_DOUBLE_PRECISION, win, ierr)
  call MPI_Win_fence(0, win, ierr)

  call hold(dir, 'made', rank)

  call MPI_Win_free(win, ierr)
  call MPI_Comm_free(ring, ierr)
  call hold(dir, 'freed', rank)

  call MPI_Finalize(ierr)
  if (rank == 0) write (*, '(a,i0,a,i0)') 'tour: ', size, ' ranks, sum ', total
end program
