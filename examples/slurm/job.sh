#!/bin/sh
#SBATCH --job-name=halo
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --time=00:10:00
# A job of a user's own choice: in front of the program stands mpit-exporter exec. Job, step, job name and partition become labels by
# themselves (docs/labels.md).
srun mpit-exporter exec -- "${PROGRAM:-./app}" "$@"
