#!/bin/sh
#PBS -N halo
#PBS -l select=2:ncpus=4:mpiprocs=4
#PBS -l walltime=00:10:00
# PBS_JOBID, PBS_JOBNAME and PBS_QUEUE reach the ranks if mpirun was built for PBS. Otherwise pass them on
# (Open MPI: -x PBS_JOBID, MPICH: -genvlist PBS_JOBID).
cd "${PBS_O_WORKDIR:-.}" || exit
mpirun mpit-exporter exec -- "${PROGRAM:-./app}" "$@"
