/*
 * functions.h - the functions of the MPI library that the agent calls, with their parameters: one table for the code
 * (abi_template.h) and for the test that compares it with each library's mpi.h. X(name, (parameters)); types are
 * those of the ABI's description.
 */
#ifndef MPIT_ABI_FUNCTIONS_H
#define MPIT_ABI_FUNCTIONS_H

#define LIBRARY_FUNCTIONS(X)                                                                                        \
	X(MPI_T_init_thread, (int required, int *provided))                                                         \
	X(MPI_Query_thread, (int *provided))                                                                        \
	X(MPI_T_pvar_get_num, (int *count))                                                                         \
	X(MPI_T_pvar_get_info, (int index, char *name, int *name_length, int *verbosity, int *mpi_class,            \
				MPI_Datatype *type, MPI_T_enum *enumeration, char *description,                     \
				int *description_length, int *bind, int *readonly, int *continuous, int *atomic))   \
	X(MPI_T_pvar_session_create, (MPI_T_pvar_session *session))                                                 \
	X(MPI_T_pvar_handle_alloc, (MPI_T_pvar_session session, int index, void *object, MPI_T_pvar_handle *handle, \
				    int *count))                                                                    \
	X(MPI_T_pvar_handle_free, (MPI_T_pvar_session session, MPI_T_pvar_handle *handle))                          \
	X(MPI_T_pvar_start, (MPI_T_pvar_session session, MPI_T_pvar_handle handle))                                 \
	X(MPI_T_pvar_read, (MPI_T_pvar_session session, MPI_T_pvar_handle handle, void *values))                    \
	X(MPI_T_enum_get_info, (MPI_T_enum enumeration, int *items, char *name, int *name_length))                  \
	X(MPI_T_enum_get_item, (MPI_T_enum enumeration, int item, int *value, char *name, int *name_length))        \
	X(MPI_T_cvar_get_num, (int *count))                                                                         \
	X(MPI_T_cvar_get_info, (int index, char *name, int *name_length, int *verbosity, MPI_Datatype *type,        \
				MPI_T_enum *enumeration, char *description, int *description_length, int *bind,     \
				int *scope))                                                                        \
	X(MPI_T_cvar_handle_alloc, (int index, void *object, MPI_T_cvar_handle *handle, int *count))                \
	X(MPI_T_cvar_handle_free, (MPI_T_cvar_handle *handle))                                                      \
	X(MPI_T_cvar_read, (MPI_T_cvar_handle handle, void *value))                                                 \
	X(MPI_T_category_get_num, (int *count))                                                                     \
	X(MPI_T_category_get_info, (int index, char *name, int *name_length, char *description,                     \
				    int *description_length, int *cvars, int *pvars, int *categories))              \
	X(MPI_T_category_get_pvars, (int index, int length, int pvars[]))                                           \
	X(MPI_T_category_get_cvars, (int index, int length, int cvars[]))                                           \
	X(MPI_T_category_get_categories, (int index, int length, int categories[]))                                 \
	X(MPI_Comm_rank, (MPI_Comm comm, int *rank))                                                                \
	X(MPI_Comm_size, (MPI_Comm comm, int *size))                                                                \
	X(MPI_Comm_test_inter, (MPI_Comm comm, int *inter))                                                         \
	X(MPI_Comm_get_parent, (MPI_Comm *parent))                                                                  \
	X(MPI_Comm_get_name, (MPI_Comm comm, char *name, int *length))                                              \
	X(MPI_Comm_create_keyval, (int (*copy)(MPI_Comm, int, void *, void *, void *, int *),                       \
				   int (*deleted)(MPI_Comm, int, void *, void *), int *keyval, void *extra))        \
	X(MPI_Comm_set_attr, (MPI_Comm comm, int keyval, void *value))                                              \
	X(MPI_Comm_get_attr, (MPI_Comm comm, int keyval, void *value, int *found))                                  \
	X(MPI_Comm_remote_size, (MPI_Comm comm, int *size))                                                         \
	X(MPI_Topo_test, (MPI_Comm comm, int *topology))                                                            \
	X(MPI_Cartdim_get, (MPI_Comm comm, int *dimensions))                                                        \
	X(MPI_Cart_get, (MPI_Comm comm, int room, int dims[], int periods[], int coordinates[]))                    \
	X(MPI_Graphdims_get, (MPI_Comm comm, int *nodes, int *edges))                                               \
	X(MPI_Dist_graph_neighbors_count, (MPI_Comm comm, int *in, int *out, int *weighted))                        \
	X(MPI_Win_get_name, (MPI_Win win, char *name, int *length))                                                 \
	X(MPI_Win_create_keyval, (int (*copy)(MPI_Win, int, void *, void *, void *, int *),                         \
				  int (*deleted)(MPI_Win, int, void *, void *), int *keyval, void *extra))          \
	X(MPI_Win_set_attr, (MPI_Win win, int keyval, void *value))                                                 \
	X(MPI_Win_get_attr, (MPI_Win win, int keyval, void *value, int *found))                                     \
	X(MPI_Win_get_group, (MPI_Win win, MPI_Group *group))                                                       \
	X(MPI_Group_rank, (MPI_Group group, int *rank))                                                             \
	X(MPI_Group_size, (MPI_Group group, int *size))                                                             \
	X(MPI_Group_free, (MPI_Group *group))                                                                       \
	X(MPI_Op_commutative, (MPI_Op op, int *commutes))                                                           \
	X(MPI_Info_get_nkeys, (MPI_Info info, int *count))                                                          \
	X(MPI_Info_get_nthkey, (MPI_Info info, int n, char *key))                                                   \
	X(MPI_Info_get_valuelen, (MPI_Info info, const char *key, int *length, int *has))                           \
	X(MPI_Type_create_keyval, (int (*copy)(MPI_Datatype, int, void *, void *, void *, int *),                   \
				   int (*deleted)(MPI_Datatype, int, void *, void *), int *keyval, void *extra))    \
	X(MPI_Type_set_attr, (MPI_Datatype type, int keyval, void *value))                                          \
	X(MPI_Type_get_attr, (MPI_Datatype type, int keyval, void *value, int *found))                              \
	X(MPI_Type_get_name, (MPI_Datatype type, char *name, int *length))                                          \
	X(MPI_Type_get_envelope, (MPI_Datatype type, int *integers, int *addresses, int *types, int *combiner))     \
	X(MPI_Type_get_extent_x, (MPI_Datatype type, MPI_Count *lb, MPI_Count *extent))                             \
	X(MPI_Type_size_x, (MPI_Datatype type, MPI_Count *bytes))

