"""forks.py DIR: forks.c in Python, with mpi4py: children of subprocess, which ends by exec, and of os.fork."""
import os
import subprocess
import sys

from mpi4py import MPI

sys.dont_write_bytecode = True  # beside the sources

from hold import hold  # noqa: E402


def main():
    directory = sys.argv[1] if len(sys.argv) > 1 else "-"
    rank = MPI.COMM_WORLD.Get_rank()

    # With a function of its own subprocess forks in every version; without, it may start the child by vfork.
    status = [subprocess.run(["/bin/sh", "-c", "exit 12"], preexec_fn=os.getpid, check=False).returncode]
    child = os.fork()
    if child == 0:
        os._exit(10)
    status.append(os.WEXITSTATUS(os.waitpid(child, 0)[1]))
    hold(directory, "forked", rank)
    MPI.COMM_WORLD.Barrier()
    if rank == 0:
        print("forks: children's status", *status)


main()
