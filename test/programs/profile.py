"""profile DIR: known calls with mpi4py, and books of them as books.h keeps them. Hold point: "done"."""
import collections
import os
import sys

import mpi4py

mpi4py.rc.thread_level = "funneled"  # not every one-sided component allows more

from mpi4py import MPI  # noqa: E402 (starts MPI, so what is set must be set before)

sys.dont_write_bytecode = True  # beside the sources

from hold import hold  # noqa: E402

BOOKS = collections.Counter()


def did(function, thing, **moved):
    """One call of a function on an object, which has moved so many bytes in each direction."""
    BOOKS[function, "calls", thing] += 1
    for direction, count in moved.items():
        if count:
            BOOKS[function, direction, thing] += count


def leave_books(directory, point, rank):
    if directory == "-":
        return
    with open(os.path.join(directory, f"{point}.books.{rank}"), "w") as out:
        for (function, what, thing), count in BOOKS.items():
            print(function, what, count, thing, file=out)


def main():
    directory = sys.argv[1] if len(sys.argv) > 1 else "-"
    world = MPI.COMM_WORLD
    rank, size = world.Get_rank(), world.Get_size()
    following, before = (rank + 1) % size, (rank - 1) % size
    out, into = bytearray(400), bytearray(400)

    ring = world.Dup()
    did("MPI_Comm_dup", "comm:MPI_COMM_WORLD")
    ring.Set_name("ring")

    for count in (1, 10, 100):
        ring.Sendrecv([out, count, MPI.INT], following, recvbuf=[into, 100, MPI.INT], source=before)
        did("MPI_Sendrecv", "comm:ring", sent=4 * count, received=4 * count)
        requests = [ring.Irecv([into, 100, MPI.INT], before), ring.Isend([out, count, MPI.INT], following)]
        did("MPI_Irecv", "comm:ring", posted=400)
        did("MPI_Isend", "comm:ring", sent=4 * count)
        MPI.Request.Waitall(requests)
        did("MPI_Waitall", "-")
    ring.Bcast([out, 10, MPI.DOUBLE], 0)
    did("MPI_Bcast", "comm:ring", **{"sent" if rank == 0 else "received": 80})
    ring.Allreduce(MPI.IN_PLACE, [into, 3, MPI.INT])
    did("MPI_Allreduce", "comm:ring", sent=12, received=12)
    ring.Barrier()
    did("MPI_Barrier", "comm:ring")

    win = MPI.Win.Create(bytearray(64), 1, comm=ring)
    did("MPI_Win_create", "comm:ring")
    win.Set_name("box")
    win.Fence()
    win.Put([out, 8, MPI.BYTE], following)
    win.Fence()
    did("MPI_Win_fence", "win:box")
    did("MPI_Put", "win:box", sent=8)
    did("MPI_Win_fence", "win:box")

    leave_books(directory, "done", rank)
    hold(directory, "done", rank)
    win.Free()
    did("MPI_Win_free", "-")
    ring.Free()
    did("MPI_Comm_free", "-")
    leave_books(directory, "end", rank)
    if rank == 0:
        print("profile: done", flush=True)


main()
