/*
 * deny.h - which variables are never opened, and which are opened only on request.
 *
 * Lists of glob patterns (fnmatch) with commas between them. MPIT_AGENT_DENY takes the place of
 * the default; with a leading + it is added to it; empty denies nothing. MPIT_AGENT_OPEN requests
 * variables from the beginning; others are requested while the program runs (session_request).
 */
#ifndef MPIT_DENY_H
#define MPIT_DENY_H

#include <stdbool.h>
#include <stddef.h>

/*
 * mtl_psm2_*         crash in handle_alloc where PSM2 is not in use, holding the MPI_T lock
 * osc_rdma_*_count   treat any window's module as their own
 * pml_monitoring_flush, *_monitoring_flush   reset every monitoring counter when bound
 */
#define DENY_DEFAULT "mtl_psm2_*,osc_rdma_*_count,*_monitoring_flush"

/*
 * Of these Open MPI stops all handles of the process, and what they count, when one is stopped: a tool's own session
 * would end everybody's figures. They can be started, read, reset and freed.
 */
#define NEVER_STOP_OPENMPI "*_monitoring_*"

/*
 * From the first start of a handle on, each message pays for these (Open MPI 5's SPC). Those of Open MPI 4 are
 * continuous, and freed in MPI_Finalize before the last sample, in which reading them would crash: they are never
 * opened.
 */
#define ON_REQUEST_OPENMPI "runtime_spc_*," NEVER_STOP_OPENMPI

#define DENY_BYTES 4096

/* The list in force, from the value of MPIT_AGENT_DENY (NULL: not set). A longer list is cut. */
void deny_list(const char *value, char list[DENY_BYTES]);

/*
 * The same of MPIT_AGENT_OPEN. Where it isn't set, or begins with +, who has switched such variables on in the
 * environment has requested them, by Open MPI's parameters pml_monitoring_enable (a number) and mpi_spc_attach (names
 * with commas between them, or all).
 */
void open_list(const char *value, const char *monitoring, const char *attached, char list[DENY_BYTES]);

bool deny_matches(const char *list, const char *name);

#endif