/*
 * Without these the agent's own session works all the same: NULL where the library lacks one, CODE_NOT_SUPPORTED for
 * who asks for it. From MPI_T_event_get_num on they are MPI-4's, and the events' come together.
 */
#define OPTIONAL_FUNCTIONS(X)                                                                                       \
	X(MPI_T_pvar_session_free, (MPI_T_pvar_session *session))                                                   \
	X(MPI_T_pvar_stop, (MPI_T_pvar_session session, MPI_T_pvar_handle handle))                                  \
	X(MPI_T_pvar_write, (MPI_T_pvar_session session, MPI_T_pvar_handle handle, const void *values))             \
	X(MPI_T_pvar_reset, (MPI_T_pvar_session session, MPI_T_pvar_handle handle))                                 \
	X(MPI_T_pvar_readreset, (MPI_T_pvar_session session, MPI_T_pvar_handle handle, void *values))               \
	X(MPI_T_pvar_get_index, (const char *name, int mpi_class, int *index))                                      \
	X(MPI_T_cvar_write, (MPI_T_cvar_handle handle, const void *value))                                          \
	X(MPI_T_cvar_get_index, (const char *name, int *index))                                                     \
	X(MPI_T_category_get_index, (const char *name, int *index))                                                 \
	X(MPI_T_category_changed, (int *stamp))                                                                     \
	X(MPI_T_event_get_num, (int *count))                                                                        \
	X(MPI_T_event_get_info, (int index, char *name, int *name_length, int *verbosity, MPI_Datatype types[],     \
				 MPI_Aint displacements[], int *elements, MPI_T_enum *enumeration, MPI_Info *info,  \
				 char *description, int *description_length, int *bind))                            \
	X(MPI_T_event_handle_alloc, (int index, void *object, MPI_Info info, MPI_T_event_registration *registration)) \
	X(MPI_T_event_handle_free, (MPI_T_event_registration registration, void *data,                              \
				    void (*freed)(MPI_T_event_registration, MPI_T_cb_safety, void *)))              \
	X(MPI_T_event_register_callback, (MPI_T_event_registration registration, MPI_T_cb_safety safety,            \
					  MPI_Info info, void *data,                                                \
					  void (*raised)(MPI_T_event_instance, MPI_T_event_registration,            \
							 MPI_T_cb_safety, void *)))                                 \
	X(MPI_T_event_set_dropped_handler, (MPI_T_event_registration registration,                                  \
					    void (*dropped)(MPI_Count, MPI_T_event_registration, int,               \
							    MPI_T_cb_safety, void *)))                              \
	X(MPI_T_source_get_num, (int *count))                                                                       \
	X(MPI_T_source_get_info, (int index, char *name, int *name_length, char *description,                       \
				  int *description_length, MPI_T_source_order *order, MPI_Count *ticks,             \
				  MPI_Count *most, MPI_Info *info))                                                 \
	X(MPI_Type_get_envelope_c, (MPI_Datatype type, MPI_Count *integers, MPI_Count *addresses, MPI_Count *counts, \
				    MPI_Count *types, int *combiner))                                               \
	X(MPI_Group_from_session_pset, (MPI_Session session, const char *pset, MPI_Group *group))

#endif
