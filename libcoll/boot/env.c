// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Finds the job in the environment. One row for each known launcher; the first whose
 * variables are set counts. COLL_STORE, COLL_SECRET and COLL_JOB may complete any of them.
 */
#include <dlfcn.h>
#include <errno.h>
#include <nettle/base16.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "job.h"
#include "store_wire.h"

enum { RANKS_MAX = 1 << 20 };

struct launcher {
	const char *name;
	const char *sign[2];	/* recognised when these are set */
	const char *rank, *ranks;
	const char *local_rank, *local_ranks;
	const char *job[3];	/* together they name the job */
	const char *nodes;		/* number of nodes, if the launcher sets it */
	bool pmix;		/* there may be a PMIx server */
	bool pmi;		/* it speaks PMI-1 */
};

static const struct launcher launchers[] = {
	{
		.name = "coll run",
		.sign = { "COLL_RANK" },
		.rank = "COLL_RANK", .ranks = "COLL_RANKS",
		.local_rank = "COLL_LOCAL_RANK", .local_ranks = "COLL_LOCAL_RANKS",
	}, {
		.name = "torchrun",
		.sign = { "RANK", "WORLD_SIZE" },
		.rank = "RANK", .ranks = "WORLD_SIZE",
		.local_rank = "LOCAL_RANK", .local_ranks = "LOCAL_WORLD_SIZE",
		/* The run id is often just "none". */
		.job = { "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_PORT" },
	}, {
		.name = "Open MPI",
		.sign = { "OMPI_COMM_WORLD_RANK" },
		.rank = "OMPI_COMM_WORLD_RANK", .ranks = "OMPI_COMM_WORLD_SIZE",
		.local_rank = "OMPI_COMM_WORLD_LOCAL_RANK",
		.local_ranks = "OMPI_COMM_WORLD_LOCAL_SIZE",
		.job = { "PMIX_NAMESPACE" },
		.pmix = true,
	}, {
		.name = "Hydra",
		/* Slurm's plugins set PMI_RANK, too. */
		.sign = { "PMI_RANK", "MPI_LOCALNRANKS" },
		.rank = "PMI_RANK", .ranks = "PMI_SIZE",
		.local_rank = "MPI_LOCALRANKID", .local_ranks = "MPI_LOCALNRANKS",
		.job = { "PMI_JOBID" },
		.pmi = true,
	}, {
		.name = "Slurm",
		/* A batch script has SLURM_PROCID too; only srun makes steps. */
		.sign = { "SLURM_PROCID", "SLURM_STEP_ID" },
		.rank = "SLURM_PROCID", .ranks = "SLURM_NTASKS",
		.local_rank = "SLURM_LOCALID",
		.job = { "SLURM_JOB_ID", "SLURM_STEP_ID" },
		.nodes = "SLURM_STEP_NUM_NODES",
		.pmix = true,
		.pmi = true,
	}, {
		.name = "PMI",
		.sign = { "PMI_RANK", "PMI_SIZE" },
		.rank = "PMI_RANK", .ranks = "PMI_SIZE",
		.local_rank = "PMI_LOCAL_RANK", .local_ranks = "PMI_LOCAL_SIZE",
		.job = { "PMI_JOBID" },
		.pmi = true,
	}, {
		.name = "PMIx",
		/* Only PMIx's own library knows the number of ranks. */
		.sign = { "PMIX_RANK" },
		.rank = "PMIX_RANK", .ranks = "COLL_RANKS",
		.local_rank = "COLL_LOCAL_RANK", .local_ranks = "COLL_LOCAL_RANKS",
		.job = { "PMIX_NAMESPACE" },
		.pmix = true,
	},
};

/* A variable's value; an empty one counts as unset. */
static const char *env_variable(const char *name)
{
	const char *value = name ? getenv(name) : NULL;

	return value && *value ? value : NULL;
}

static bool env_recognised(const struct launcher *launcher)
{
	int i;

	for (i = 0; i < 2; i++)
		if (launcher->sign[i] && !env_variable(launcher->sign[i]))
			return false;
	return true;
}

static const struct launcher *find_launcher(void)
{
	size_t i;

	for (i = 0; i < sizeof(launchers) / sizeof(*launchers); i++)
		if (env_recognised(&launchers[i]))
			return &launchers[i];
	return NULL;
}

