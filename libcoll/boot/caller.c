// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * A job whose caller brings the store, as functions. They may wait longer than they are told to,
 * so each call is on a thread of its own, which is left behind if it comes too late. The next call
 * is made when that one has returned.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "caller.h"
#include "job.h"
#include "libcoll/base/clock.h"
#include "store_value.h"
#include "uapi/coll_schedule.h"

/* Time for a function to come back after its own time has passed. */
#define GRACE_NS COLL_SECOND

struct caller {
	struct coll_job job;
	uint8_t key[COLL_KEY_BYTES];	/* of the values */
	struct caller_call *late;	/* it had not returned in time; or NULL */
};

/* What the ranks learn first: in the clear. */
struct caller_secret {
	uint8_t is_set;			/* all ranks have COLL_SECRET; there is none here */
	uint8_t secret[COLL_SECRET_BYTES];
};

/* One call of put or get. The last of its two users frees it. */
struct caller_call {
	atomic_int users;
	struct coll_answer *answer;
	struct coll_job job;		/* the caller's may be gone when the call returns */
	bool puts;
	char key[COLL_BOOT_KEY_MAX];
	uint8_t value[STORE_VALUE_SEALED_MAX];
	size_t bytes;
	uint64_t deadline;
};

/* ---- one call ------------------------------------------------------------- */

static void call_free(struct caller_call *call)
{
	if (atomic_fetch_sub(&call->users, 1) > 1)
		return;
	explicit_bzero(call, sizeof(*call));
	free(call);
}

static int call_make(struct caller_call *call)
{
	const struct coll_job *job = &call->job;
	const uint64_t now = coll_now();

	if (call->puts)
		return job->put(job->argument, call->key, call->value, call->bytes);
	return job->get(job->argument, call->key, call->value, &call->bytes,
			now < call->deadline ? call->deadline - now : 0);
}

static void *call_main(void *argument)
{
	struct caller_call *call = argument;

	coll_answer_set(call->answer, call_make(call));
	call_free(call);
	return NULL;
}

/* Its thread is the only other user. */
static bool call_is_out(struct caller *caller)
{
	if (caller->late && atomic_load(&caller->late->users) == 1) {
		call_free(caller->late);
		caller->late = NULL;
	}
	return caller->late;
}

static struct caller_call *call_new(const struct caller *caller, const char *key, uint64_t deadline)
{
	struct caller_call *call = calloc(1, sizeof(*call));

	if (!call)
		return NULL;
	call->answer = coll_answer_new();
	if (!call->answer) {
		free(call);
		return NULL;
	}
	atomic_init(&call->users, 1);
	call->job = caller->job;
	call->deadline = deadline;
	strcpy(call->key, key);
	return call;
}

/* Does not free the call. A positive status is a lie. */
static int call_do(struct caller *caller, struct caller_call *call)
{
	int status, err;

	atomic_fetch_add(&call->users, 1);
	err = coll_answer_ask(call_main, call);
	if (err) {
		coll_answer_set(call->answer, err);
		atomic_fetch_sub(&call->users, 1);
	}
	if (!coll_answer_wait(call->answer, call->deadline + GRACE_NS, &status)) {
		atomic_fetch_add(&call->users, 1);
		caller->late = call;
		return -ETIMEDOUT;
	}
	return status > 0 ? -EPROTO : status;
}

static int caller_put_plain(struct caller *caller, const char *key, const void *value, size_t bytes,
			    uint64_t deadline)
{
	struct caller_call *call;
	int err;

	if (call_is_out(caller))
		return -ETIMEDOUT;
	call = call_new(caller, key, deadline);
	if (!call)
		return -ENOMEM;
	call->puts = true;
	call->bytes = bytes;
	memcpy(call->value, value, bytes);
	err = call_do(caller, call);
	call_free(call);
	return err;
}

static int caller_get_plain(struct caller *caller, const char *key, void *value, size_t *bytes,
			    uint64_t deadline)
{
	struct caller_call *call;
	int err;

	if (call_is_out(caller))
		return -ETIMEDOUT;
	call = call_new(caller, key, deadline);
	if (!call)
		return -ENOMEM;
	call->bytes = sizeof(call->value);
	err = call_do(caller, call);
	if (!err && call->bytes > sizeof(call->value))
		err = -EPROTO;
	if (!err && call->bytes > *bytes)
		err = -EMSGSIZE;
	if (!err) {
		memcpy(value, call->value, call->bytes);
		*bytes = call->bytes;
	}
	call_free(call);
	return err;
}

/* ---- the store ------------------------------------------------------------ */

static int caller_put(struct coll_boot *boot, const char *key, const void *value, size_t bytes)
{
	struct caller *caller = boot->state;
	uint8_t sealed[STORE_VALUE_SEALED_MAX];
	int size;

	if (!*key || strlen(key) >= COLL_BOOT_KEY_MAX)
		return -EINVAL;
	size = coll_store_value_seal(caller->key, key, value, bytes, sealed);
	return size < 0 ? size : caller_put_plain(caller, key, sealed, size,
						  coll_now() + boot->timeout);
}

static int caller_get(struct coll_boot *boot, const char *key, void *value, size_t *bytes,
		      uint64_t deadline)
{
	struct caller *caller = boot->state;
	uint8_t sealed[STORE_VALUE_SEALED_MAX];
	size_t size = sizeof(sealed);
	int err;

	if (!*key || strlen(key) >= COLL_BOOT_KEY_MAX)
		return -EINVAL;
	err = caller_get_plain(caller, key, sealed, &size, deadline);
	return err ? err : coll_store_value_open(caller->key, key, sealed, size, value, bytes);
}

