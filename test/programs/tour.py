"""tour DIR: the tour of README.md in Python, with mpi4py."""
import sys

import mpi4py

mpi4py.rc.thread_level = "funneled"  # not every one-sided component allows more

from mpi4py import MPI  # noqa: E402 (starts MPI, so what is set must be set before)

sys.dont_write_bytecode = True  # beside the sources

from hold import hold  # noqa: E402

SUMS = 3


def main():
    directory = sys.argv[1] if len(sys.argv) > 1 else "-"
    world = MPI.COMM_WORLD
    rank, size = world.Get_rank(), world.Get_size()

    ring = world.Dup()
    ring.Set_name("ring")
    total = sum(ring.allreduce(1) for _ in range(SUMS))

    half = world.Split(rank % 2, rank)
    half.Set_name("half")
    half.Barrier()
    half.Free()

    box = bytearray(64)
    win = MPI.Win.Create(box, 8, comm=ring)
    win.Set_name("box")
    win.Fence()
    win.Put([bytearray(8), 8, MPI.BYTE], (rank + 1) % size)
    win.Fence()

    hold(directory, "made", rank)

    win.Free()
    ring.Free()
    hold(directory, "freed", rank)

    if rank == 0:
        print(f"tour: {size} ranks, sum {total}", flush=True)


main()
