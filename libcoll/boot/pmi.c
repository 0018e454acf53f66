// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * A job whose launcher speaks PMI-1, such as Hydra, Slurm, Flux and Cray's. PMI carries
 * rank 0's bootstrap address to the other ranks, also between nodes. Then the store works
 * as always.
 *
 * If PMI_FD is set, PMI is lines on that socket (Flux RFC 13, "Simple Process Manager
 * Interface v1"). srun without a plugin has a libpmi.so.0, which is loaded when needed.
 */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "job.h"
#include "libcoll/base/clock.h"

enum {
	LINE_BYTES = BOOTSTRAP_ADDRESS_MAX + 1024,
	SPACE_BYTES = 256,	/* the name of the job's key-value space */
};

static struct {
	pid_t process;		/* that said hello to the launcher; 0: none */
	bool lost;			/* a late answer may still come */
	unsigned int stays;
	char space[SPACE_BYTES];
	char words[BOOTSTRAP_ADDRESS_MAX];
} pmi;

static pthread_mutex_t pmi_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- lines on PMI_FD ------------------------------------------------------ */

struct wire {
	int fd;
	uint64_t deadline;
	char line[LINE_BYTES];		/* the launcher's last line */
};

static int pmi_hear(struct wire *wire)
{
	struct pollfd poll_fd = { .fd = wire->fd, .events = POLLIN };
	size_t length = 0;
	ssize_t n;
	uint64_t now;

	while (length < LINE_BYTES - 1) {
		now = coll_now();
		if (now >= wire->deadline)
			return -ETIMEDOUT;
		if (poll(&poll_fd, 1, (wire->deadline - now) / 1000000 + 1) <= 0)
			continue;
		n = recv(wire->fd, wire->line + length, LINE_BYTES - 1 - length, MSG_DONTWAIT);
		if (!n || (n < 0 && errno != EAGAIN && errno != EINTR))
			return -ECONNRESET;
		length += n > 0 ? n : 0;
		wire->line[length] = '\0';
		if (length && wire->line[length - 1] == '\n')
			return 0;
	}
	return -EPROTO;
}

/* The word after " key=", or NULL. */
static const char *pmi_word(const struct wire *wire, const char *key, char *value, size_t bytes)
{
	const size_t length = strlen(key);
	const char *at = wire->line;

	while ((at = strchr(at, ' '))) {
		at++;
		if (!strncmp(at, key, length) && at[length] == '=') {
			snprintf(value, bytes, "%.*s", (int)strcspn(at + length + 1, " \n"),
				 at + length + 1);
			return value;
		}
	}
	return NULL;
}

/* Sends a line and receives the answer, which must have this name. */
static int __attribute__((format(printf, 3, 4)))
pmi_ask(struct wire *wire, const char *answer, const char *format, ...)
{
	char line[LINE_BYTES], rc[16];
	va_list arguments;
	int length, err;

	va_start(arguments, format);
	length = vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	/* A line fits into the socket's buffer, and the launcher reads it. */
	if (send(wire->fd, line, length, MSG_NOSIGNAL) != length)
		return -ECONNRESET;
	err = pmi_hear(wire);
	if (err)
		return err;
	snprintf(line, sizeof(line), "cmd=%s", answer);
	length = strlen(line);
	if (strncmp(wire->line, line, length) || !strchr(" \n", wire->line[length]))
		return -EPROTO;
	return pmi_word(wire, "rc", rc, sizeof(rc)) && strcmp(rc, "0") ? -EPROTO : 0;
}

static int wire_hello(struct wire *wire)
{
	int err;

	err = pmi_ask(wire, "response_to_init", "cmd=init pmi_version=1 pmi_subversion=1\n");
	if (!err)
		err = pmi_ask(wire, "my_kvsname", "cmd=get_my_kvsname\n");
	if (!err && !pmi_word(wire, "kvsname", pmi.space, sizeof(pmi.space)))
		err = -EPROTO;
	return err;
}

static int wire_meet(const char *fd, bool tells, const char *key, uint64_t deadline)
{
	struct wire wire = { .fd = atoi(fd), .deadline = deadline };
	int err = 0;

	if (pmi.process != getpid())
		err = wire_hello(&wire);
	if (!err && tells)
		err = pmi_ask(&wire, "put_result", "cmd=put kvsname=%s key=%s value=%s\n",
			      pmi.space, key, pmi.words);
	if (!err)
		err = pmi_ask(&wire, "barrier_out", "cmd=barrier_in\n");
	if (!err)
		err = pmi_ask(&wire, "get_result", "cmd=get kvsname=%s key=%s\n", pmi.space, key);
	if (!err && !pmi_word(&wire, "value", pmi.words, sizeof(pmi.words)))
		err = -EPROTO;
	return err;
}

static void wire_goodbye(const char *fd)
{
	struct wire wire = { .fd = atoi(fd), .deadline = coll_now() + COLL_SECOND };

	(void)!pmi_ask(&wire, "finalize_ack", "cmd=finalize\n");
}

/* ---- libpmi --------------------------------------------------------------- */

/* MPICH's pmi.h: what every libpmi has. 0 is success. */
static struct {
	int (*Init)(int *spawned);
	int (*Finalize)(void);
	int (*Barrier)(void);
	int (*KVS_Get_my_name)(char *name, int bytes);
	int (*KVS_Put)(const char *space, const char *key, const char *value);
	int (*KVS_Commit)(const char *space);
	int (*KVS_Get)(const char *space, const char *key, char *value, int bytes);
} library;

static int library_load(const struct coll_boot_reason *why)
{
	/* RTLD_GLOBAL: Slurm's libpmi loads plugins that need its symbols. */
	void *handle = dlopen("libpmi.so.0", RTLD_NOW | RTLD_GLOBAL);

	if (!handle)
		return coll_boot_fail(why, -ENOSYS,
				      "the ranks are on several nodes and libpmi cannot be "
				      "loaded (%s): start them with srun --mpi=pmi2 or --mpi=pmix, "
				      "or set COLL_STORE and COLL_SECRET",
				      dlerror());
#define LOAD(name)                                                                               \
	library.name = (__typeof__(library.name))dlsym(handle, "PMI_" #name);                     \
	if (!library.name)                                                                       \
		return coll_boot_fail(why, -ENOSYS, "libpmi.so.0 has no PMI_" #name);
	LOAD(Init) LOAD(Finalize) LOAD(Barrier) LOAD(KVS_Get_my_name) LOAD(KVS_Put)
	LOAD(KVS_Commit) LOAD(KVS_Get)
	return 0;
}

/* One meeting through libpmi. */
struct visit {
	struct coll_answer *answer;
	bool hello, tells;
	char key[32];
};

static int visit_steps(const struct visit *visit)
{
	int status = 0, spawned;

	if (visit->hello)
		status = library.Init(&spawned);
	if (!status && visit->hello)
		status = library.KVS_Get_my_name(pmi.space, sizeof(pmi.space));
	if (!status && visit->tells)
		status = library.KVS_Put(pmi.space, visit->key, pmi.words);
	if (!status)
		status = library.KVS_Commit(pmi.space);
	if (!status)
		status = library.Barrier();
	if (!status)
		status = library.KVS_Get(pmi.space, visit->key, pmi.words, sizeof(pmi.words));
	return status;
}

static void *visit_main(void *argument)
{
	struct visit *visit = argument;

	coll_answer_set(visit->answer, visit_steps(visit));
	free(visit);
	return NULL;
}

/* libpmi waits forever for missing ranks: so a thread waits, with a deadline here. */
static int library_meet(bool tells, const char *key, uint64_t deadline,
			const struct coll_boot_reason *why)
{
	struct coll_answer *answer;
	struct visit *visit;
	int status, err;

	err = library_load(why);
	if (err)
		return err;
	visit = calloc(1, sizeof(*visit));
	answer = coll_answer_new();
	if (visit && answer) {
		*visit = (struct visit){ answer, pmi.process != getpid(), tells, "" };
		snprintf(visit->key, sizeof(visit->key), "%s", key);
		err = coll_answer_ask(visit_main, visit);
	} else {
		err = -ENOMEM;
	}
	if (err) {
		free(visit);
		free(answer);
		return err;
	}
	if (!coll_answer_wait(answer, deadline, &status))
		return -ETIMEDOUT;
	return status ? -EPROTO : 0;
}

/* ---- both ----------------------------------------------------------------- */

/* A rank that ends without goodbye counts as failed. */
static void say_goodbye(void)
{
	const char *fd = getenv("PMI_FD");

	if (pmi.process != getpid() || pmi.lost)
		return;
	if (fd)
		wire_goodbye(fd);
	else if (library.Finalize)
		library.Finalize();
}

static int pmi_meet(const struct coll_boot_job *job, const char *key, uint64_t deadline,
		    const struct coll_boot_reason *why)
{
	const char *fd = getenv("PMI_FD");
	int err;

	err = fd ? wire_meet(fd, !job->rank, key, deadline) :
		   library_meet(!job->rank, key, deadline, why);
	if (!err && pmi.process != getpid()) {
		if (!pmi.process)
			atexit(say_goodbye);
		pmi.process = getpid();
	}
	pmi.lost = err == -ETIMEDOUT || err == -ECONNRESET || err == -EPROTO;
	if (!pmi.lost)
		return err;
	if (err == -ETIMEDOUT)
		return coll_boot_fail(why, err,
				      "not all of the %d ranks reached PMI's barrier in time",
				      job->ranks);
	if (err == -ECONNRESET)
		return coll_boot_fail(why, err,
				      "the launcher has closed PMI (PMI_FD='%s'): a process of "
				      "this rank has used it before",
				      fd);
	return coll_boot_fail(why, err, "the launcher's PMI violates PMI-1");
}

int coll_boot_pmi_meet(struct coll_boot *boot, struct coll_boot_job *job, uint64_t deadline,
		       const struct coll_boot_reason *why)
{
	char key[32];
	int err = 0;

	pthread_mutex_lock(&pmi_lock);
	snprintf(key, sizeof(key), "coll.store.%u", pmi.stays++);
	if (pmi.lost)		/* and a thread that came too late may have pmi.words */
		err = coll_boot_fail(why, -ECONNRESET, "the connection to the launcher's PMI was lost earlier");
	if (!err && !boot->rank)
		err = coll_bootstrap_address_write(boot, job, pmi.words, why);
	if (!err)
		err = pmi_meet(job, key, deadline, why);
	if (!err)
		err = coll_bootstrap_address_read(boot, job, pmi.words, why);
	pthread_mutex_unlock(&pmi_lock);
	return err;
}
