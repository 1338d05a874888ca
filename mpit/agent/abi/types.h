/* types.h - those of MPI's types that are the same in every ABI. */
#ifndef MPIT_ABI_TYPES_H
#define MPIT_ABI_TYPES_H

#include <stdint.h>

typedef intptr_t MPI_Aint;
typedef long long MPI_Count;

typedef struct file *MPI_File; /* where other handles are integers, too */

typedef struct tool_enum *MPI_T_enum;
typedef struct tool_cvar_handle *MPI_T_cvar_handle;
typedef struct tool_pvar_handle *MPI_T_pvar_handle;
typedef struct tool_pvar_session *MPI_T_pvar_session;
typedef struct tool_event_instance *MPI_T_event_instance;
typedef struct tool_event_registration *MPI_T_event_registration;

/* Numbers of constants.h. */
typedef enum tool_cb_safety { TOOL_CB_SAFETY } MPI_T_cb_safety;
typedef enum tool_source_order { TOOL_SOURCE_ORDER } MPI_T_source_order;

#endif
