// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * shared_connections many GROUPS: each group computes; descriptors and connections are those
 *	of the peers.
 * shared_connections limit: a rank that has no descriptor left takes more, up to the hard limit.
 *	ODD_WITHOUT_TLS=1: the kernel does not seal the connections of odd ranks.
 * shared_connections alone: a group that is revoked, or whose ranks disagree, harms no other.
 * shared_connections order: what one group does not read keeps no other waiting.
 * shared_connections memory WHO: the buffer of a run that was revoked in the midst of its
 *	data, by its sender or its receiver, is the caller's again at once.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/lib/rank.h"

enum { LARGE = 64 << 20, SOME = 40 };

static int descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	while (dir && readdir(dir))
		count++;
	closedir(dir);
	return count;
}

/* In memory, of this process. */
static long memory_pages(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	long pages = 0;

	if (file && fscanf(file, "%*d %ld", &pages) != 1)
		pages = 0;
	if (file)
		fclose(file);
	return pages;
}

static void compute(struct coll_group *group)
{
	const int ranks = coll_ranks(group);
	int64_t in = coll_rank(group) + 1, out = 0;

	rank_must(group, coll_allreduce(&in, &out, 1, COLL_INT64, COLL_SUM, group));
	rank_assert(group, out == (int64_t)ranks * (ranks + 1) / 2);
}

static struct coll_group *copy_of(struct coll_group *world)
{
	struct coll_group *copy;

	rank_must(world, coll_group_dup(world, &copy));
	return copy;
}

static void many(struct coll_context *context, int count)
{
	struct coll_group *world = coll_world(context), **group = calloc(count, sizeof(*group));
	struct coll_counters counters = { .size = sizeof(counters) };
	const int peers = coll_ranks(world) - 1;
	const long pages = memory_pages();
	int before, i;

	rank_assert(world, group);
	compute(world);
	before = descriptors();
	for (i = 0; i < count; i++) {
		group[i] = copy_of(world);
		compute(group[i]);
	}
	rank_must(world, coll_counters(context, &counters));
	if (!coll_rank(world))
		printf("%d groups of %d ranks: %d descriptors, %.1f KiB a group, %d sealed connections, "
		       "%d by the kernel\n", count, peers + 1, descriptors(),
		       (memory_pages() - pages) * sysconf(_SC_PAGESIZE) / 1024. / count,
		       (int)counters.sealed, (int)counters.sealed_by_kernel);
	for (i = 0; i < count; i += 2)		/* every other goes, in another order than they came */
		coll_group_free(group[i]);
	for (i = count - 1 - count % 2; i > 0; i -= 2)
		compute(group[i]);
	rank_assert(world, descriptors() <= before + 2 * peers);
	rank_must(world, coll_counters(context, &counters));
	rank_assert(world, counters.links >= (uint64_t)count);
	/* Two between a pair that has connected from both sides at once. */
	rank_assert(world, counters.connections <= (uint64_t)2 * peers);
	for (i = 1; i < count; i += 2)
		coll_group_free(group[i]);
	compute(world);
	free(group);
}

