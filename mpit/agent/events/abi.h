/*
 * abi.h - a part of abi_template.h: MPI_T's events (MPI-4.1 section 15.3.8). Libraries before MPI-4 have none of these
 * functions.
 */

/* ---- callbacks: any thread, also inside a signal handler ---- */

static void event_raised(MPI_T_event_instance instance, MPI_T_event_registration registration, MPI_T_cb_safety safety,
			 void *count)
{
	(void)instance, (void)registration, (void)safety;
	atomic_fetch_add_explicit(&((struct event_count *)count)->raised, 1, memory_order_relaxed);
}

static void event_dropped(MPI_Count count, MPI_T_event_registration registration, int source, MPI_T_cb_safety safety,
			  void *unused)
{
	(void)registration, (void)source, (void)safety, (void)unused;
	atomic_fetch_add_explicit(&events_dropped, (uint64_t)count, memory_order_relaxed);
}

static void event_freed(MPI_T_event_registration registration, MPI_T_cb_safety safety, void *count)
{
	(void)registration, (void)safety;
	atomic_store(&((struct event_count *)count)->freed, true);
}

/* ---- types and sources ---- */

static int event_count(int *count)
{
	return lib_MPI_T_event_get_num == NULL ? CODE_NOT_SUPPORTED : code(lib_MPI_T_event_get_num(count));
}

static int event_describe(int index, int *verbosity, int *bind, struct text *name, struct text *description)
{
	int name_length = sizeof name->bytes, description_length = sizeof description->bytes, elements = 0, rc;
	MPI_T_enum enumeration;

	name->bytes[0] = description->bytes[0] = '\0';
	rc = lib_MPI_T_event_get_info(index, name->bytes, &name_length, verbosity, NULL, NULL, &elements, &enumeration, NULL,
				      description->bytes, &description_length, bind);
	*verbosity = verbosity_of(*verbosity);
	*bind = bind_of(*bind);
	return code(rc);
}

static int event_source_count(int *count)
{
	return lib_MPI_T_source_get_num == NULL ? CODE_NOT_SUPPORTED : code(lib_MPI_T_source_get_num(count));
}

static int event_source_describe(int index, struct event_source *out, struct text *name, struct text *description)
{
	int name_length = sizeof name->bytes, description_length = sizeof description->bytes, rc;
	MPI_T_source_order order = (MPI_T_source_order)0;
	MPI_Count ticks = 0, most = 0;

	name->bytes[0] = description->bytes[0] = '\0';
	rc = lib_MPI_T_source_get_info(index, name->bytes, &name_length, description->bytes, &description_length, &order,
				       &ticks, &most, NULL);
	*out = (struct event_source){ .ordered = (int)order == MPI_T_SOURCE_ORDERED, .ticks_per_second = ticks };
	return code(rc);
}

/* ---- registrations ---- */

static int event_close(struct event_count *count)
{
	return code(lib_MPI_T_event_handle_free(count->registration, count, event_freed));
}

/*
 * The callback keeps every promise that there is. It is registered for each of them, because Open MPI 6 looks for the
 * highest one in vain.
 */
static int event_open(int index, union mpi_object *object, struct event_count *count)
{
	static const int safeties[] = { MPI_T_CB_REQUIRE_NONE, MPI_T_CB_REQUIRE_MPI_RESTRICTED, MPI_T_CB_REQUIRE_THREAD_SAFE,
					MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE };
	MPI_T_event_registration registration;
	struct openmpi_bound bound;
	int registered = 0, rc;

	rc = lib_MPI_T_event_handle_alloc(index, abi_bound(object, &bound), info_null, &registration);
	if (rc != MPI_SUCCESS)
		return code(rc);
	count->registration = registration;
	lib_MPI_T_event_set_dropped_handler(registration, event_dropped);
	for (size_t i = 0; i < sizeof safeties / sizeof *safeties; i++)
		if (lib_MPI_T_event_register_callback(registration, (MPI_T_cb_safety)safeties[i], info_null, count,
						      event_raised) == MPI_SUCCESS)
			registered++;
	if (registered > 0)
		return CODE_SUCCESS;
	event_close(count);
	return CODE_NOT_SUPPORTED;
}
