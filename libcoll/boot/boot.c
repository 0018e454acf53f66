// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "libcoll/base/clock.h"

static void take_job(struct coll_boot *boot, const struct coll_boot_job *job)
{
	boot->rank = job->rank;
	boot->ranks = job->ranks;
	boot->local_rank = job->local_rank;
	boot->local_ranks = job->local_ranks;
	memcpy(boot->job, job->job, sizeof(boot->job));
	memcpy(boot->from, job->from, sizeof(boot->from));
	memcpy(boot->secret, job->secret, sizeof(boot->secret));
}

int coll_boot_open(struct coll_boot **boot, uint64_t deadline, char *why_text, size_t why_bytes)
{
	struct coll_boot_reason why = { why_text, why_bytes };
	struct coll_boot_job job;
	struct coll_boot *b;
	int err;

	*boot = NULL;
	coll_boot_fail(&why, 0, "%s", "");
	err = coll_boot_job_read(&job, &why);
	if (!err && job.by == BOOT_PMIX)
		err = coll_boot_pmix_read(&job, &why);
	if (err)
		return err;
	b = calloc(1, sizeof(*b));
	if (!b)
		return coll_boot_fail(&why, -ENOMEM, "out of memory");
	take_job(b, &job);
	b->timeout = deadline - coll_now();
	if (b->ranks > 1 && job.by == BOOT_PMIX)
		err = coll_boot_pmix_meet(b, &job, deadline, &why);
	else if (b->ranks > 1 && job.by == BOOT_PMI)
		err = coll_boot_pmi_meet(b, &job, deadline, &why);
	if (!err)
		err = b->ranks == 1 ? coll_boot_alone_open(b) :
				      coll_boot_store_open(b, &job, deadline, &why);
	if (err) {
		free(b);
		return err;
	}
	*boot = b;
	return 0;
}
