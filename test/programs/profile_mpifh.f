! profile_mpifh DIR: calls of every family through mpif.h, with books (books.f90). Hold point: "done".
      program profile
      implicit none
      include 'mpif.h'
      external hold, did, moved, leave_books
      integer ierr, rank, size, next, before, ring, half, win, fh, i
      integer send(100), recv(100), request(2), counts(2), places(2)
      integer status(MPI_STATUS_SIZE), statuses(MPI_STATUS_SIZE, 2)
      integer(kind=MPI_ADDRESS_KIND) bytes, disp
      integer(kind=MPI_OFFSET_KIND) mine
      integer box(100)
      logical flag
      character*1024 dir

      call get_command_argument(1, dir)
      call MPI_INIT(ierr)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, size, ierr)
      next = mod(rank + 1, size)
      before = mod(rank + size - 1, size)
      do i = 1, 100
        send(i) = rank * 100 + i
      end do

      call MPI_COMM_DUP(MPI_COMM_WORLD, ring, ierr)
      call did('MPI_Comm_dup', 'comm:MPI_COMM_WORLD')
      call MPI_COMM_SET_NAME(ring, 'ring', ierr)

!     Messages.
      if (rank .eq. 0) then
        call MPI_SEND(send, 10, MPI_INTEGER, next, 1, ring, ierr)
        call did('MPI_Send', 'comm:ring')
        call moved('sent', 40)
        call MPI_SSEND(send, 3, MPI_DOUBLE_PRECISION, next, 1, ring,
     &    ierr)
        call did('MPI_Ssend', 'comm:ring')
        call moved('sent', 24)
      else
        call MPI_PROBE(before, 1, ring, status, ierr)
        call did('MPI_Probe', 'comm:ring')
        call MPI_RECV(recv, 100, MPI_INTEGER, before, 1, ring, status,
     &    ierr)
        call did('MPI_Recv', 'comm:ring')
        call moved('received', 40)
        call MPI_RECV(recv, 100, MPI_INTEGER, before, 1, ring,
     &    MPI_STATUS_IGNORE, ierr)
        call did('MPI_Recv', 'comm:ring')
        call moved('received', 24)
      end if
      call MPI_SENDRECV(send, 7, MPI_INTEGER, next, 2, recv, 100,
     &  MPI_INTEGER, before, 2, ring, MPI_STATUS_IGNORE, ierr)
      call did('MPI_Sendrecv', 'comm:ring')
      call moved('sent', 28)
      call moved('received', 28)
      call MPI_SENDRECV_REPLACE(recv, 5, MPI_INTEGER, next, 2, before,
     &  2, ring, status, ierr)
      call did('MPI_Sendrecv_replace', 'comm:ring')
      call moved('sent', 20)
      call moved('received', 20)
      call MPI_SEND(send, 10, MPI_INTEGER, MPI_PROC_NULL, 1, ring, ierr)
      call did('MPI_Send', 'comm:ring')
      call MPI_IRECV(recv, 50, MPI_INTEGER, before, 3, ring,
     &  request(1), ierr)
      call did('MPI_Irecv', 'comm:ring')
      call moved('posted', 200)
      call MPI_ISEND(send, 4, MPI_INTEGER, next, 3, ring, request(2),
     &  ierr)
      call did('MPI_Isend', 'comm:ring')
      call moved('sent', 16)
      call MPI_WAITALL(2, request, statuses, ierr)
      call did('MPI_Waitall', '-')
      call MPI_IPROBE(before, 99, ring, flag, status, ierr)
      call did('MPI_Iprobe', 'comm:ring')

!     Persistent.
      call MPI_RECV_INIT(recv, 50, MPI_INTEGER, before, 4, ring,
     &  request(1), ierr)
      call did('MPI_Recv_init', 'comm:ring')
      call MPI_SEND_INIT(send, 4, MPI_INTEGER, next, 4, ring,
     &  request(2), ierr)
      call did('MPI_Send_init', 'comm:ring')
      do i = 1, 3
        call MPI_STARTALL(2, request, ierr)
        call did('MPI_Startall', '-')
        call MPI_WAITALL(2, request, MPI_STATUSES_IGNORE, ierr)
        call did('MPI_Waitall', '-')
      end do
      call MPI_REQUEST_FREE(request(1), ierr)
      call MPI_REQUEST_FREE(request(2), ierr)

