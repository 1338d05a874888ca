#!/bin/bash
# Jobs of 4 ranks, one after the other, each a few minutes long, so that one is always running and some have ended.
# The first signal ends it. Open MPI's monitoring component ends some programs, but not this one.
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
