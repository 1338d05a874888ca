! Hold points for the Fortran programs: see README.md and hold.h. An external procedure, so that mpif.h programs can call it too.
subroutine hold(dir, name, rank)
  use, intrinsic :: iso_c_binding, only: c_int
  implicit none
  character(len=*), intent(in) :: dir, name
  integer, intent(in) :: rank
  interface
    integer(c_int) function usleep(microseconds) bind(c)
      import :: c_int
      integer(c_int), value :: microseconds
    end function
  end interface
  integer, parameter :: pause = 5000, limit = 3600 * (1000000 / pause)
  character(len=16) :: number
  integer :: unit, tries, status
  logical :: go

  if (dir == '-') return
  write (number, '(i0)') rank
  open (newunit=unit, file=trim(dir)//'/'//trim(name)//'.'//trim(number), status='replace', action='write')
  close (unit)
  do tries = 1, limit
    inquire (file=trim(dir)//'/'//trim(name)//'.go', exist=go)
    if (go) return
    status = usleep(pause)
  end do
  stop 99
end subroutine
