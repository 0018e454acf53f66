// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "congestion.h"
#include "libcoll/base/open_error.h"
#include "libcoll/transport/connection.h"

/* The names in a file of one line; "?" where there is none. */
static void congestion_read(const char *path, char *names, size_t bytes)
{
	FILE *file = fopen(path, "re");

	if (!file || !fgets(names, bytes, file))
		strcpy(names, "?");
	names[strcspn(names, "\n")] = '\0';
	if (file)
		fclose(file);
}

static int congestion_check(const char *option, const char *name)
{
	char names[128];
	const int error = *name ? coll_connection_try_congestion(name) : 0;

	if (!error)
		return 0;
	congestion_read(error == -EPERM ? "/proc/sys/net/ipv4/tcp_allowed_congestion_control" :
					  "/proc/sys/net/ipv4/tcp_available_congestion_control",
			names, sizeof(names));
	return coll_open_fail(-EINVAL, "option %s: '%s' %s; valid: %s", option, name,
			      error == -EPERM ? "is not allowed without CAP_NET_ADMIN" : "is not in this kernel",
			      names);
}

int coll_job_check_congestion(const struct coll_options *options)
{
	const int error = congestion_check("congestion", options->congestion);

	return error ? error : congestion_check("wan_congestion", options->wan_congestion);
}
