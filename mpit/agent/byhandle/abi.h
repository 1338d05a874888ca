/* abi.h - a part of abi_template.h: what the library tells of objects without attributes; and of any object. */

static void describe_mode(int mode, struct details *d)
{
	static const struct {
		int bit;
		const char *name;
	} bits[] = {
		{ MPI_MODE_RDONLY, "rdonly" },
		{ MPI_MODE_WRONLY, "wronly" },
		{ MPI_MODE_RDWR, "rdwr" },
		{ MPI_MODE_CREATE, "create" },
		{ MPI_MODE_EXCL, "excl" },
		{ MPI_MODE_DELETE_ON_CLOSE, "delete_on_close" },
		{ MPI_MODE_UNIQUE_OPEN, "unique_open" },
		{ MPI_MODE_APPEND, "append" },
		{ MPI_MODE_SEQUENTIAL, "sequential" },
	};
	struct detail_list names = { 0 };

	for (size_t i = 0; i < sizeof bits / sizeof bits[0]; i++)
		if (mode & bits[i].bit)
			list_add(&names, bits[i].name);
	details_list(d, "mode", &names);
}

/* Of a new one, which no other thread knows: a key that is gone meanwhile would be an error, and an error is fatal. */
static bool describe_info(MPI_Info info, struct object_description *out)
{
	char key[1024]; /* MPI_MAX_INFO_KEY is 36 (Open MPI) or 255 (MPICH); the library in the process may be a later one */
	struct detail_list keys = { 0 };
	int count = 0;

	if (lib_MPI_Info_get_nkeys(info, &count) != MPI_SUCCESS)
		return true;
	for (int i = 0; i < count && !keys.full; i++)
		if (lib_MPI_Info_get_nthkey(info, i, key) == MPI_SUCCESS)
			list_add(&keys, key);
	details_list(&out->details, "keys", &keys);
	return true;
}

static bool info_has(const union mpi_object *info, const char *key)
{
	int length, has = 0;

	return lib_MPI_Info_get_valuelen(HANDLE_GET(MPI_Info, info), key, &length, &has) == MPI_SUCCESS && has;
}

static bool describe_op(MPI_Op op, struct object_description *out)
{
	int commutes = 0;

	if (lib_MPI_Op_commutative(op, &commutes) == MPI_SUCCESS)
		details_add(&out->details, "commutative", commutes ? "true" : "false");
	return true;
}

static bool object_describe(int kind, const union mpi_object *object, const struct making *how,
			    struct object_description *out)
{
	out->rank = out->size = -1;
	out->inter = false;
	details_reset(&out->details);
	switch (kind) {
	case BIND_COMM: return describe_comm(HANDLE_GET(MPI_Comm, object), out);
	case BIND_WIN: return describe_win(HANDLE_GET(MPI_Win, object), out);
	case BIND_DATATYPE: return describe_datatype(HANDLE_GET(MPI_Datatype, object), out);
	case BIND_GROUP: return describe_group(HANDLE_GET(MPI_Group, object), out);
	case BIND_OP: return describe_op(HANDLE_GET(MPI_Op, object), out);
	case BIND_INFO: return describe_info(HANDLE_GET(MPI_Info, object), out);
	case BIND_FILE:
		if (how != NULL)
			describe_mode(how->mode, &out->details);
		return true;
	default: return true;
	}
}