static int read_number(const char *name, long low, long high, int *number,
		       const struct coll_boot_reason *why)
{
	const char *value = env_variable(name);
	char *end;
	long n;

	if (!value)
		return coll_boot_fail(why, -EINVAL,
				      "%s is not set: a number from %ld to %ld is needed", name,
				      low, high);
	n = strtol(value, &end, 10);
	if (*value < '0' || *value > '9' || *end || n < low || n > high)
		return coll_boot_fail(why, -EINVAL,
				      "%s='%s' is not valid: a number from %ld to %ld is", name,
				      value, low, high);
	*number = n;
	return 0;
}

static int read_optional(const char *name, long low, long high, int *number,
			 const struct coll_boot_reason *why)
{
	*number = -1;
	return env_variable(name) ? read_number(name, low, high, number, why) : 0;
}

static int read_ranks(struct coll_boot_job *job, const struct launcher *launcher,
		      const struct coll_boot_reason *why)
{
	int err;

	err = read_number(launcher->ranks, 1, RANKS_MAX, &job->ranks, why);
	if (!err)
		err = read_number(launcher->rank, 0, job->ranks - 1, &job->rank, why);
	if (!err)
		err = read_optional(launcher->local_rank, 0, job->ranks - 1, &job->local_rank, why);
	if (!err)
		err = read_optional(launcher->local_ranks, 1, job->ranks, &job->local_ranks, why);
	return err;
}

/* Two hexadecimal digits a byte. */
int coll_boot_secret_read(uint8_t secret[COLL_SECRET_BYTES], const struct coll_boot_reason *why)
{
	const char *value = env_variable("COLL_SECRET");
	struct base16_decode_ctx decode;
	size_t bytes = COLL_SECRET_BYTES;

	if (!value)
		return 0;
	base16_decode_init(&decode);
	if (strlen(value) != 2 * COLL_SECRET_BYTES ||
	    !base16_decode_update(&decode, &bytes, secret, strlen(value), value) ||
	    bytes != COLL_SECRET_BYTES)
		return coll_boot_fail(why, -EINVAL,
				      "COLL_SECRET is not valid: %d hexadecimal digits "
				      "are (openssl rand -hex %d)",
				      2 * COLL_SECRET_BYTES, COLL_SECRET_BYTES);
	return 1;
}

static int read_secret(struct coll_boot_job *job, const struct coll_boot_reason *why)
{
	const int set = coll_boot_secret_read(job->secret, why);

	job->has_secret = set > 0;
	return set < 0 ? set : 0;
}

/*
 * Hydra does not name its job, but the ranks of a node share the proxy at the other end of
 * PMI_FD or, if all else fails, their parent.
 */
static void name_by_parent(char *name, size_t bytes)
{
	const char *fd = env_variable("PMI_FD");
	struct ucred proxy = { .pid = getppid() };
	socklen_t proxy_bytes = sizeof(proxy);

	/* 0: over TCP the kernel does not know it, nor in another PID namespace. */
	if (fd && (getsockopt(atoi(fd), SOL_SOCKET, SO_PEERCRED, &proxy, &proxy_bytes) || !proxy.pid))
		proxy.pid = getppid();
	snprintf(name, bytes, "parent-%d", proxy.pid);
}

static void name_by_launcher(char *name, size_t bytes, const struct coll_boot_job *job,
			     const struct launcher *launcher)
{
	size_t at = 0;
	int i;

	*name = '\0';
	for (i = 0; i < 3; i++)
		if (env_variable(launcher->job[i]) && at < bytes)
			at += snprintf(name + at, bytes - at, "%s%s", at ? "." : "",
				       env_variable(launcher->job[i]));
	if (!at && (job->store[0][0] || job->by == BOOT_PMI))
		snprintf(name, bytes, "unnamed");	/* the secret keeps jobs apart */
	else if (!at)
		name_by_parent(name, bytes);
}

/* A name that is too long is replaced by its hash, so different jobs stay different. */
static void set_name(struct coll_boot_job *job, const char *name)
{
	char hex[2 * SHA256_DIGEST_SIZE + 1] = "";
	uint8_t digest[SHA256_DIGEST_SIZE];
	struct sha256_ctx sha;

	if (strlen(name) < sizeof(job->job)) {
		strcpy(job->job, name);
		return;
	}
	sha256_init(&sha);
	sha256_update(&sha, strlen(name), (const uint8_t *)name);
	sha256_digest(&sha, sizeof(digest), digest);
	base16_encode_update(hex, sizeof(digest), digest);
	snprintf(job->job, sizeof(job->job), "%.60s", hex);
}

