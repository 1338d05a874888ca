#!/bin/sh
# targets.sh FILE.json: Slurm's nodes as targets for Prometheus' file_sd_configs, by cron or a timer each minute, where sinfo works
# (docs/deploy.md). If slurmctld doesn't answer, the file stays as it is. PORT is the exporters'.
#
# Nodes that are switched off, or being switched on or off, are left out; the others have their state as __meta_slurm_state (idle,
# allocated, drained, down …), and their partitions, between commas, as __meta_slurm_partitions. Where Prometheus can't resolve the names
# of nodes, ask for %o (NodeAddr) in the place of %N.
set -eu
nodes=$(sinfo --Node --noheader --format='%N %T %R')
echo "$nodes" | awk -v port="${PORT:-10093}" '
	NF && $2 !~ /[~#%!]$/ { # without nodes there is one empty line
		if (!($1 in partitions)) order[++count] = $1
		state[$1] = $2
		gsub(/[^a-z]+$/, "", state[$1]) # * doesn'\''t answer, $ maintenance, @ and ^ reboot, - planned
		partitions[$1] = partitions[$1] "," $3
	}
	END {
		print "["
		for (i = 1; i <= count; i++) {
			node = order[i]
			printf "{\"targets\": [\"%s:%s\"], \"labels\": {\"__meta_slurm_state\": \"%s\", \"__meta_slurm_partitions\": \"%s,\"}}%s\n",
				node, port, state[node], partitions[node], i < count ? "," : ""
		}
		print "]"
	}' >"$1.new"
mv "$1.new" "$1"
