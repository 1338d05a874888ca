-- Lmod: all MPI programs that are started while this module is loaded are observed.
-- Load it behind the MPI module, or let the MPI module load it: depends_on("mpit-exporter").
help([[MPI_T metrics of your ranks on the site's Prometheus. Nothing to recompile; unload it to do without.]])
whatis("Name: mpit-exporter")
whatis("URL: https://github.com/mpit-exporter/mpit-exporter")

local library = "/usr/lib/mpit-exporter/libmpit-agent.so"

-- A library that is not there would make the dynamic linker complain in front of each program.
if isFile(library) then
	prepend_path("LD_PRELOAD", library)
	append_path("ASAN_OPTIONS", "verify_asan_link_order=0") -- or AddressSanitizer ends its programs, for a library comes before its own
	setenv("MPIT_AGENT_LIBRARY", library) -- for mpit-exporter exec
end
