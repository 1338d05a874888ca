#%Module
## Environment Modules: the call profile of all MPI programs that are started while this module is loaded, beside the module mpit-exporter.
proc ModulesHelp { } {
    puts stderr "Counts and times every MPI call of your ranks, by function and communicator. Costs each call a little; unload it to do without."
}
module-whatis "Call profile of MPI jobs (https://github.com/mpit-exporter/mpit-exporter)"

set library /usr/lib/mpit-exporter/libmpit-calls.so

prereq mpit-exporter
# If the library is missing, the dynamic linker complains before each program.
if { [file isfile $library] && [file readable $library] } {
    prepend-path LD_PRELOAD $library
    setenv MPIT_CALLS_LIBRARY $library
}
