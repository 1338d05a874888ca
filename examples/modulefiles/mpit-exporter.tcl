#%Module
## Environment Modules: all MPI programs that are started while this module is loaded are observed.
proc ModulesHelp { } {
    puts stderr "MPI_T metrics of your ranks on the site's Prometheus. Nothing to recompile; unload it to do without."
}
module-whatis "MPI_T metrics of MPI jobs (https://github.com/mpit-exporter/mpit-exporter)"

set library /usr/lib/mpit-exporter/libmpit-agent.so

# If the library is missing, the dynamic linker complains before each program.
if { [file isfile $library] && [file readable $library] } {
    prepend-path LD_PRELOAD $library
    append-path ASAN_OPTIONS verify_asan_link_order=0 ;# or AddressSanitizer ends its programs, for a library comes before its own
    setenv MPIT_AGENT_LIBRARY $library
}
