// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Joining the job's store over TCP. If no process serves it, rank 0 does: at the address of
 * the environment, else at any free port of this node, which the rendezvous file tells to
 * the others.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "job.h"
#include "libcoll/base/clock.h"
#include "store.h"
#include "store_value.h"

#define NAP_FIRST_US 2000
#define NAP_LAST_US 100000

/* One search for the store. */
struct search {
	struct coll_boot *boot;
	const struct coll_boot_job *job;
	struct coll_rendezvous file;
	bool by_file;
	uint64_t deadline;
	const struct coll_boot_reason *why;
	struct coll_store_client *client;
};

/* This rank in the store: boot->state. */
struct boot_store {
	struct coll_store_client *client;
	uint8_t session[COLL_KEY_BYTES];	/* rank 0's: values of an earlier job are none of this */
};

static int put_sealed(struct coll_store_client *client, const uint8_t *secret, const char *key,
		      const void *value, size_t bytes)
{
	uint8_t sealed[STORE_VALUE_SEALED_MAX];
	const int size = coll_store_value_seal(secret, key, value, bytes, sealed);

	return size < 0 ? size : coll_store_put(client, key, sealed, size);
}

static int get_sealed(struct coll_store_client *client, const uint8_t *secret, const char *key,
		      void *value, size_t *bytes, uint64_t deadline)
{
	uint8_t sealed[STORE_VALUE_SEALED_MAX];
	size_t size = sizeof(sealed);
	int err = coll_store_get(client, key, sealed, &size, deadline);

	return err ? err : coll_store_value_open(secret, key, sealed, size, value, bytes);
}

static int store_put(struct coll_boot *boot, const char *key, const void *value, size_t bytes)
{
	const struct boot_store *here = boot->state;

	return put_sealed(here->client, here->session, key, value, bytes);
}

static int store_get(struct coll_boot *boot, const char *key, void *value, size_t *bytes,
		     uint64_t deadline)
{
	const struct boot_store *here = boot->state;

	return get_sealed(here->client, here->session, key, value, bytes, deadline);
}

static int store_forget(struct coll_boot *boot, const char *key)
{
	const struct boot_store *here = boot->state;

	return coll_store_forget(here->client, key);
}

static void boot_store_free(struct boot_store *here)
{
	coll_store_leave(here->client);
	explicit_bzero(here, sizeof(*here));
	free(here);
}

static void store_close(struct coll_boot *boot)
{
	boot_store_free(boot->state);
	free(boot);
}

static const struct coll_boot_ops store_ops = {
	.name = "store",
	.put = store_put,
	.get = store_get,
	.forget = store_forget,
	.close = store_close,
};

static int boot_store_join(struct search *search, const char *address)
{
	const struct coll_boot *boot = search->boot;
	struct coll_store_identity identity = {
		.rank = boot->rank,
		.ranks = boot->ranks,
		.job = boot->job,
		.secret = boot->secret,
		.timeout = boot->timeout,
	};

	return coll_store_join(&search->client, &identity, address, search->deadline);
}

/* The rendezvous file is read anew each time: a stale one may have been replaced. */
static int join_by_file(struct search *search)
{
	char address[COLL_STORE_ADDRESS_MAX];
	int err;

	err = coll_rendezvous_read(&search->file, address, search->boot->secret, search->why);
	if (err)
		return err;
	err = boot_store_join(search, address);
	return err == -EACCES ? -ECONNREFUSED : err;	/* the file is stale */
}

static int join_by_address(struct search *search)
{
	int err = -ECONNREFUSED, i;

	for (i = 0; i < ENDPOINTS_MAX && search->job->store[i][0]; i++) {
		err = boot_store_join(search, search->job->store[i]);
		if (!err || err == -EPROTO || err == -EEXIST || err == -EINVAL)
			break;
	}
	/* Of two endpoints, one may lead to the store of another job. */
	return err == -EACCES && search->job->store[1][0] ? -ECONNREFUSED : err;
}

static int join_once(struct search *search)
{
	return search->by_file ? join_by_file(search) : join_by_address(search);
}

/* The file may be of an earlier job, and its port another job's by now. */
static bool may_come_yet(const struct search *search, int err)
{
	return (err == -EACCES && search->by_file) || err == -ENOENT ||
	       err == -ECONNREFUSED || err == -ECONNRESET || err == -ETIMEDOUT ||
	       err == -EBADMSG || err == -EHOSTUNREACH || err == -ENETUNREACH || err == -EAGAIN;
}

static const char *boot_store_location(const struct search *search)
{
	return search->by_file ? search->file.path : search->job->store[0];
}

static const char *boot_store_error(const struct search *search, int err)
{
	if (!search->by_file && err == -ENOENT)
		return "nobody knows the host's name";
	if (!search->by_file && err == -EAGAIN)
		return "the host's name cannot be looked up now";
	return strerror(-err);
}

static int boot_store_explain(const struct search *search, int err)
{
	const struct coll_boot *boot = search->boot;

	switch (err) {
	case -EACCES:
		return coll_boot_fail(search->why, err,
				      "the store at %s refused rank %d: its secret "
				      "(COLL_SECRET) or its job '%s' differs",
				      boot_store_location(search), boot->rank, boot->job);
	case -EPROTO:
		return coll_boot_fail(search->why, err,
				      "the job of the store at %s does not have %d "
				      "ranks, as %s says here",
				      boot_store_location(search), boot->ranks, boot->from);
	case -EEXIST:
		return coll_boot_fail(search->why, err,
				      "another process is rank %d of job '%s' already", boot->rank,
				      boot->job);
	case -EINVAL:
		return coll_boot_fail(search->why, err,
				      "'%s' is not the address of a store: host:port "
				      "or [host]:port is",
				      boot_store_location(search));
	case -EPERM:
		return err;	/* coll_rendezvous_read() has set the words */
	default:
		return coll_boot_fail(search->why, err, "cannot join the store at %s: %s",
				      boot_store_location(search), boot_store_error(search, err));
	}
}

