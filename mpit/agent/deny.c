/* deny.c - which variables are never opened, and which are opened only on request. */
#define _GNU_SOURCE
#include "deny.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

void deny_list(const char *value, char list[DENY_BYTES])
{
	if (value == NULL)
		snprintf(list, DENY_BYTES, "%s", DENY_DEFAULT);
	else if (*value == '+')
		snprintf(list, DENY_BYTES, "%s,%s", DENY_DEFAULT, value + 1);
	else
		snprintf(list, DENY_BYTES, "%s", value);
}

void open_list(const char *value, const char *monitoring, const char *attached, char list[DENY_BYTES])
{
	bool more = value != NULL && *value == '+';

	snprintf(list, DENY_BYTES, "%s", value == NULL ? "" : value + more);
	if (value != NULL && !more)
		return;
	if (monitoring != NULL && *monitoring != '\0' && strcmp(monitoring, "0") != 0) {
		size_t used = strlen(list);

		snprintf(list + used, DENY_BYTES - used, ",*_monitoring_*");
	}
	while (attached != NULL && *attached != '\0') {
		size_t n = strcspn(attached, ","), used = strlen(list);
		const char *name = n == 3 && strncmp(attached, "all", n) == 0 ? "*" : attached;

		if (n > 0 && n < 256)
			snprintf(list + used, DENY_BYTES - used, ",runtime_spc_%.*s", (int)n, name);
		attached += n + (attached[n] == ',');
	}
}

bool deny_matches(const char *list, const char *name)
{
	char pattern[256];

	while (*list != '\0') {
		size_t n = strcspn(list, ",");

		if (n > 0 && n < sizeof pattern) {
			memcpy(pattern, list, n);
			pattern[n] = '\0';
			if (fnmatch(pattern, name, 0) == 0)
				return true;
		}
		list += n;
		list += strspn(list, ",");
	}
	return false;
}
