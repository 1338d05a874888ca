#!/bin/bash
# Jobs of 4 ranks, one after the other, each of some minutes: so that there is always one that runs, and some that have ended.
# The first signal ends it. Open MPI's monitoring component, which ends some programs, does this one no harm.
set -u
trap 'kill "$job" 2>/dev/null; exit 0' TERM INT
for ((n = 1; ; n++)); do
	# More ranks than cores are to share them; a container has no more than one name of a node.
	mpirun -n 4 --oversubscribe --mca mpi_yield_when_idle 1 --mca btl_vader_single_copy_mechanism none --mca pml_monitoring_enable 2 \
		mpit-exporter exec --monitoring --job-id="demo-$n" -- halo "${JOB_SECONDS:-180}" &
	job=$!
	wait "$job"
	sleep 5 & wait $!
done
