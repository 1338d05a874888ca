#!/bin/sh
#SBATCH --job-name=halo
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --time=00:10:00
# A job whose user asks for it: mpit-exporter exec in front of the program. Job, step, job name and partition become labels
# (docs/labels.md).
srun mpit-exporter exec -- "${PROGRAM:-./app}" "$@"