static int join_until(struct search *search)
{
	uint64_t nap = NAP_FIRST_US;
	int err;

	for (;;) {
		err = join_once(search);
		if (!err)
			return 0;
		if (!may_come_yet(search, err))
			return boot_store_explain(search, err);
		if (coll_now() + nap * 1000 >= search->deadline)
			return coll_boot_fail(search->why, -ETIMEDOUT,
					      "rank 0 has not joined: no store "
					      "of job '%s' at %s (%s)",
					      search->boot->job, boot_store_location(search),
					      boot_store_error(search, err));
		usleep(nap);
		nap = nap * 2 < NAP_LAST_US ? nap * 2 : NAP_LAST_US;
	}
}

static int host_refused(const struct search *search, int err)
{
	return coll_boot_fail(search->why, err, "cannot serve the store at %s: %s",
			      boot_store_location(search), strerror(-err));
}

static int host_by_file(struct search *search)
{
	char address[COLL_STORE_ADDRESS_MAX];
	uint8_t *secret = search->boot->secret;
	int fd, err;

	if (getrandom(secret, COLL_SECRET_BYTES, 0) != COLL_SECRET_BYTES)
		return host_refused(search, -EIO);
	err = coll_store_listen_anywhere(true, &fd);
	if (err)
		return host_refused(search, err);
	err = coll_store_address(fd, address, sizeof(address));
	if (!err)
		err = coll_rendezvous_write(&search->file, address, secret, search->why);
	if (err) {
		close(fd);
		return err == -EPERM ? err : host_refused(search, err);
	}
	err = coll_boot_host(fd, search->boot, &search->file, search->why);
	if (err)
		coll_rendezvous_remove(&search->file, address);
	return err;
}

static int host_by_address(struct search *search)
{
	int fd, err = -EINVAL, i;

	for (i = 0; i < ENDPOINTS_MAX && search->job->store[i][0]; i++) {
		err = coll_store_listen(search->job->store[i], &fd);
		if (!err)
			return coll_boot_host(fd, search->boot, NULL, search->why);
		if (err != -EADDRINUSE)
			break;
	}
	return host_refused(search, err);
}

/* Rank 0, if no process serves yet. The store of an earlier stay may still live: use that. */
static int boot_store_host(struct search *search)
{
	int err = join_once(search);

	if (!err)
		return 0;
	if (err == -EEXIST || err == -EPROTO)
		return boot_store_explain(search, err);
	return search->by_file ? host_by_file(search) : host_by_address(search);
}

static int meet_all(struct search *search)
{
	char missing[256];
	int err;

	err = coll_store_all(search->client, missing, sizeof(missing), search->deadline);
	if (err == -ETIMEDOUT && *missing)
		return coll_boot_fail(search->why, err,
				      "rank %s of %d of job '%s' did not join in time", missing,
				      search->boot->ranks, search->boot->job);
	return err ? coll_boot_fail(search->why, err,
				    "lost the store at %s while waiting for the "
				    "other ranks: %s",
				    boot_store_location(search), strerror(-err))
		   : 0;
}

/* Rank 0 makes a key for this job's values, at random; the job's secret brings it to the others. */
static int share_session(struct search *search, uint8_t session[COLL_KEY_BYTES])
{
	uint8_t key[COLL_KEY_BYTES];
	size_t bytes = COLL_KEY_BYTES;
	int err;

	coll_key_derive(key, search->boot->secret, "values");
	if (search->boot->rank)
		err = get_sealed(search->client, key, "session", session, &bytes, search->deadline);
	else
		err = coll_nonce_make(session, bytes) ?
			      put_sealed(search->client, key, "session", session, bytes) : -EIO;
	if (!err && bytes != COLL_KEY_BYTES)
		err = -EBADMSG;
	return err ? coll_boot_fail(search->why, err, "rank 0's key for the values of the store has "
				    "not come: %s", strerror(-err)) : 0;
}

int coll_boot_store_open(struct coll_boot *boot, const struct coll_boot_job *job, uint64_t deadline,
			 const struct coll_boot_reason *why)
{
	struct search search = {
		.boot = boot,
		.job = job,
		.by_file = !job->store[0][0],
		.deadline = deadline,
		.why = why,
	};
	struct boot_store *here;
	int err = 0;

	if (search.by_file)
		err = coll_rendezvous_name(&search.file, boot->job, why);
	if (!err && !boot->rank && !job->served)
		err = boot_store_host(&search);
	if (!err && !search.client)
		err = join_until(&search);
	if (!err)
		err = meet_all(&search);
	here = err ? NULL : calloc(1, sizeof(*here));
	if (!here) {
		coll_store_leave(search.client);
		return err ? err : -ENOMEM;
	}
	here->client = search.client;
	err = share_session(&search, here->session);
	if (err) {
		boot_store_free(here);
		return err;
	}
	boot->state = here;
	boot->ops = &store_ops;
	return 0;
}
