// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * A job that a PMIx server started. The server knows the number of ranks and carries rank
 * 0's bootstrap address to the others, also between nodes. Then the store works as always.
 *
 * libpmix is loaded when needed, so that programs under other launchers run without it.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "libcoll/base/clock.h"

#if __has_include(<pmix.h>)
#include <dlfcn.h>
#include <pmix.h>
#include <unistd.h>

#define EACH_FUNCTION(X) \
	X(Init) X(Finalize) X(Put) X(Commit) X(Fence_nb) X(Get) X(Error_string)

static struct {
#define POINTER(name) __typeof__(&PMIx_##name) name;
	EACH_FUNCTION(POINTER)
	pmix_proc_t self;
	pid_t process;		/* that said hello to the server; 0: none */
	unsigned int stays;
} pmix;

static pthread_mutex_t pmix_lock = PTHREAD_MUTEX_INITIALIZER;

static int pmix_load(const struct coll_boot_reason *why)
{
	void *library = dlopen("libpmix.so.2", RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return coll_boot_fail(why, -ENOSYS, "a PMIx server started this rank, but libpmix "
				      "cannot be loaded: %s", dlerror());
#define LOAD(name)                                                                              \
	pmix.name = (__typeof__(pmix.name))dlsym(library, "PMIx_" #name);                       \
	if (!pmix.name)                                                                         \
		return coll_boot_fail(why, -ENOSYS, "libpmix.so.2 has no PMIx_" #name);
	EACH_FUNCTION(LOAD)
	return 0;
}

static int pmix_explain(const struct coll_boot_reason *why, const char *what, pmix_status_t status)
{
	return coll_boot_fail(why, -ECONNREFUSED, "%s: the PMIx server of this node says: %s", what,
			      pmix.Error_string(status));
}

/* A rank that ends without goodbye counts as failed. */
static void say_goodbye(void)
{
	if (pmix.process == getpid())
		pmix.Finalize(NULL, 0);
}

/* Once for a process, until it exits: not every server accepts a rank again. */
static int say_hello(const struct coll_boot_reason *why)
{
	pmix_status_t status;
	int err;

	if (pmix.process == getpid())
		return 0;
	err = pmix_load(why);
	if (err)
		return err;
	status = pmix.Init(&pmix.self, NULL, 0);
	if (status != PMIX_SUCCESS)
		return pmix_explain(why, "PMIx_Init", status);
	if (!pmix.process)
		atexit(say_goodbye);
	pmix.process = getpid();
	return 0;
}

/* One number of the job, or -1. Servers use different types for it. */
static int ask_number(pmix_rank_t whose, const char *key)
{
	pmix_value_t *value = NULL;
	pmix_proc_t proc = pmix.self;
	int number = -1;

	proc.rank = whose;
	if (pmix.Get(&proc, key, NULL, 0, &value) != PMIX_SUCCESS || !value)
		return -1;
	if (value->type == PMIX_UINT32 || value->type == PMIX_UINT)
		number = value->data.uint32;
	else if (value->type == PMIX_UINT16)
		number = value->data.uint16;
	else if (value->type == PMIX_INT || value->type == PMIX_INT32)
		number = value->data.int32;
	free(value);
	return number;
}

int coll_boot_pmix_read(struct coll_boot_job *job, const struct coll_boot_reason *why)
{
	int nodes, err;

	pthread_mutex_lock(&pmix_lock);
	err = say_hello(why);
	if (!err) {
		job->rank = pmix.self.rank;
		job->ranks = ask_number(PMIX_RANK_WILDCARD, PMIX_JOB_SIZE);
		job->local_rank = ask_number(pmix.self.rank, PMIX_LOCAL_RANK);
		job->local_ranks = ask_number(PMIX_RANK_WILDCARD, PMIX_LOCAL_SIZE);
		nodes = ask_number(PMIX_RANK_WILDCARD, PMIX_NUM_NODES);
		job->one_node = nodes > 0 ? nodes == 1 : job->local_ranks == job->ranks;
		if (job->ranks < 1 || job->rank < 0 || job->rank >= job->ranks)
			err = coll_boot_fail(why, -EPROTO,
					     "the PMIx server says that this is rank %d "
					     "of %d",
					     job->rank, job->ranks);
	}
	pthread_mutex_unlock(&pmix_lock);
	return err;
}

/* ---- meeting ------------------------------------------------------------- */

static void fence_done(pmix_status_t status, void *answer)
{
	coll_answer_set(answer, status);
}

/*
 * Values put before can be got after it. Not every server has timeouts, so this waits with
 * a deadline.
 */
static int pmix_meet(const struct coll_boot_job *job, uint64_t deadline,
		     const struct coll_boot_reason *why)
{
	pmix_info_t collect = { .key = PMIX_COLLECT_DATA, .value = { .type = PMIX_BOOL } };
	struct coll_answer *fence = coll_answer_new();
	pmix_status_t status;

	if (!fence)
		return -ENOMEM;
	collect.value.data.flag = true;
	status = pmix.Fence_nb(NULL, 0, &collect, 1, fence_done, fence);
	if (status != PMIX_SUCCESS)	/* then the callback never comes */
		coll_answer_set(fence, status);
	if (!coll_answer_wait(fence, deadline, &status))
		return coll_boot_fail(why, -ETIMEDOUT,
				      "not all of the %d ranks of PMIx job '%s' came "
				      "in time",
				      job->ranks, job->job);
	return status == PMIX_SUCCESS || status == PMIX_OPERATION_SUCCEEDED ?
	       0 : pmix_explain(why, "PMIx_Fence", status);
}

static int pmix_tell(const char *key, const char *words, const struct coll_boot_reason *why)
{
	pmix_value_t value = { .type = PMIX_STRING };
	pmix_status_t status;

	value.data.string = (char *)words;
	status = pmix.Put(PMIX_GLOBAL, key, &value);
	if (status == PMIX_SUCCESS)
		status = pmix.Commit();
	return status == PMIX_SUCCESS ? 0 : pmix_explain(why, "PMIx_Put", status);
}

static int pmix_learn(struct coll_boot *boot, struct coll_boot_job *job, const char *key,
		      const struct coll_boot_reason *why)
{
	pmix_proc_t first = pmix.self;
	pmix_value_t *value = NULL;
	pmix_status_t status;
	int err = -EPROTO;

	first.rank = 0;
	status = pmix.Get(&first, key, NULL, 0, &value);
	if (status != PMIX_SUCCESS)
		return pmix_explain(why, "PMIx_Get of the bootstrap address", status);
	if (value->type == PMIX_STRING && value->data.string) {
		err = coll_bootstrap_address_read(boot, job, value->data.string, why);
		free(value->data.string);
	}
	free(value);
	return err;
}

int coll_boot_pmix_meet(struct coll_boot *boot, struct coll_boot_job *job, uint64_t deadline,
			const struct coll_boot_reason *why)
{
	char key[32], words[BOOTSTRAP_ADDRESS_MAX];
	int err = 0;

	pthread_mutex_lock(&pmix_lock);
	snprintf(key, sizeof(key), "coll.store.%u", pmix.stays++);
	if (!boot->rank)
		err = coll_bootstrap_address_write(boot, job, words, why);
	if (!boot->rank && !err)
		err = pmix_tell(key, words, why);
	if (!err)
		err = pmix_meet(job, deadline, why);
	if (!err)
		err = pmix_learn(boot, job, key, why);
	pthread_mutex_unlock(&pmix_lock);
	return err;
}
#else
int coll_boot_pmix_read(struct coll_boot_job *job, const struct coll_boot_reason *why)
{
	(void)job;
	return coll_boot_fail(
		why, -ENOSYS,
		"libcoll was built without PMIx (pmix.h was not there): set "
		"COLL_STORE and COLL_SECRET, and COLL_RANKS where the launcher tells no "
		"size");
}

int coll_boot_pmix_meet(struct coll_boot *boot, struct coll_boot_job *job, uint64_t deadline,
			const struct coll_boot_reason *why)
{
	(void)boot, (void)deadline;
	return coll_boot_pmix_read(job, why);
}
#endif