static void caller_free(struct caller *caller)
{
	if (caller->late)
		call_free(caller->late);
	explicit_bzero(caller, sizeof(*caller));
	free(caller);
}

static void caller_close(struct coll_boot *boot)
{
	caller_free(boot->state);
	free(boot);
}

static const struct coll_boot_ops caller_ops = {
	.name = "caller",
	.put = caller_put,
	.get = caller_get,
	.close = caller_close,
};

/* ---- opening -------------------------------------------------------------- */

static int job_check(const struct coll_job *job, const struct coll_boot_reason *why)
{
	if (job->size != sizeof(*job))
		return coll_boot_fail(why, -EINVAL, "job: size (%llu) is not valid; valid: %zu, "
				      "sizeof(struct coll_job)", (unsigned long long)job->size,
				      sizeof(*job));
	if (job->ranks < 1 || job->ranks > COLL_RANKS_MAX)
		return coll_boot_fail(why, -EINVAL, "job: ranks (%d) is not valid; valid: 1 to %d",
				      job->ranks, COLL_RANKS_MAX);
	if (job->rank < 0 || job->rank >= job->ranks)
		return coll_boot_fail(why, -EINVAL, "job: rank (%d) is not valid; valid: 0 to %d",
				      job->rank, job->ranks - 1);
	if (job->local_ranks < 0 || job->local_ranks > job->ranks)
		return coll_boot_fail(why, -EINVAL, "job: local_ranks (%d) is not valid; valid: 0, "
				      "if it is not known, to %d", job->local_ranks, job->ranks);
	if (job->local_ranks && (job->local_rank < 0 || job->local_rank >= job->local_ranks))
		return coll_boot_fail(why, -EINVAL, "job: local_rank (%d) is not valid; valid: 0 to "
				      "%d", job->local_rank, job->local_ranks - 1);
	if (job->name && strlen(job->name) >= sizeof(((struct coll_boot *)0)->job))
		return coll_boot_fail(why, -EINVAL, "job: name has %zu bytes; valid: at most %zu",
				      strlen(job->name), sizeof(((struct coll_boot *)0)->job) - 1);
	if (!job->put || !job->get)
		return coll_boot_fail(why, -EINVAL, "job: %s is NULL; valid: a function",
				      job->put ? "get" : "put");
	return 0;
}

/* Rank 0's secret, through the store; or that all ranks have COLL_SECRET. */
static int share_secret(struct coll_boot *boot, struct caller_secret *shared, uint64_t deadline)
{
	size_t bytes = sizeof(*shared);
	int err;

	if (boot->rank) {
		err = caller_get_plain(boot->state, "secret", shared, &bytes, deadline);
		return !err && bytes != sizeof(*shared) ? -EPROTO : err;
	}
	if (!shared->is_set && !coll_nonce_make(shared->secret, COLL_SECRET_BYTES))
		return -EIO;
	return caller_put_plain(boot->state, "secret", shared, bytes, deadline);
}

static int caller_meet(struct coll_boot *boot, uint64_t deadline, const struct coll_boot_reason *why)
{
	const int set = coll_boot_secret_read(boot->secret, why);
	struct caller_secret shared = { .is_set = set > 0 };
	struct caller *caller = boot->state;
	int err;

	if (set < 0)
		return set;
	err = share_secret(boot, &shared, deadline);
	if (err)
		return coll_boot_fail(why, err, "rank %d: the caller's store has not %s: %s", boot->rank,
				      boot->rank ? "given what rank 0 puts first" :
				      "taken its first value", strerror(-err));
	if (shared.is_set != (set > 0))
		return coll_boot_secret_differs(why, boot->rank, set > 0);
	if (!set) {
		memcpy(boot->secret, shared.secret, COLL_SECRET_BYTES);
		boot->secret_carried = boot->local_ranks != boot->ranks;
	}
	explicit_bzero(&shared, sizeof(shared));
	coll_key_derive(caller->key, boot->secret, "values");
	boot->ops = &caller_ops;
	return 0;
}

static void take_names(struct coll_boot *boot, const struct coll_job *job)
{
	boot->rank = job->rank;
	boot->ranks = job->ranks;
	boot->local_rank = job->local_ranks ? job->local_rank : job->ranks == 1 ? 0 : -1;
	boot->local_ranks = job->local_ranks ? job->local_ranks : job->ranks == 1 ? 1 : -1;
	strcpy(boot->job, job->name ? job->name : "unnamed");
	strcpy(boot->from, "the caller's store");
}

static int caller_open(struct coll_boot *boot, const struct coll_job *job, uint64_t deadline,
		       const struct coll_boot_reason *why)
{
	struct caller *caller = calloc(1, sizeof(*caller));
	int err;

	if (!caller)
		return coll_boot_fail(why, -ENOMEM, "out of memory");
	caller->job = *job;
	boot->state = caller;
	err = caller_meet(boot, deadline, why);
	if (err)
		caller_free(caller);
	return err;
}

int coll_boot_caller_open(struct coll_boot **opened, const struct coll_job *job, uint64_t deadline,
			  char *why_text, size_t why_bytes)
{
	const struct coll_boot_reason why = { why_text, why_bytes };
	struct coll_boot *boot;
	int err = job_check(job, &why);

	*opened = NULL;
	if (err)
		return err;
	boot = calloc(1, sizeof(*boot));
	if (!boot)
		return coll_boot_fail(&why, -ENOMEM, "out of memory");
	take_names(boot, job);
	boot->timeout = deadline - coll_now();
	err = boot->ranks == 1 ? coll_boot_alone_open(boot) : caller_open(boot, job, deadline, &why);
	if (err)
		free(boot);
	else
		*opened = boot;
	return err;
}
