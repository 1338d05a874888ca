/*
 * abi.h - a part of abi_template.h: what only tools need of MPI_T's performance variables, control variables (MPI-4.1
 * section 15.3.6) and categories (15.3.9).
 */

/* The same of a function that a library may lack. */
#define OPTIONAL(name, parameters, function, ...)                                                       \
	static int name parameters                                                                      \
	{                                                                                               \
		return lib_##function == NULL ? CODE_NOT_SUPPORTED : code(lib_##function(__VA_ARGS__)); \
	}

OPTIONAL(session_close, (void **session), MPI_T_pvar_session_free, (MPI_T_pvar_session *)session)
OPTIONAL(handle_stop, (void *session, void *handle), MPI_T_pvar_stop, session, handle)
OPTIONAL(handle_write, (void *session, void *handle, const void *values), MPI_T_pvar_write, session, handle, values)
OPTIONAL(handle_reset, (void *session, void *handle), MPI_T_pvar_reset, session, handle)
OPTIONAL(handle_readreset, (void *session, void *handle, void *values), MPI_T_pvar_readreset, session, handle, values)
OPTIONAL(cvar_index, (const char *name, int *index), MPI_T_cvar_get_index, name, index)
OPTIONAL(category_index, (const char *name, int *index), MPI_T_category_get_index, name, index)
OPTIONAL(category_stamp, (int *stamp), MPI_T_category_changed, stamp)
OPTIONAL(pvar_index, (const char *name, int mpi_class, int *index), MPI_T_pvar_get_index, name,
	 MPI_T_PVAR_CLASS_STATE + mpi_class, index)

PASSED(cvar_count, (int *count), MPI_T_cvar_get_num, count)
PASSED(category_count, (int *count), MPI_T_category_get_num, count)

static int cvar_describe(int index, struct cvar_description *out, struct text *name, struct text *description)
{
	int name_length = sizeof name->bytes, description_length = sizeof description->bytes;
	int verbosity = 0, bind = 0, scope = 0, rc;
	MPI_Datatype type = datatype_null;
	MPI_T_enum enumeration = MPI_T_ENUM_NULL;

	name->bytes[0] = description->bytes[0] = '\0';
	rc = lib_MPI_T_cvar_get_info(index, name->bytes, &name_length, &verbosity, &type, &enumeration, description->bytes,
				     &description_length, &bind, &scope);
	if (rc != MPI_SUCCESS)
		return code(rc);
	out->scope = consecutive(scope, MPI_T_SCOPE_CONSTANT, MPI_T_SCOPE_ALL_EQ, 255);
	out->verbosity = verbosity_of(verbosity);
	out->bind = bind_of(bind);
	out->enumeration = enumeration == MPI_T_ENUM_NULL ? NULL : (void *)enumeration;
	describe_type(type, &out->datatype, &out->datatype_bytes);
	return CODE_SUCCESS;
}

static int cvar_read(int index, union mpi_object *object, int datatype, int datatype_bytes, void *bytes,
		     size_t capacity, int *count)
{
	struct openmpi_bound bound;
	MPI_T_cvar_handle handle;
	int rc;

	if (!abi_cvar_readable(index, datatype == TYPE_CHAR))
		return CODE_NOT_ACCESSIBLE;
	rc = lib_MPI_T_cvar_handle_alloc(index, abi_bound(object, &bound), &handle, count);
	if (rc != MPI_SUCCESS)
		return code(rc);
	if (*count < 0 || datatype_bytes <= 0 || (size_t)*count > capacity / (size_t)datatype_bytes) {
		lib_MPI_T_cvar_handle_free(&handle);
		return CODE_MEMORY;
	}
	rc = lib_MPI_T_cvar_read(handle, bytes);
	lib_MPI_T_cvar_handle_free(&handle);
	return code(rc);
}

static int cvar_write(int index, union mpi_object *object, int datatype, const void *bytes, int count, int *room)
{
	struct openmpi_bound bound;
	MPI_T_cvar_handle handle;
	int rc;

	if (!abi_cvar_readable(index, datatype == TYPE_CHAR))
		return CODE_NOT_ACCESSIBLE;
	if (lib_MPI_T_cvar_write == NULL)
		return CODE_NOT_SUPPORTED;
	rc = lib_MPI_T_cvar_handle_alloc(index, abi_bound(object, &bound), &handle, room);
	if (rc != MPI_SUCCESS)
		return code(rc);
	/* A string's count is the size of the buffer it is read into, which Open MPI doesn't check and MPICH only
	 * asserts. */
	if (datatype == TYPE_CHAR ? count >= *room : count != *room) {
		lib_MPI_T_cvar_handle_free(&handle);
		return CODE_MEMORY;
	}
	rc = lib_MPI_T_cvar_write(handle, bytes);
	lib_MPI_T_cvar_handle_free(&handle);
	return code(rc);
}

static int category_describe(int index, int *pvars, int *cvars, int *categories, struct text *name,
			     struct text *description)
{
	int name_length = sizeof name->bytes, description_length = sizeof description->bytes;

	name->bytes[0] = description->bytes[0] = '\0';
	return code(lib_MPI_T_category_get_info(index, name->bytes, &name_length, description->bytes, &description_length,
						cvars, pvars, categories));
}

static int category_members(int index, int pvars, int *pvar, int cvars, int *cvar, int categories, int *category)
{
	int rc = lib_MPI_T_category_get_pvars(index, pvars, pvar);

	if (rc == MPI_SUCCESS)
		rc = lib_MPI_T_category_get_cvars(index, cvars, cvar);
	if (rc == MPI_SUCCESS)
		rc = lib_MPI_T_category_get_categories(index, categories, category);
	return code(rc);
}