/* Rank 1, which both connects and accepts, begins without a free descriptor. */
static void limit(struct coll_group *world)
{
	struct rlimit files;
	int fd;

	rank_assert(world, !getrlimit(RLIMIT_NOFILE, &files) && files.rlim_max > 1024);
	if (coll_rank(world) == 1) {
		files.rlim_cur = 64;
		rank_assert(world, !setrlimit(RLIMIT_NOFILE, &files));
		while ((fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
			;
		rank_assert(world, errno == EMFILE);
	}
	compute(world);
}

/* Each rank in turn revokes a group in which nothing was sent: no link leads to the others. */
static void revoke_unused(struct coll_group *world)
{
	int who, error;

	for (who = 0; who < coll_ranks(world); who++) {
		struct coll_group *group = copy_of(world);

		if (coll_rank(world) == who)
			rank_must(group, coll_revoke(group));
		error = coll_barrier(group);
		rank_assert(group, error == -ECANCELED && coll_error_rank(group) == who);
		compute(world);
		coll_group_free(group);
	}
}

static void alone(struct coll_group *world)
{
	struct coll_group *group[SOME];
	int i, error;

	for (i = 0; i < SOME; i++)
		compute(group[i] = copy_of(world));
	for (i = 0; i < SOME; i += 2) {
		if (i % 4) {		/* the ranks call with different counts */
			int64_t in[2] = { 0 }, out[2] = { 0 };

			error = coll_allreduce(in, out, 1 + !coll_rank(world), COLL_INT64, COLL_SUM,
					       group[i]);
			if (!error)
				error = coll_barrier(group[i]);
			rank_assert(group[i], error == -EPROTO);
		} else {
			if (coll_rank(world) == 1)
				rank_must(group[i], coll_revoke(group[i]));
			error = coll_barrier(group[i]);
			rank_assert(group[i], error == -ECANCELED);
		}
		compute(group[i + 1]);
		compute(world);
	}
	for (i = 0; i < SOME; i++)
		coll_group_free(group[i]);
	compute(world);
	revoke_unused(world);
}

/* Rank 0 sends far more than fits anywhere; rank 1 computes in other groups meanwhile. */
static void order(struct coll_group *world)
{
	struct coll_group *blocked = copy_of(world), *other = copy_of(world);
	char *data = calloc(1, LARGE);
	struct coll_run *run = NULL;
	int i;

	rank_assert(world, data);
	if (!coll_rank(world)) {
		memset(data, 7, LARGE);
		rank_must(blocked, coll_ibcast(data, LARGE, COLL_UINT8, 0, blocked, &run));
	}
	for (i = 0; i < 100; i++)
		compute(other);
	if (coll_rank(world))
		rank_must(blocked, coll_ibcast(data, LARGE, COLL_UINT8, 0, blocked, &run));
	compute(other);
	rank_must(blocked, coll_run_wait(&run));
	rank_assert(world, data[0] == 7 && data[LARGE - 1] == 7);
	free(data);
}

static void memory(struct coll_group *world, const char *who)
{
	const int sender = !strcmp(who, "sender"), rank = coll_rank(world);
	struct coll_group *group = copy_of(world);
	struct coll_run *run = NULL;
	char *data = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int error, done = 0, i;

	rank_assert(world, data != MAP_FAILED);
	if (rank)
		memset(data, 1, LARGE);
	/* The other rank takes some of it, then computes elsewhere. */
	rank_must(group, coll_ibcast(data, LARGE, COLL_UINT8, 0, group, &run));
	for (i = 0; i < 20 && !done; i++) {
		error = coll_run_test(&run, &done);
		/* The other one may be that far already. */
		rank_assert(group, !error || (error == -ECANCELED && done && rank == sender));
	}
	if (rank == !sender && !done) {
		rank_must(group, coll_revoke(group));
		error = coll_run_wait(&run);
		rank_assert(group, error == -ECANCELED);
	} else if (!done) {
		compute(world);
		error = coll_run_wait(&run);
		rank_assert(group, !error || error == -ECANCELED);
	}
	munmap(data, LARGE);
	if (rank == !sender || done)
		compute(world);
	for (i = 0; i < 100; i++)
		compute(world);
	coll_group_free(group);
}

static int shared_connections(int argc, char **argv)
{
	struct coll_context *context = rank_open("deadline=20s");
	struct coll_group *world = coll_world(context);

	if (argc < 2)
		return 2;
	if (!strcmp(argv[1], "many") && argc > 2)
		many(context, atoi(argv[2]));
	else if (!strcmp(argv[1], "limit"))
		limit(world);
	else if (!strcmp(argv[1], "alone"))
		alone(world);
	else if (!strcmp(argv[1], "order"))
		order(world);
	else if (!strcmp(argv[1], "memory") && argc > 2)
		memory(world, argv[2]);
	else
		return 2;
	coll_close(context);
	return 0;
}

/* From now on the kernel refuses to seal the connections of this process. */
static void refuse_kernel_tls(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_setsockopt, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TCP_ULP, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { sizeof(filter) / sizeof(*filter), filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		abort();
}

int main(int argc, char **argv)
{
	const char *rank = getenv("COLL_RANK");

	if (getenv("ODD_WITHOUT_TLS") && rank && atoi(rank) % 2)
		refuse_kernel_tls();
	return shared_connections(argc, argv);
}
