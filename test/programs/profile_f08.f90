! profile_f08 DIR: calls of every family with `use mpi_f08`, with books (books.f90). Hold point: "done".
program profile
  use mpi_f08
  implicit none
  external :: hold, did, moved, leave_books
  type(MPI_Comm) :: ring, net
  type(MPI_Win) :: win
  type(MPI_File) :: fh
  type(MPI_Request) :: request(2)
  type(MPI_Status) :: status, statuses(2)
  type(MPI_Message) :: message
  type(MPI_Datatype) :: types(2)
  integer, asynchronous :: send(100), recv(100), box(100)
  integer :: rank, size, next, before, i, done, index(2), counts(2), places(2)
  integer(kind=MPI_ADDRESS_KIND) :: bytes, disp
  integer(kind=MPI_OFFSET_KIND) :: mine
  logical :: flag
  character(len=1024) :: dir

  call get_command_argument(1, dir)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  next = mod(rank + 1, size)
  before = mod(rank + size - 1, size)
  send = [(rank * 100 + i, i = 1, 100)]

  call MPI_Comm_dup(MPI_COMM_WORLD, ring)
  call did('MPI_Comm_dup', 'comm:MPI_COMM_WORLD')
  call MPI_Comm_set_name(ring, 'ring')

  ! Messages.
  if (rank == 0) then
    call MPI_Send(send, 10, MPI_INTEGER, next, 1, ring)
    call did('MPI_Send', 'comm:ring')
    call moved('sent', 40)
  else
    call MPI_Recv(recv, 100, MPI_INTEGER, before, 1, ring, status)
    call did('MPI_Recv', 'comm:ring')
    call moved('received', 40)
  end if
  call MPI_Sendrecv(send, 7, MPI_INTEGER, next, 2, recv, 100, MPI_INTEGER, before, 2, ring, MPI_STATUS_IGNORE)
  call did('MPI_Sendrecv', 'comm:ring')
  call moved('sent', 28)
  call moved('received', 28)
  call MPI_Isend(send, 6, MPI_INTEGER, next, 3, ring, request(1))
  call did('MPI_Isend', 'comm:ring')
  call moved('sent', 24)
  flag = .false.
  do while (.not. flag)
    call MPI_Improbe(before, 3, ring, flag, message, status)
    call did('MPI_Improbe', 'comm:ring')
  end do
  call MPI_Imrecv(recv, 100, MPI_INTEGER, message, request(2))
  call did('MPI_Imrecv', '-')
  call moved('posted', 400)
  call MPI_Waitall(2, request, statuses)
  call did('MPI_Waitall', '-')

  ! Persistent.
  call MPI_Recv_init(recv, 50, MPI_INTEGER, before, 4, ring, request(1))
  call did('MPI_Recv_init', 'comm:ring')
  call MPI_Ssend_init(send, 4, MPI_INTEGER, next, 4, ring, request(2))
  call did('MPI_Ssend_init', 'comm:ring')
  call MPI_Start(request(1))
  call did('MPI_Start', '-')
  call MPI_Start(request(2))
  call did('MPI_Start', '-')
  i = 0
  do while (i < 2)
    call MPI_Waitsome(2, request, done, index, MPI_STATUSES_IGNORE)
    call did('MPI_Waitsome', '-')
    i = i + done
  end do
  call MPI_Request_free(request(1))
  call MPI_Request_free(request(2))

  ! Collective.
  call MPI_Barrier(ring)
  call did('MPI_Barrier', 'comm:ring')
  call MPI_Allreduce(MPI_IN_PLACE, send, 3, MPI_INTEGER, MPI_SUM, ring)
  call did('MPI_Allreduce', 'comm:ring')
  call moved('sent', 12)
  call moved('received', 12)
  counts = [1, 2]
  places = [0, 40]
  types = MPI_INTEGER
  call MPI_Alltoallw(send, [rank + 1, rank + 1], places, types, recv, counts, places, types, ring)
  call did('MPI_Alltoallw', 'comm:ring')
  call moved('sent', 8 * (rank + 1))
  call moved('received', 12)
  if (rank == 0) then
    call MPI_Gatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, recv, counts, [0, 10], MPI_INTEGER, 0, ring)
  else
    call MPI_Gatherv(send, 2, MPI_INTEGER, recv, counts, [0, 10], MPI_INTEGER, 0, ring)
  end if
  call did('MPI_Gatherv', 'comm:ring')
  call moved('sent', counts(rank + 1) * 4)
  if (rank == 0) call moved('received', 12)
  call MPI_Iallreduce(send, recv, 2, MPI_DOUBLE_PRECISION, MPI_MAX, ring, request(1))
  call did('MPI_Iallreduce', 'comm:ring')
  call moved('sent', 16)
  call moved('received', 16)
  call MPI_Wait(request(1), MPI_STATUS_IGNORE)
  call did('MPI_Wait', '-')

  ! Neighbours.
  call MPI_Dist_graph_create_adjacent(ring, 1, [before], MPI_UNWEIGHTED, 1, [next], MPI_UNWEIGHTED, MPI_INFO_NULL, .false., net)
  call did('MPI_Dist_graph_create_adjacent', 'comm:ring')
  call MPI_Comm_set_name(net, 'net')
  call MPI_Neighbor_alltoall(send, 3, MPI_INTEGER, recv, 3, MPI_INTEGER, net)
  call did('MPI_Neighbor_alltoall', 'comm:net')
  call moved('sent', 12)
  call moved('received', 12)
  call MPI_Comm_free(net)
  call did('MPI_Comm_free', '-')

  ! One-sided.
  bytes = 400
  disp = 0
  call MPI_Win_create(box, bytes, 4, MPI_INFO_NULL, ring, win)
  call did('MPI_Win_create', 'comm:ring')
  call MPI_Win_set_name(win, 'box')
  call MPI_Win_lock_all(0, win)
  call did('MPI_Win_lock_all', 'win:box')
  call MPI_Rput(send, 5, MPI_INTEGER, next, disp, 5, MPI_INTEGER, win, request(1))
  call did('MPI_Rput', 'win:box')
  call moved('sent', 20)
  call MPI_Wait(request(1), status)
  call did('MPI_Wait', '-')
  call MPI_Get(recv, 4, MPI_INTEGER, next, disp, 4, MPI_INTEGER, win)
  call did('MPI_Get', 'win:box')
  call moved('received', 16)
  call MPI_Win_flush(next, win)
  call did('MPI_Win_flush', 'win:box')
  call MPI_Fetch_and_op(send, recv, MPI_INTEGER, next, disp, MPI_SUM, win)
  call did('MPI_Fetch_and_op', 'win:box')
  call moved('sent', 4)
  call moved('received', 4)
  call MPI_Win_unlock_all(win)
  call did('MPI_Win_unlock_all', 'win:box')
  call MPI_Barrier(ring)
  call did('MPI_Barrier', 'comm:ring')
  call MPI_Win_free(win)
  call did('MPI_Win_free', '-')

  ! Files.
  if (dir /= '-') then
    call MPI_File_open(ring, trim(dir)//'/data', MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, fh)
    call did('MPI_File_open', 'comm:ring')
    mine = 40 * rank
    call MPI_File_write_at_all(fh, mine, send, 10, MPI_INTEGER, MPI_STATUS_IGNORE)
    call did('MPI_File_write_at_all', 'file:data')
    call moved('written', 40)
    call MPI_File_iread_at(fh, mine, recv, 6, MPI_INTEGER, request(1))
    call did('MPI_File_iread_at', 'file:data')
    call moved('posted', 24)
    call MPI_Wait(request(1), status)
    call did('MPI_Wait', '-')
    call leave_books(dir, 'done', rank)
    call hold(dir, 'done', rank)
    call MPI_File_close(fh)
    call did('MPI_File_close', '-')
  end if

  call MPI_Comm_free(ring)
  call did('MPI_Comm_free', '-')
  call leave_books(dir, 'end', rank)
  call MPI_Finalize()
  if (rank == 0) write (*, '(a)') 'profile: done'
end program