static void read_name(struct coll_boot_job *job, const struct launcher *launcher)
{
	char name[512];

	if (env_variable("COLL_JOB")) {
		set_name(job, env_variable("COLL_JOB"));
		return;
	}
	name_by_launcher(name, sizeof(name), job, launcher);
	set_name(job, name);
}

static bool env_loopback(const char *host)
{
	return !strncmp(host, "127.", 4) || !strcmp(host, "localhost") || !strcmp(host, "::1");
}

/* Whether all ranks share this node; assumed if the environment does not say. */
static int read_nodes(struct coll_boot_job *job, const struct launcher *launcher,
		      const struct coll_boot_reason *why)
{
	const char *master = env_variable("MASTER_ADDR");
	int nodes, err;

	err = read_optional(launcher->nodes, 1, RANKS_MAX, &nodes, why);
	if (err)
		return err;
	if (nodes > 0)
		job->one_node = nodes == 1;
	else if (job->local_ranks > 0)
		job->one_node = job->local_ranks == job->ranks;
	else if (!strcmp(launcher->name, "torchrun"))
		job->one_node = !master || env_loopback(master);
	else if (launcher->pmi)
		job->one_node = !env_variable("PMI_FD");
	else
		job->one_node = true;
	return 0;
}

static void set_store(char store[COLL_STORE_ADDRESS_MAX], const char *host, int port)
{
	snprintf(store, COLL_STORE_ADDRESS_MAX, strchr(host, ':') ? "[%s]:%d" : "%s:%d", host,
		 port);
}

/*
 * torchrun's agent may itself serve MASTER_PORT; then the port after it is used. If the
 * environment says so, MASTER_PORT is not tried.
 */
static int read_master(struct coll_boot_job *job, const struct coll_boot_reason *why)
{
	const char *host = env_variable("MASTER_ADDR"), *agent;
	int port, err, i = 0;

	if (!host)
		return coll_boot_fail(why, -EINVAL,
				      "MASTER_ADDR is not set: the address of rank 0's "
				      "node is needed");
	if (strlen(host) > COLL_STORE_ADDRESS_MAX - 16)
		return coll_boot_fail(why, -EINVAL, "MASTER_ADDR is not valid: it is too long");
	err = read_number("MASTER_PORT", 1, 65534, &port, why);
	if (err)
		return err;
	agent = env_variable("TORCHELASTIC_USE_AGENT_STORE");
	if (!agent || strcmp(agent, "True"))
		set_store(job->store[i++], host, port);
	set_store(job->store[i], host, port + 1);
	return 0;
}

int coll_boot_job_endpoints(struct coll_boot_job *job, const char *list)
{
	char host[COLL_STORE_ADDRESS_MAX];
	const char *port, *end;
	size_t bytes;
	int i;

	for (i = 0; i < ENDPOINTS_MAX; i++) {
		end = strchrnul(list, ',');
		bytes = end - list;
		if (bytes >= COLL_STORE_ADDRESS_MAX)
			return -EINVAL;
		memcpy(job->store[i], list, bytes);
		job->store[i][bytes] = '\0';
		if (coll_store_split(job->store[i], host, sizeof(host), &port) || !atoi(port))
			return -EINVAL;
		if (!*end)
			return 0;
		list = end + 1;
	}
	return -EINVAL;
}

static int read_own_store(struct coll_boot_job *job, const struct coll_boot_reason *why)
{
	const char *store = env_variable("COLL_STORE");

	if (coll_boot_job_endpoints(job, store))
		return coll_boot_fail(
			why, -EINVAL,
			"COLL_STORE='%.300s' is not valid: host:port or "
			"[host]:port with a port from 1 to 65535 is, or up to %d of them "
			"with commas between",
			store, ENDPOINTS_MAX);
	job->served = env_variable("COLL_STORE_SERVED");
	return 0;
}

static int need_secret(const struct coll_boot_job *job, const struct coll_boot_reason *why)
{
	return job->has_secret
		       ? 0
		       : coll_boot_fail(why, -EINVAL,
					"COLL_SECRET is not set: a store at %s needs one, the same "
					"on all ranks (openssl rand -hex %d)",
					job->store[0], COLL_SECRET_BYTES);
}

