#!/bin/sh
# TaskProlog= of slurm.conf: every task of every job is observed, whether its user knows of it or not. slurmstepd takes what stands behind
# "export" on standard output into the task's environment. No SPANK plugin is needed.
#
# Programs without MPI are left alone; MPIT_AGENT_DISABLE=1 is the user's way out.
library=${MPIT_AGENT_LIBRARY:-/usr/lib/mpit-exporter/libmpit-agent.so}

[ -r "$library" ] || exit 0 # else the dynamic linker would complain in each program
case ":$LD_PRELOAD:" in
*":$library:"*) exit 0 ;; # mpit-exporter exec, or the module
esac
echo "export LD_PRELOAD=$library${LD_PRELOAD:+:$LD_PRELOAD}"
