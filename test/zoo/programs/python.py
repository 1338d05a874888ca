"""python - trouble, and none, in programs that use mpi4py. Arguments as in zoo.h."""

import signal
import sys
import time

kind, culprit, partner, tag, name, order = (sys.argv + [""] * 7)[1:7]
culprit, partner, tag = int(culprit), int(partner), int(tag)
signal.alarm(600)


def compute(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def busy(seconds):
    compute(seconds)
    return 1


def futures(seconds):
    """A pool whose workers have work for all of the time, or nothing after the first second."""
    from mpi4py.futures import MPICommExecutor
    from mpi4py import MPI

    with MPICommExecutor(MPI.COMM_WORLD, root=0) as pool:
        if pool is None:
            return
        list(pool.map(busy, [0.1] * 10))
        while kind == "futures-busy":
            list(pool.map(busy, [0.2] * 20))
        time.sleep(seconds)


def main():
    if kind.startswith("futures"):
        futures(600)
        return
    from mpi4py import MPI

    comm = MPI.COMM_WORLD.Dup()
    comm.Set_name(name)
    rank = comm.Get_rank()
    for _ in range(20):
        compute(0.02)
        comm.allreduce(1)
    while kind == "late":
        compute(0.09 if rank == culprit else 0.01)
        comm.allreduce(1)
    if kind == "receive":  # mpi4py's recv probes first
        if rank == partner:
            comm.recv(source=culprit, tag=tag)
        comm.Barrier()
    if kind == "raises":  # and the others wait for ever
        if rank == culprit:
            raise ValueError("planted")
        comm.Barrier()
    if kind == "input":  # reads what nobody writes
        import os

        ends = os.pipe()
        if rank == culprit:
            os.read(ends[0], 1)
        comm.Barrier()


main()
