! sites_mpifh DIR: a barrier before hold point "first", then five and three from two lines. Hold point: "done".
      program sites
      implicit none
      include 'mpif.h'
      external hold
      integer ierr, rank, i
      character*1024 dir

      call get_command_argument(1, dir)
      call MPI_INIT(ierr)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
      do i = 1, 9
        if (i .eq. 1) then
          call MPI_BARRIER(MPI_COMM_WORLD, ierr)
          call hold(dir, 'first', rank)
        else if (i .le. 6) then
!         Line 18.
          call MPI_BARRIER(MPI_COMM_WORLD, ierr)
        else
!         Line 21.
          call MPI_BARRIER(MPI_COMM_WORLD, ierr)
        end if
      end do
      call hold(dir, 'done', rank)
      call MPI_FINALIZE(ierr)
      end