/* Without an address of the store the rendezvous file tells it, which works on one node. */
static int read_store(struct coll_boot_job *job, const struct launcher *launcher,
		      const struct coll_boot_reason *why)
{
	bool torchrun = !strcmp(launcher->name, "torchrun");
	int err = 0;

	if (env_variable("COLL_STORE"))
		err = read_own_store(job, why);
	else if (torchrun && (job->has_secret || !job->one_node))
		err = read_master(job, why);
	else if (!job->one_node)
		return coll_boot_fail(why, -EINVAL,
				      "COLL_STORE is not set: the ranks of this %s job "
				      "are on several nodes, so host:port of rank 0 is needed, and "
				      "COLL_SECRET",
				      launcher->name);
	if (err || !job->store[0][0])
		return err;
	return need_secret(job, why);
}

/* Ranks that meet by a file are all on this node. */
static void read_locals(struct coll_boot_job *job)
{
	if (job->store[0][0])
		return;
	if (job->local_rank < 0)
		job->local_rank = job->rank;
	if (job->local_ranks < 0)
		job->local_ranks = job->ranks;
}

/*
 * Slurm ends a job whose rank says hello by PMI twice. If there is an MPI, the hello is the
 * MPI's.
 */
static bool mpi_here(void)
{
	return dlsym(RTLD_DEFAULT, "MPI_Init");
}

/*
 * Asks the launcher if the environment lacks the number of ranks, or the way to the store
 * for ranks of other nodes.
 */
static enum coll_boot_by env_asked(const struct coll_boot_job *job, const struct launcher *launcher,
				   bool pmix)
{
	if (env_variable("COLL_STORE"))
		return BOOT_STORE;
	if (pmix && launcher->pmix && (!env_variable(launcher->ranks) || !job->one_node))
		return BOOT_PMIX;
	return launcher->pmi && !job->one_node && !mpi_here() ? BOOT_PMI : BOOT_STORE;
}

static int read_by(struct coll_boot_job *job, const struct launcher *launcher,
		   const struct coll_boot_reason *why)
{
	const char *boot = env_variable("COLL_BOOT");
	bool pmix = env_variable("PMIX_RANK") && env_variable("PMIX_NAMESPACE");

	if (!boot || !strcmp(boot, "auto"))
		job->by = env_asked(job, launcher, pmix);
	else if (!strcmp(boot, "pmix"))
		job->by = BOOT_PMIX;
	else if (!strcmp(boot, "pmi"))
		job->by = BOOT_PMI;
	else if (strcmp(boot, "store"))
		return coll_boot_fail(why, -EINVAL,
				      "COLL_BOOT='%s' is not valid: auto, pmix, pmi or "
				      "store is",
				      boot);
	if (job->by == BOOT_PMIX && !pmix)
		return coll_boot_fail(
			why, -EINVAL,
			"COLL_BOOT='pmix' is not valid here: no PMIx server "
			"started this rank (PMIX_RANK and PMIX_NAMESPACE are not set), as "
			"mpirun of Open MPI, prterun and srun --mpi=pmix do");
	if (job->by == BOOT_PMI && !launcher->pmi)
		return coll_boot_fail(
			why, -EINVAL,
			"COLL_BOOT='pmi' is not valid here: no launcher with "
			"PMI started this rank (PMI_RANK and SLURM_PROCID are not set), "
			"as mpirun of MPICH and srun do");
	return 0;
}

static void be_alone(struct coll_boot_job *job)
{
	job->ranks = job->local_ranks = 1;
	strcpy(job->job, "alone");
	strcpy(job->from, "none");
}

int coll_boot_job_read(struct coll_boot_job *job, const struct coll_boot_reason *why)
{
	const struct launcher *launcher = find_launcher();
	int err = 0;

	memset(job, 0, sizeof(*job));
	if (!launcher) {
		be_alone(job);
		return 0;
	}
	snprintf(job->from, sizeof(job->from), "%s (%s)", launcher->name, launcher->rank);
	if (!launcher->pmix || env_variable(launcher->ranks) || !env_variable("PMIX_NAMESPACE"))
		err = read_ranks(job, launcher, why);
	if (!err)
		err = read_secret(job, why);
	if (!err)
		err = read_nodes(job, launcher, why);
	if (!err)
		err = read_by(job, launcher, why);
	if (!err && job->ranks > 1 && job->by == BOOT_STORE)
		err = read_store(job, launcher, why);
	if (err)
		return err;
	read_name(job, launcher);
	if (job->by == BOOT_STORE)
		read_locals(job);
	return 0;
}
