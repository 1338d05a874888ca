! Books for the Fortran programs: see README.md and books.h. External procedures, so that mpif.h programs can call them too.
module books_kept
  implicit none
  type entry
    character(len=40) :: function = '', object = ''
    integer :: calls = 0
    integer :: bytes(5) = 0
  end type
  character(len=8), parameter :: directions(5) = [character(len=8) :: 'sent', 'received', 'posted', 'written', 'read']
  type(entry), save :: entries(200)
  integer, save :: known = 0, last = 0
end module

! One call of a function on an object.
subroutine did(function, object)
  use books_kept
  implicit none
  character(len=*), intent(in) :: function, object

  do last = 1, known
    if (entries(last)%function == function .and. entries(last)%object == object) exit
  end do
  if (last > known) known = last
  if (known > size(entries)) stop 95
  entries(last)%function = function
  entries(last)%object = object
  entries(last)%calls = entries(last)%calls + 1
end subroutine

! So many bytes by the call that was told of last.
subroutine moved(direction, bytes)
  use books_kept
  implicit none
  character(len=*), intent(in) :: direction
  integer, intent(in) :: bytes
  integer :: i

  do i = 1, size(directions)
    if (directions(i) == direction) entries(last)%bytes(i) = entries(last)%bytes(i) + bytes
  end do
end subroutine

! Leaves the books in the file DIR/POINT.books.RANK. An object's name "data" stands for the file DIR/data.
subroutine leave_books(dir, point, rank)
  use books_kept
  implicit none
  character(len=*), intent(in) :: dir, point
  integer, intent(in) :: rank
  character(len=16) :: number
  character(len=1100) :: object
  integer :: unit, i, k

  if (dir == '-') return
  write (number, '(i0)') rank
  open (newunit=unit, file=trim(dir)//'/'//trim(point)//'.books.'//trim(number), status='replace', action='write')
  do i = 1, known
    object = entries(i)%object
    if (object == 'file:data') object = 'file:'//trim(dir)//'/data'
    write (unit, '(a,i0,a)') trim(entries(i)%function)//' calls ', entries(i)%calls, ' '//trim(object)
    do k = 1, size(directions)
      if (entries(i)%bytes(k) == 0) cycle
      write (unit, '(a,i0,a)') trim(entries(i)%function)//' '//trim(directions(k))//' ', entries(i)%bytes(k), ' '//trim(object)
    end do
  end do
  close (unit)
end subroutine
