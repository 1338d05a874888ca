! profile_usempi DIR: calls of every family with `use mpi`, with books (books.f90). Hold point: "done".
program profile
  use mpi
  implicit none
  external :: hold, did, moved, leave_books
  integer :: ierr, rank, size, next, before, ring, grid, win, fh, i, index, request(2), status(MPI_STATUS_SIZE), message, column
  integer, asynchronous :: send(100), recv(100), box(100)
  integer(kind=MPI_ADDRESS_KIND) :: bytes, disp
  logical :: flag
  character(len=1024) :: dir

  call get_command_argument(1, dir)
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  next = mod(rank + 1, size)
  before = mod(rank + size - 1, size)
  send = [(rank * 100 + i, i = 1, 100)]

  call MPI_Comm_split(MPI_COMM_WORLD, 0, rank, ring, ierr)
  call did('MPI_Comm_split', 'comm:MPI_COMM_WORLD')
  call MPI_Comm_set_name(ring, 'ring', ierr)

  ! Messages. A derived datatype has the bytes of its size.
  call MPI_Type_vector(3, 1, 4, MPI_INTEGER, column, ierr)
  call MPI_Type_commit(column, ierr)
  call MPI_Issend(send, 2, column, next, 1, ring, request(1), ierr)
  call did('MPI_Issend', 'comm:ring')
  call moved('sent', 24)
  call MPI_Mprobe(before, 1, ring, message, status, ierr)
  call did('MPI_Mprobe', 'comm:ring')
  call MPI_Mrecv(recv, 100, MPI_INTEGER, message, MPI_STATUS_IGNORE, ierr)
  call did('MPI_Mrecv', '-')
  call moved('received', 24)
  call MPI_Wait(request(1), MPI_STATUS_IGNORE, ierr)
  call did('MPI_Wait', '-')
  call MPI_Type_free(column, ierr)
  do i = 1, 3
    call MPI_Irecv(recv, 10, MPI_REAL, before, i, ring, request(1), ierr)
    call did('MPI_Irecv', 'comm:ring')
    call moved('posted', 40)
    call MPI_Isend(send, i, MPI_REAL, next, i, ring, request(2), ierr)
    call did('MPI_Isend', 'comm:ring')
    call moved('sent', 4 * i)
    call MPI_Waitany(2, request, index, status, ierr)
    call did('MPI_Waitany', '-')
    flag = .false.
    do while (.not. flag)
      call MPI_Testall(2, request, flag, MPI_STATUSES_IGNORE, ierr)
      call did('MPI_Testall', '-')
    end do
  end do

  ! Collective.
  call MPI_Gather(send, 3, MPI_INTEGER, recv, 3, MPI_INTEGER, 0, ring, ierr)
  call did('MPI_Gather', 'comm:ring')
  call moved('sent', 12)
  if (rank == 0) call moved('received', 12 * size)
  call MPI_Scatter(send, 2, MPI_DOUBLE_PRECISION, recv, 2, MPI_DOUBLE_PRECISION, 1, ring, ierr)
  call did('MPI_Scatter', 'comm:ring')
  if (rank == 1) call moved('sent', 16 * size)
  call moved('received', 16)
  call MPI_Alltoall(send, 4, MPI_INTEGER, recv, 4, MPI_INTEGER, ring, ierr)
  call did('MPI_Alltoall', 'comm:ring')
  call moved('sent', 16 * size)
  call moved('received', 16 * size)
  call MPI_Scan(send, recv, 5, MPI_INTEGER, MPI_SUM, ring, ierr)
  call did('MPI_Scan', 'comm:ring')
  call moved('sent', 20)
  call moved('received', 20)
  call MPI_Reduce_scatter_block(send, recv, 2, MPI_INTEGER, MPI_SUM, ring, ierr)
  call did('MPI_Reduce_scatter_block', 'comm:ring')
  call moved('sent', 8 * size)
  call moved('received', 8)
  call MPI_Ibcast(send, 7, MPI_INTEGER, 0, ring, request(1), ierr)
  call did('MPI_Ibcast', 'comm:ring')
  if (rank == 0) call moved('sent', 28)
  if (rank /= 0) call moved('received', 28)
  call MPI_Wait(request(1), status, ierr)
  call did('MPI_Wait', '-')

  ! Neighbours.
  call MPI_Cart_create(ring, 1, [size], [.true.], .false., grid, ierr)
  call did('MPI_Cart_create', 'comm:ring')
  call MPI_Comm_set_name(grid, 'grid', ierr)
  call MPI_Neighbor_allgather(send, 3, MPI_INTEGER, recv, 3, MPI_INTEGER, grid, ierr)
  call did('MPI_Neighbor_allgather', 'comm:grid')
  call moved('sent', 12)
  call moved('received', 24)
  call MPI_Comm_free(grid, ierr)
  call did('MPI_Comm_free', '-')

  ! One-sided.
  bytes = 400
  disp = 0
  call MPI_Win_create(box, bytes, 4, MPI_INFO_NULL, ring, win, ierr)
  call did('MPI_Win_create', 'comm:ring')
  call MPI_Win_set_name(win, 'box', ierr)
  call MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win, ierr)
  call did('MPI_Win_lock', 'win:box')
  call MPI_Accumulate(send, 5, MPI_INTEGER, next, disp, 5, MPI_INTEGER, MPI_SUM, win, ierr)
  call did('MPI_Accumulate', 'win:box')
  call moved('sent', 20)
  call MPI_Win_unlock(next, win, ierr)
  call did('MPI_Win_unlock', 'win:box')
  call MPI_Barrier(ring, ierr)
  call did('MPI_Barrier', 'comm:ring')
  call MPI_Win_free(win, ierr)
  call did('MPI_Win_free', '-')

  ! Files.
  if (dir /= '-') then
    call MPI_File_open(ring, trim(dir)//'/data', MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, fh, ierr)
    call did('MPI_File_open', 'comm:ring')
    call MPI_File_write_ordered(fh, send, 5, MPI_INTEGER, status, ierr)
    call did('MPI_File_write_ordered', 'file:data')
    call moved('written', 20)
    call MPI_File_read_all(fh, recv, 3, MPI_INTEGER, MPI_STATUS_IGNORE, ierr)
    call did('MPI_File_read_all', 'file:data')
    call moved('read', 12)
    call leave_books(dir, 'done', rank)
    call hold(dir, 'done', rank)
    call MPI_File_close(fh, ierr)
    call did('MPI_File_close', '-')
  end if

  call MPI_Comm_free(ring, ierr)
  call did('MPI_Comm_free', '-')
  call leave_books(dir, 'end', rank)
  call MPI_Finalize(ierr)
  if (rank == 0) write (*, '(a)') 'profile: done'
end program
