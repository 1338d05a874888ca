#!/bin/bash
# Jobs of 4 ranks with a call profile, one after the other: even ones, JOB_SECONDS long, and ones with a late rank that last
# LATE_JOB_SECONDS, until there is an alert. The first signal ends it.
set -u
trap 'kill "$job" 2>/dev/null; exit 0' TERM INT
seconds=${JOB_SECONDS:-180}
for ((n = 1; ; n++)); do
	program=(halo "$seconds")
	((n % 2)) || program=(stencil --seconds="${LATE_JOB_SECONDS:-1500}" --pause=50 --slow=2 --factor=3 --output="${TMPDIR:-/tmp}/plate")
	# More ranks than cores are to share them; a container has no more than one name of a node.
	mpirun -n 4 --oversubscribe --mca mpi_yield_when_idle 1 --mca btl_vader_single_copy_mechanism none \
		mpit-exporter exec --calls=sizes,peers --job-id="demo-$n" -- "${program[@]}" &
	job=$!
	wait "$job"
	sleep 5 & wait $!
done
