
static MEASURES int measure_MPI_Get_accumulate_c(next_12 *next, const void *frame, intptr_t buf, intptr_t count, intptr_t type, intptr_t resultbuf, intptr_t resultcount, intptr_t resulttype, intptr_t target, intptr_t disp, intptr_t targetcount, intptr_t targettype, intptr_t op, intptr_t win)
{
	struct call call;

	if (!call_begins(&call, FUNCTION_MPI_Get_accumulate, BIND_WIN, win, UNORDERED, call_names(target, NO_TAG), frame))
		return next(buf, count, type, resultbuf, resultcount, resulttype, target, disp, targetcount, targettype, op, win);
	int rc = next(buf, count, type, resultbuf, resultcount, resulttype, target, disp, targetcount, targettype, op, win);
	call_returns(&call, SENDING);
	struct moved moved = NOTHING_MOVED;
	if (rc == 0)
		moved = (struct moved){ .out = is_peer((int)target) && reads_origin(op) ? bytes_of(count, type) : 0, .in = is_peer((int)target) ? bytes_of(resultcount, resulttype) : 0 };
	call_counts(&call, moved.out, moved.in);
	if (counts_sizes() && rc == 0)
		call_size(&call, larger(moved));
	if (counts_peers() && rc == 0 && is_peer((int)target) && reads_origin(op))
		call_sends(&call, BIND_WIN, (int)target, moved.out);
	return rc;
}

EXPORT int MPI_Get_accumulate_c(intptr_t buf, intptr_t count, intptr_t type, intptr_t resultbuf, intptr_t resultcount, intptr_t resulttype, intptr_t target, intptr_t disp, intptr_t targetcount, intptr_t targettype, intptr_t op, intptr_t win)
{
	NEXT(next_12, MPI_Get_accumulate_c);
	return measure_MPI_Get_accumulate_c(next, FRAME, buf, count, type, resultbuf, resultcount, resulttype, target, disp, targetcount, targettype, op, win);
}

EXPORT int PMPI_Get_accumulate_c(intptr_t buf, intptr_t count, intptr_t type, intptr_t resultbuf, intptr_t resultcount, intptr_t resulttype, intptr_t target, intptr_t disp, intptr_t targetcount, intptr_t targettype, intptr_t op, intptr_t win)
{
	NEXT(next_12, PMPI_Get_accumulate_c);
	return measure_MPI_Get_accumulate_c(next, FRAME, buf, count, type, resultbuf, resultcount, resulttype, target, disp, targetcount, targettype, op, win);
}
