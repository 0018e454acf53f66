/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The job as the environment describes it, and the interfaces between the ways of booting. */
#ifndef COLL_BOOT_JOB_H
#define COLL_BOOT_JOB_H

#include <stdbool.h>
#include "boot.h"
#include "endpoints.h"
#include "store.h"

/* How the ranks learn the address of the store. */
enum coll_boot_by {
	BOOT_STORE,		/* the environment, or a file */
	BOOT_PMIX,		/* a PMIx server, which also knows the number of ranks */
	BOOT_PMI,		/* a launcher that speaks PMI-1 */
};

struct coll_boot_job {
	int rank, ranks;
	int local_rank, local_ranks;	/* -1: not known */
	char job[64];
	char from[64];
	uint8_t secret[COLL_SECRET_BYTES];
	bool has_secret;
	bool served;			/* another process serves the store */
	bool one_node;			/* as far as the environment says */
	enum coll_boot_by by;
	/* Endpoints of the store, in the order to try; "": none are known. */
	char store[ENDPOINTS_MAX][COLL_STORE_ADDRESS_MAX];
};

/* Where the reason of a failure is written. */
struct coll_boot_reason {
	char *text;		/* may be NULL */
	size_t bytes;
};

/* Writes the reason and returns the error. */
int coll_boot_fail(const struct coll_boot_reason *why, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* COLL_SECRET is set on this rank (`set`) and not on rank 0, or the other way round. -EINVAL. */
int coll_boot_secret_differs(const struct coll_boot_reason *why, int rank, bool set);

/* Reads the environment. A job of one rank has from = "none". -EINVAL names the variable. */
int coll_boot_job_read(struct coll_boot_job *job, const struct coll_boot_reason *why);

/* COLL_SECRET. 0: it is not set; 1: it is; -EINVAL. */
int coll_boot_secret_read(uint8_t secret[COLL_SECRET_BYTES], const struct coll_boot_reason *why);

/* "host:port,[host]:port": at most ENDPOINTS_MAX. -EINVAL. */
int coll_boot_job_endpoints(struct coll_boot_job *job, const char *list);

/* Adds what the PMIx server of this node knows of the job. */
int coll_boot_pmix_read(struct coll_boot_job *job, const struct coll_boot_reason *why);
/* Rank 0 serves the store; all ranks learn its address and boot->secret. */
int coll_boot_pmix_meet(struct coll_boot *boot, struct coll_boot_job *job, uint64_t deadline,
			const struct coll_boot_reason *why);
int coll_boot_pmi_meet(struct coll_boot *boot, struct coll_boot_job *job, uint64_t deadline,
		       const struct coll_boot_reason *why);

/* The limit of PMI's values. */
enum { BOOTSTRAP_ADDRESS_MAX = 1024 };

/* Serves the store at any free port; writes it and, without COLL_SECRET, a new secret as text. */
int coll_bootstrap_address_write(struct coll_boot *boot, const struct coll_boot_job *job,
				 char words[BOOTSTRAP_ADDRESS_MAX],
				 const struct coll_boot_reason *why);
/* Sets boot->secret and job->store; modifies the text. -EPROTO; -EINVAL: not all have COLL_SECRET. */
int coll_bootstrap_address_read(struct coll_boot *boot, struct coll_boot_job *job, char *words,
				const struct coll_boot_reason *why);

/* A result from another thread: given once, taken once. The last user frees it. */
struct coll_answer;

struct coll_answer *coll_answer_new(void);
void coll_answer_set(struct coll_answer *answer, int status);
/* False: not by the deadline. It may still be given, and is freed then. */
bool coll_answer_wait(struct coll_answer *answer, uint64_t deadline, int *status);
/* Has a thread of its own call function(argument), which sets the answer. */
int coll_answer_ask(void *(*function)(void *), void *argument);

/* Both fill in boot->ops and boot->state. */
int coll_boot_alone_open(struct coll_boot *boot);
int coll_boot_store_open(struct coll_boot *boot, const struct coll_boot_job *job, uint64_t deadline,
			 const struct coll_boot_reason *why);

/*
 * The rendezvous file: the address of the store and the secret, for a job of one node. Only
 * this user can read or write it.
 */
struct coll_rendezvous {
	char path[528];
};

int coll_rendezvous_name(struct coll_rendezvous *file, const char *job,
			 const struct coll_boot_reason *why);
/* -ENOENT: it does not exist. -EPERM: other users have access to it. */
int coll_rendezvous_read(const struct coll_rendezvous *file, char address[COLL_STORE_ADDRESS_MAX],
			 uint8_t secret[COLL_SECRET_BYTES], const struct coll_boot_reason *why);
/* Replaces it atomically. */
int coll_rendezvous_write(const struct coll_rendezvous *file, const char *address,
			  const uint8_t secret[COLL_SECRET_BYTES],
			  const struct coll_boot_reason *why);
void coll_rendezvous_remove(const struct coll_rendezvous *file, const char *address);

/*
 * Serves the store from a process of its own, coll-store, on the listening socket `fd`, which is
 * closed here. That process ends when all ranks have left, or all but one for boot->timeout, or
 * when this process ended without goodbye; it then removes `file` (may be NULL).
 */
int coll_boot_host(int fd, const struct coll_boot *boot, const struct coll_rendezvous *file,
		   const struct coll_boot_reason *why);

#endif
