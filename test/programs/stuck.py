"""stuck.py DIR: as stuck_f08.f90, with mpi4py."""
import sys

from hold import hold
from mpi4py import MPI

rank = MPI.COMM_WORLD.Get_rank()
if rank != 0:
    hold(sys.argv[1], "late", rank)
MPI.COMM_WORLD.Barrier()
if rank == 0:
    print("stuck.py: done")