!     Collective.
      call MPI_BARRIER(ring, ierr)
      call did('MPI_Barrier', 'comm:ring')
      call MPI_BCAST(send, 10, MPI_INTEGER, 1, ring, ierr)
      call did('MPI_Bcast', 'comm:ring')
      if (rank .eq. 1) call moved('sent', 40)
      if (rank .ne. 1) call moved('received', 40)
      call MPI_REDUCE(send, recv, 6, MPI_INTEGER, MPI_SUM, 0, ring,
     &  ierr)
      call did('MPI_Reduce', 'comm:ring')
      call moved('sent', 24)
      if (rank .eq. 0) call moved('received', 24)
      call MPI_ALLREDUCE(MPI_IN_PLACE, recv, 2, MPI_INTEGER, MPI_SUM,
     &  ring, ierr)
      call did('MPI_Allreduce', 'comm:ring')
      call moved('sent', 8)
      call moved('received', 8)
      counts(1) = 1
      counts(2) = 2
      places(1) = 0
      places(2) = 10
      call MPI_ALLGATHERV(send, rank + 1, MPI_INTEGER, recv, counts,
     &  places, MPI_INTEGER, ring, ierr)
      call did('MPI_Allgatherv', 'comm:ring')
      call moved('sent', 4 * (rank + 1))
      call moved('received', 12)
      call MPI_ALLGATHER(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, recv, 3,
     &  MPI_INTEGER, ring, ierr)
      call did('MPI_Allgather', 'comm:ring')
      call moved('sent', 12)
      call moved('received', 12 * size)
      call MPI_COMM_SPLIT(ring, rank, 0, half, ierr)
      call did('MPI_Comm_split', 'comm:ring')
      call MPI_COMM_FREE(half, ierr)
      call did('MPI_Comm_free', '-')

!     One-sided.
      bytes = 400
      disp = 0
      call MPI_WIN_CREATE(box, bytes, 4, MPI_INFO_NULL, ring, win, ierr)
      call did('MPI_Win_create', 'comm:ring')
      call MPI_WIN_SET_NAME(win, 'box', ierr)
      call MPI_WIN_FENCE(0, win, ierr)
      call did('MPI_Win_fence', 'win:box')
      call MPI_PUT(send, 5, MPI_INTEGER, next, disp, 5, MPI_INTEGER,
     &  win, ierr)
      call did('MPI_Put', 'win:box')
      call moved('sent', 20)
      call MPI_WIN_FENCE(0, win, ierr)
      call did('MPI_Win_fence', 'win:box')
      call MPI_WIN_FREE(win, ierr)
      call did('MPI_Win_free', '-')

!     Files.
      if (dir .ne. '-') then
        call MPI_FILE_OPEN(ring, trim(dir)//'/data',
     &    MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, fh, ierr)
        call did('MPI_File_open', 'comm:ring')
        mine = 40 * rank
        call MPI_FILE_WRITE_AT(fh, mine, send, 10, MPI_INTEGER,
     &    MPI_STATUS_IGNORE, ierr)
        call did('MPI_File_write_at', 'file:data')
        call moved('written', 40)
        call MPI_FILE_READ_AT(fh, mine, recv, 6, MPI_INTEGER,
     &    MPI_STATUS_IGNORE, ierr)
        call did('MPI_File_read_at', 'file:data')
        call moved('read', 24)
        call leave_books(dir, 'done', rank)
        call hold(dir, 'done', rank)
        call MPI_FILE_CLOSE(fh, ierr)
        call did('MPI_File_close', '-')
      end if

      call MPI_COMM_FREE(ring, ierr)
      call did('MPI_Comm_free', '-')
      call leave_books(dir, 'end', rank)
      call MPI_FINALIZE(ierr)
      if (rank .eq. 0) write (*, '(a)') 'profile: done'
      end program
