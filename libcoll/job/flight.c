// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "flight.h"
#include "libcoll/base/log.h"
#include "libcoll/base/open_error.h"
#include "libcoll/flight/report_file.h"
#include "libcoll/progress/progress.h"

static int open_dump_signal(struct coll_context *context)
{
	const struct coll_options *options = &context->options;
	int error;

	if (!options->dump_signal)
		return 0;
	error = coll_flight_dump_on(&context->flight, options->dump_signal,
				    options->dump[0] ? options->dump : ".");
	return error ? coll_open_fail(error, "option dump_signal: %s", error == -EBUSY ?
				      "the process has a handler for it; valid: another signal" :
				      strerror(-error)) : 0;
}

/* Jobs that their launchers do not name are told from each other: by the secret, or the pid. */
static const char *flight_name(const struct coll_boot *boot, char *name, size_t bytes)
{
	struct sha256_ctx hash;
	uint8_t digest[4];

	if (*boot->job && strcmp(boot->job, "unnamed") && strcmp(boot->job, "mpi"))
		return boot->job;
	sha256_init(&hash);
	sha256_update(&hash, sizeof(boot->secret), boot->secret);
	sha256_digest(&hash, sizeof(digest), digest);
	if (*boot->job)
		snprintf(name, bytes, "%.50s-%02x%02x%02x%02x", boot->job, digest[0], digest[1],
			 digest[2], digest[3]);
	else
		snprintf(name, bytes, "pid-%d", (int)getpid());
	return name;
}

int coll_job_open_flight(struct coll_context *context)
{
	const struct coll_boot *boot = context->boot;
	char name[64];
	const struct coll_flight_rank rank = {
		.job = flight_name(boot, name, sizeof(name)), .rank = boot->rank, .ranks = boot->ranks,
		.local_rank = boot->local_rank, .local_ranks = boot->local_ranks,
		.progress = context->progress->name, .engine = context->options.engine,
	};
	const char *why;
	int error = coll_flight_open(&context->flight, &rank, context->options.flight, &why);

	if (error)
		return coll_open_fail(error, "out of memory");
	if (why)
		coll_log(&context->options, COLL_LOG_INFO,
			 "rank %d: coll show cannot see it: its page is not shared: %s", boot->rank,
			 why);
	return open_dump_signal(context);
}

void coll_job_leave_report(struct coll_context *context, bool failed)
{
	const char *file = context->options.report;
	int error = *file && context->flight.page->joined ?
			    coll_flight_report_leave(&context->flight, file, failed) : 0;

	if (error)
		coll_log(&context->options, COLL_LOG_WARN,
			 "rank %d: report '%s': %s; valid: the path of a file in a folder that all "
			 "ranks may write to", context->boot->rank, file, strerror(-error));
}
