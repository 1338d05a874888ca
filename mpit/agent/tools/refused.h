/* refused.h - how the agent itself refuses what a tool asks for: a code, and in *why the reason for people. */
#ifndef MPIT_TOOLS_REFUSED_H
#define MPIT_TOOLS_REFUSED_H

#define NOT_ALLOWED "the job's environment doesn't allow writing (MPIT_AGENT_ALLOW_WRITE)"
#define NOT_BOUND_THERE "it is bound to an object of another kind, or to one that is not there"
#define UNKNOWN_DATATYPE "its datatype is none that the agent knows"

static inline int refused(const char **why, int code, const char *reason)
{
	*why = reason;
	return code;
}

#endif
