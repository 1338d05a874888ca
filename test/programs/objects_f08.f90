! objects DIR: what objects_mpifh.f makes, with `use mpi_f08`.
module callbacks
  use mpi_f08
  implicit none
contains
  subroutine add(a, b, n, t)
    use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
    type(c_ptr), value :: a, b
    integer :: n
    type(MPI_Datatype) :: t
    integer, pointer :: from(:), to(:)

    if (t == MPI_DATATYPE_NULL) return
    call c_f_pointer(a, from, [n])
    call c_f_pointer(b, to, [n])
    to = to + from
  end subroutine

  subroutine failed(comm, code)
    type(MPI_Comm) :: comm
    integer :: code

    write (*, *) comm%MPI_VAL, code
  end subroutine
end module

program objects
  use mpi_f08
  use callbacks
  implicit none
  external :: hold
  type(MPI_File) :: file
  type(MPI_Datatype) :: vector
  type(MPI_Op) :: op
  type(MPI_Group) :: world, again
  type(MPI_Info) :: info
  type(MPI_Errhandler) :: errors
  type(MPI_Request) :: request
  integer :: rank
  integer, asynchronous :: number
  character(len=1024) :: dir
  character(len=1100) :: name

  call get_command_argument(1, dir)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  if (dir == '-') then
    write (name, '(a,i0)') '/tmp/objects-f08.', rank
  else
    write (name, '(a,a,i0)') trim(dir), '/data.', rank
  end if
  call MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE + MPI_MODE_RDWR + MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, file)
  call MPI_Type_vector(3, 1, 4, MPI_INTEGER, vector)
  call MPI_Type_commit(vector)
  call MPI_Type_set_name(vector, 'column')
  call MPI_Op_create(add, .true., op)
  call MPI_Comm_group(MPI_COMM_WORLD, world)
  call MPI_Comm_group(MPI_COMM_WORLD, again)
  call MPI_Info_create(info)
  call MPI_Info_set(info, 'one', '1')
  call MPI_Comm_create_errhandler(failed, errors)
  call MPI_Send_init(number, 1, MPI_INTEGER, rank, 0, MPI_COMM_WORLD, request)
  call hold(dir, 'made', rank)

  call MPI_File_close(file)
  call MPI_Type_free(vector)
  call MPI_Op_free(op)
  call MPI_Group_free(world)
  call MPI_Group_free(again)
  call MPI_Info_free(info)
  call MPI_Errhandler_free(errors)
  call MPI_Request_free(request)
  call hold(dir, 'freed', rank)
  call MPI_Finalize()
  if (rank == 0) write (*, '(a)') 'objects: done'
end program
