-- Lmod: the call profile of all MPI programs that are started while this module is loaded, beside the module mpit-exporter.
help([[Counts and times every MPI call of your ranks, by function and communicator. Costs each call a little; unload it to do without.]])
whatis("Name: mpit-calls")
whatis("URL: https://github.com/mpit-exporter/mpit-exporter")

local library = "/usr/lib/mpit-exporter/libmpit-calls.so"

depends_on("mpit-exporter")
-- A library that is not there would make the dynamic linker complain in front of each program.
if isFile(library) then
	prepend_path("LD_PRELOAD", library)
	setenv("MPIT_CALLS_LIBRARY", library)
end
