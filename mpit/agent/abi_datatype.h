/* abi_datatype.h - abi_datatype() where predefined datatypes are constants. Included after abi_template.h. */
static int abi_datatype(MPI_Datatype type)
{
	static const struct {
		MPI_Datatype mpi;
		int ours;
	} types[] = {
		{ MPI_INT, TYPE_INT },
		{ MPI_UNSIGNED, TYPE_UNSIGNED },
		{ MPI_UNSIGNED_LONG, TYPE_UNSIGNED_LONG },
		{ MPI_UNSIGNED_LONG_LONG, TYPE_UNSIGNED_LONG_LONG },
		{ MPI_COUNT, TYPE_COUNT },
		{ MPI_CHAR, TYPE_CHAR },
		{ MPI_DOUBLE, TYPE_DOUBLE },
		{ MPI_INT32_T, TYPE_INT32 },
		{ MPI_INT64_T, TYPE_INT64 },
		{ MPI_UINT32_T, TYPE_UINT32 },
		{ MPI_UINT64_T, TYPE_UINT64 },
		{ MPI_LONG, TYPE_LONG },
		{ MPI_LONG_LONG, TYPE_LONG_LONG },
		{ MPI_FLOAT, TYPE_FLOAT },
		{ MPI_C_BOOL, TYPE_BOOL },
	};

	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
		if (types[i].mpi == type)
			return types[i].ours;
	return TYPE_OTHER;
}
