#!/bin/sh
# TaskProlog= of slurm.conf: every task of every job is observed, whether its user knows it or not. slurmstepd puts what follows
# "export" on standard output into the task's environment. No SPANK plugin is needed.
#
# Programs without MPI are left alone; with MPIT_AGENT_DISABLE=1, the user's way out, nothing is preloaded. MPIT_CALLS=1 in a job's environment (sbatch
# --export=ALL,MPIT_CALLS=1) adds the call profile; a site that wants it for all jobs writes : ${MPIT_CALLS:=1} below, and
# which one into /etc/mpit-exporter/jobs.conf.
library=${MPIT_AGENT_LIBRARY:-/usr/lib/mpit-exporter/libmpit-agent.so}
calls=${MPIT_CALLS_LIBRARY:-${library%/*}/libmpit-calls.so}

case ${MPIT_AGENT_DISABLE:-0} in
0) ;;
*) exit 0 ;;
esac
[ -r "$library" ] || exit 0 # else the dynamic linker would complain in each program
preload=$LD_PRELOAD
add() {
	[ -r "$1" ] || return 0
	case ":$preload:" in
	*":$1:"*) ;; # mpit-exporter exec, or the module
	*) preload=$1${preload:+:$preload} ;;
	esac
}
add "$library"
case ${MPIT_CALLS:-0} in
0) ;;
*) add "$calls" ;;
esac
[ "$preload" = "$LD_PRELOAD" ] || echo "export LD_PRELOAD=$preload"
# AddressSanitizer ends a program if a library is loaded before its own, unless it is told not to check.
case $ASAN_OPTIONS in
*verify_asan_link_order*) ;;
*) echo "export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0" ;;
esac
