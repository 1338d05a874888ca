package mapping

// Reason says why a variable, or a value of one, is not shown. The set is small and fixed: it is a metric's label.
type Reason string

// Reasons for which something is left out.
const (
	// Of a variable.
	ReasonRule        Reason = "rule"         // a rule says drop
	ReasonDenied      Reason = "denied"       // the agent's deny list
	ReasonAllocFailed Reason = "alloc_failed" // MPI_T_pvar_handle_alloc
	ReasonStartFailed Reason = "start_failed" // MPI_T_pvar_start
	ReasonExhausted   Reason = "exhausted"    // the agent's memory or MPI_T's handles
	ReasonDatatype    Reason = "datatype"     // not a number
	// of a class, a datatype or a number of elements that no distribution has; also of a handle
	ReasonDistribution  Reason = "distribution"
	ReasonGenericString Reason = "generic_string" // GENERIC and a string
	ReasonTypeConflict  Reason = "type_conflict"  // its family has another holder
	// another variable of the rank has the same family and the same labels
	ReasonLabelConflict   Reason = "label_conflict"
	ReasonDuplicate       Reason = "duplicate"         // name and class occur twice in one rank
	ReasonFamiliesOverMax Reason = "families_over_max" // Config.MaxFamilies

	// Of a variable, or of some of its objects or elements: a limit on series (Limits).
	ReasonSeriesOverLimit   Reason = "series_over_limit"
	ReasonJobOverLimit      Reason = "job_over_limit"
	ReasonUserOverLimit     Reason = "user_over_limit"
	ReasonRankOverLimit     Reason = "rank_over_limit"
	ReasonVariableOverLimit Reason = "variable_over_limit"

	// Of a value. ReasonReadFailed stands for variables too, as their state.
	ReasonReadFailed Reason = "read_failed"  // MPI_T_pvar_read
	ReasonNegative   Reason = "negative"     // below zero in a class that only grows
	ReasonNotANumber Reason = "not_a_number" // NaN or infinite
	ReasonOutOfRange Reason = "out_of_range" // a PERCENTAGE that is not from 0 to 1

	// Of objects, handles and what the exporter itself keeps.
	ReasonObjectsOverBound Reason = "objects_over_bound"
	ReasonHandlesOverBound Reason = "handles_over_bound"
	ReasonRemainsLost      Reason = "remains_lost" // what freed objects had counted found no place
)
