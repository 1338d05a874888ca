#!/bin/sh
# targets.sh FILE.json: PBS' nodes as targets for Prometheus' file_sd_configs, by cron or a timer each minute, where pbsnodes works
# (docs/deploy.md). For OpenPBS, PBS Professional and Torque. If the server doesn't answer, the file stays as it is. PORT is the exporters'.
#
# Nodes that sleep are left out; the others have their state as __meta_pbs_state (free, job-busy, offline, down …). Of vnodes that are one
# machine (Mom) there is one target, with the state of the first.
set -eu
nodes=$(pbsnodes -a)
echo "$nodes" | awk -v port="${PORT:-10093}" '
	function add() {
		if (node != "" && state !~ /(^|,)sleep(,|$)/ && !(node in seen)) {
			seen[node] = 1
			printf "%s{\"targets\": [\"%s:%s\"], \"labels\": {\"__meta_pbs_state\": \"%s\"}}", separator, node, port, state
			separator = ",\n"
		}
		node = state = ""
	}
	BEGIN { print "[" }
	/^[^ \t]/ { add(); node = $1 }
	$1 == "Mom" && $2 == "=" { node = $3 }
	$1 == "state" && $2 == "=" { state = $3 }
	END { add(); print "\n]" }' >"$1.new"
mv "$1.new" "$1"
