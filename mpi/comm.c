// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Communicators and their groups. The ranks of a communicator agree once on a group,
 * over the MPI below: when the communicator is made, if we see that, else in its first
 * blocking collective. Nonblocking collectives before that go to the MPI, since they may
 * not wait for other ranks. All ranks of a communicator call its collectives in the same
 * order, so all of them know the same.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "shim.h"

static struct comm *comms;
static struct comm *latest;	/* found: most calls are on the same as the one before */
static int keyval = MPI_KEYVAL_INVALID;
static long long made;		/* names given by this rank */

/* ---- life --------------------------------------------------------------- */

static void comm_remove(struct comm *comm)
{
	struct comm **slot = &comms;

	while (*slot != comm)
		slot = &(*slot)->next;
	*slot = comm->next;
	if (latest == comm)
		latest = NULL;
	if (comm->group && comm->group != coll_world(shim.context))
		coll_group_free(comm->group);
	hand_forget(comm);
	free(comm->members);
	free(comm);
}

void comm_hold(struct comm *comm)
{
	comm->users++;
}

void comm_drop(struct comm *comm)
{
	assert(comm->users);
	if (!--comm->users && comm->freed)
		comm_remove(comm);
}

/* The MPI calls this when a communicator is freed, in whichever language. */
static int comm_forget(MPI_Comm handle, int key, void *value, void *extra)
{
	struct comm *comm = value;

	(void)handle, (void)key, (void)extra;
	if (!shim.on)
		return MPI_SUCCESS;
	shim_lock();
	comm->freed = true;
	hand_unlearn();
	if (!comm->users)
		comm_remove(comm);
	shim_unlock();
	return MPI_SUCCESS;
}

struct comm *comm_find(MPI_Comm handle)
{
	struct comm *comm;
	int found = 0;

	if (latest && latest->handle == handle && !latest->freed)
		return latest;
	if (real.Comm_get_attr(handle, keyval, &comm, &found) || !found)
		return NULL;
	latest = comm;
	return comm;
}

/* ---- meeting ------------------------------------------------------------ */

/* Of a communicator that all its ranks are about to agree on, or to enter. */
static void *memory_of_comm(size_t bytes)
{
	void *memory = calloc(1, bytes + 1);

	if (!memory)
		shim_end_job("no memory for a communicator, for which its other ranks would wait");
	return memory;
}

/* The ranks of our job that these are; NULL: one is of another job, on all ranks alike. Frees the group. */
static uint32_t *members_of(MPI_Group group, int ranks)
{
	uint32_t *members = memory_of_comm(ranks * sizeof(*members));
	int *mine = memory_of_comm(2 * ranks * sizeof(*mine)), *theirs = mine + ranks, i;

	for (i = 0; i < ranks; i++)
		theirs[i] = i;
	if (real.Group_translate_ranks(group, ranks, theirs, shim.world, mine)) {
		free(members);
		members = NULL;
	}
	for (i = 0; members && i < ranks; i++) {
		members[i] = mine[i];
		if (mine[i] == MPI_UNDEFINED) {
			free(members);
			members = NULL;
		}
	}
	real.Group_free(&group);
	free(mine);
	return members;
}

static uint32_t *members_here(MPI_Comm handle, int ranks)
{
	MPI_Group group;

	return real.Comm_group(handle, &group) ? NULL : members_of(group, ranks);
}

/* Whether the other side of an inter-communicator is of our job. */
static bool other_side_ours(MPI_Comm handle)
{
	uint32_t *members;
	MPI_Group group;
	int ranks;

	if (real.Comm_remote_group(handle, &group) || real.Group_size(group, &ranks))
		return false;
	members = members_of(group, ranks);
	free(members);
	return members;
}

/*
 * Polls both engines meanwhile, so that runs in flight advance. Under the lock, once: other threads get it while this
 * one waits, as a rank may be waited for that makes another communicator first. Nobody else knows this one yet, or
 * may call a collective on it.
 */
static int await_agreed(MPI_Request *request)
{
	struct pace pace = { 0 };
	int done = 0, code;

	shim_unlock();
	do {
		code = real.Test(request, &done, MPI_STATUS_IGNORE);
		if (!code && !done)
			pace_poll(&pace);
	} while (!code && !done);
	shim_lock();
	return code;
}

/* Agrees on an id for the group. False: the MPI cannot. */
static bool comm_agree(MPI_Comm handle, struct comm *comm)
{
	long long mine = comm->rank ? 0 : (shim.rank + 1ll) << 40 | ++made, agreed = mine;
	MPI_Request request;

	if (comm->ranks > 1 && (real.Iallreduce(&mine, &agreed, 1, MPI_LONG_LONG, MPI_MAX, handle, &request) ||
				await_agreed(&request)))
		return false;
	comm->id = agreed;
	return true;
}

static int make_group(struct comm *comm, uint64_t id, struct coll_group **group)
{
	return coll_shim_group(shim.context, id, comm->members, comm->rank, comm->ranks, group);
}

static struct comm *comm_remember(MPI_Comm handle, struct comm *comm)
{
	comm->handle = handle;
	comm->slot = -1;
	if (real.Comm_set_attr(handle, keyval, comm)) {
		free(comm->members);
		free(comm);
		return NULL;
	}
	comm->next = comms;
	comms = comm;
	return comm;
}

static struct comm *comm_rendezvous(MPI_Comm handle, enum reason reason)
{
	struct comm *comm = memory_of_comm(sizeof(*comm));
	int inter = 0;

	comm->reason = reason;
	if (real.Comm_test_inter(handle, &inter) || inter) {
		comm->reason = other_side_ours(handle) ? OTHER_INTER : OTHER_JOB;
	} else if (reason == OURS) {
		real.Comm_rank(handle, &comm->rank);
		real.Comm_size(handle, &comm->ranks);
		comm->members = members_here(handle, comm->ranks);
		if (!comm->members)
			comm->reason = OTHER_JOB;
		else if (!comm_agree(handle, comm))
			comm->reason = OTHER_FAILED;
		else if (make_group(comm, comm->id, &comm->group))
			shim_end_job("no memory for the group of a communicator");
	}
	comm = comm_remember(handle, comm);
	if (!comm)
		shim_end_job("the MPI has no memory to remember a communicator");
	return comm;
}

struct comm *comm_meet(MPI_Comm handle)
{
	return comm_rendezvous(handle, OURS);
}

int comm_own_group(struct comm *comm, struct coll_group **group)
{
	uint64_t id = comm->id ^ ++comm->inits * 0x9e3779b97f4a7c15ull;

	id = (id ^ id >> 31) * 0xff51afd7ed558ccdull;
	return make_group(comm, id ^ id >> 29, group);
}

/* Ranks of other jobs, and those of a session, may run without libcollmpi. */
static bool all_know_us(MPI_Comm handle)
{
	const struct comm *comm;
	uint32_t *members;
	int inter = 0, ranks;

	shim_lock();
	comm = comm_find(handle);
	shim_unlock();
	if (comm)
		return comm->reason != OTHER_JOB && comm->reason != OTHER_SESSION;
	if (real.Comm_size(handle, &ranks) || real.Comm_test_inter(handle, &inter))
		return false;
	members = members_here(handle, ranks);
	free(members);
	return members && (!inter || other_side_ours(handle));
}

void comm_gather_round(MPI_Comm handle)
{
	struct pace pace = { 0 };
	MPI_Request request;
	int done = 0;

	if (!all_know_us(handle) || real.Ibarrier(handle, &request))
		return;
	while (!done && !real.Test(&request, &done, MPI_STATUS_IGNORE))
		if (!done)
			pace_poll(&pace);
}

/* ---- communicators that the program makes -------------------------------- */

/* A new communicator of all callers. If the old one is not ours, it is not either. */
static int made_from(MPI_Comm old, MPI_Comm *made_now, int code)
{
	struct comm *parent;

	if (!shim.on || code || *made_now == MPI_COMM_NULL)
		return code;
	shim_lock();
	parent = comm_find(old);
	if (!comm_find(*made_now))
		comm_rendezvous(*made_now,
				parent && parent->reason == OTHER_SESSION ? OTHER_SESSION : OURS);
	shim_unlock();
	return code;
}

static void comm_before(MPI_Comm old)
{
	if (shim.on && old != MPI_COMM_NULL)
		comm_gather_round(old);
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *newcomm)
{
	comm_before(comm);
	return made_from(comm, newcomm, real.Comm_dup(comm, newcomm));
}
ALSO(PMPI_Comm_dup, MPI_Comm_dup)

int MPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm)
{
	comm_before(comm);
	return made_from(comm, newcomm, real.Comm_dup_with_info(comm, info, newcomm));
}
ALSO(PMPI_Comm_dup_with_info, MPI_Comm_dup_with_info)

int MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *newcomm)
{
	comm_before(comm);
	return made_from(comm, newcomm, real.Comm_create(comm, group, newcomm));
}
ALSO(PMPI_Comm_create, MPI_Comm_create)

/* Dissemination: round k sends to the rank 2^k after us, and receives from 2^k before. */
static void gather_members(const int *members, int ranks, int rank, int tag)
{
	MPI_Request requests[2];
	MPI_Status statuses[2];
	struct pace pace = { 0 };
	int step, done;

	for (step = 1; step < ranks; step *= 2) {
		const int to = members[(rank + step) % ranks];
		const int from = members[(rank + ranks - step) % ranks];

		if (real.Irecv(NULL, 0, MPI_BYTE, from, tag, shim.all, &requests[0]) ||
		    real.Isend(NULL, 0, MPI_BYTE, to, tag, shim.all, &requests[1]))
			return;
		for (done = 0; !done;) {
			if (real.Testall(2, requests, &done, statuses))
				return;
			if (!done)
				pace_poll(&pace);
		}
	}
}

/* As comm_gather_round(), of a group that has no communicator yet. */
static void gather_group(MPI_Group group, int tag)
{
	int ranks = 0, rank = MPI_UNDEFINED, i, *members, *world;

	if (!shim.on || group == MPI_GROUP_NULL || tag < 0 || real.Group_size(group, &ranks))
		return;
	members = memory_of_comm(2 * ranks * sizeof(*members));
	world = members + ranks;
	for (i = 0; i < ranks; i++)
		members[i] = i;
	if (!real.Group_translate_ranks(group, ranks, members, shim.world, world)) {
		for (i = 0; i < ranks; i++)
			rank = world[i] == shim.rank ? i : rank;
		for (i = 0; i < ranks && world[i] != MPI_UNDEFINED; i++)
			;
		/* If one is of another job, none of the ranks does this. */
		if (i == ranks && rank != MPI_UNDEFINED)
			gather_members(world, ranks, rank, tag);
	}
	free(members);
}

/* Only the group calls it: the other ranks of the old communicator do not. */
int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *newcomm)
{
	gather_group(group, tag);
	return made_from(comm, newcomm, real.Comm_create_group(comm, group, tag, newcomm));
}
ALSO(PMPI_Comm_create_group, MPI_Comm_create_group)

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *newcomm)
{
	comm_before(comm);
	return made_from(comm, newcomm, real.Comm_split(comm, color, key, newcomm));
}
ALSO(PMPI_Comm_split, MPI_Comm_split)

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *newcomm)
{
	comm_before(comm);
	return made_from(comm, newcomm, real.Comm_split_type(comm, type, key, info, newcomm));
}
ALSO(PMPI_Comm_split_type, MPI_Comm_split_type)

int MPI_Cart_create(MPI_Comm comm, int ndims, const int dims[], const int periods[], int reorder,
		    MPI_Comm *newcomm)
{
	comm_before(comm);
	return made_from(comm, newcomm,
			 real.Cart_create(comm, ndims, dims, periods, reorder, newcomm));
}
ALSO(PMPI_Cart_create, MPI_Cart_create)

int MPI_Cart_sub(MPI_Comm comm, const int remain_dims[], MPI_Comm *newcomm)
{
	comm_before(comm);
	return made_from(comm, newcomm, real.Cart_sub(comm, remain_dims, newcomm));
}
ALSO(PMPI_Cart_sub, MPI_Cart_sub)

int MPI_Graph_create(MPI_Comm comm, int nnodes, const int index[], const int edges[], int reorder,
		     MPI_Comm *newcomm)
{
	comm_before(comm);
	return made_from(comm, newcomm,
			 real.Graph_create(comm, nnodes, index, edges, reorder, newcomm));
}
ALSO(PMPI_Graph_create, MPI_Graph_create)

int MPI_Dist_graph_create(MPI_Comm comm, int n, const int sources[], const int degrees[],
			  const int destinations[], const int weights[], MPI_Info info,
			  int reorder, MPI_Comm *newcomm)
{
	comm_before(comm);
	return made_from(comm, newcomm,
			 real.Dist_graph_create(comm, n, sources, degrees, destinations, weights,
						info, reorder, newcomm));
}
ALSO(PMPI_Dist_graph_create, MPI_Dist_graph_create)

int MPI_Dist_graph_create_adjacent(MPI_Comm comm, int indegree, const int sources[],
				   const int sourceweights[], int outdegree,
				   const int destinations[], const int destweights[],
				   MPI_Info info, int reorder, MPI_Comm *newcomm)
{
	comm_before(comm);
	return made_from(comm, newcomm,
			 real.Dist_graph_create_adjacent(comm, indegree, sources, sourceweights,
							 outdegree, destinations, destweights,
							 info, reorder, newcomm));
}
ALSO(PMPI_Dist_graph_create_adjacent, MPI_Dist_graph_create_adjacent)

int MPI_Intercomm_merge(MPI_Comm comm, int high, MPI_Comm *newcomm)
{
	comm_before(comm);
	return made_from(comm, newcomm, real.Intercomm_merge(comm, high, newcomm));
}
ALSO(PMPI_Intercomm_merge, MPI_Intercomm_merge)

/* The rank of our job that a communicator's messages to `rank` reach, or MPI_UNDEFINED. */
static int rank_of_job(MPI_Comm handle, int rank)
{
	int inter = 0, ranks = 0, found = MPI_UNDEFINED;
	MPI_Group group;

	if (real.Comm_test_inter(handle, &inter) ||
	    (inter ? real.Comm_remote_group(handle, &group) : real.Comm_group(handle, &group)))
		return MPI_UNDEFINED;
	if (!real.Group_size(group, &ranks) && rank >= 0 && rank < ranks)
		real.Group_translate_ranks(group, 1, &rank, shim.world, &found);
	real.Group_free(&group);
	return found;
}

/*
 * No communicator has the ranks of both sides yet. So each side gathers, then both leaders meet, then each side
 * waits for its leader: all ranks of both are in the call.
 */
static void gather_sides(MPI_Comm comm, int leader, MPI_Comm peer, int remote_leader, int tag)
{
	int rank, leaders[2];

	comm_before(comm);
	if (!shim.on || comm == MPI_COMM_NULL || real.Comm_rank(comm, &rank))
		return;
	if (rank == leader && peer != MPI_COMM_NULL && tag >= 0) {
		leaders[0] = shim.rank;
		leaders[1] = rank_of_job(peer, remote_leader);
		if (leaders[1] != MPI_UNDEFINED)
			gather_members(leaders, 2, 0, tag);
	}
	comm_before(comm);
}

int MPI_Intercomm_create(MPI_Comm comm, int leader, MPI_Comm peer, int remote_leader, int tag,
			 MPI_Comm *newcomm)
{
	gather_sides(comm, leader, peer, remote_leader, tag);
	return made_from(comm, newcomm,
			 real.Intercomm_create(comm, leader, peer, remote_leader, tag, newcomm));
}
ALSO(PMPI_Intercomm_create, MPI_Intercomm_create)

/* ---- other jobs ---------------------------------------------------------- */

/* Their communicators are met at their first collective. */
int MPI_Comm_spawn(const char *command, char *argv[], int maxprocs, MPI_Info info, int root, MPI_Comm comm,
		   MPI_Comm *newcomm, int errcodes[])
{
	comm_before(comm);
	return real.Comm_spawn(command, argv, maxprocs, info, root, comm, newcomm, errcodes);
}
ALSO(PMPI_Comm_spawn, MPI_Comm_spawn)

int MPI_Comm_spawn_multiple(int count, char *commands[], char **argvs[], const int maxprocs[],
			    const MPI_Info infos[], int root, MPI_Comm comm, MPI_Comm *newcomm, int errcodes[])
{
	comm_before(comm);
	return real.Comm_spawn_multiple(count, commands, argvs, maxprocs, infos, root, comm, newcomm, errcodes);
}
ALSO(PMPI_Comm_spawn_multiple, MPI_Comm_spawn_multiple)

int MPI_Comm_accept(const char *port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *newcomm)
{
	comm_before(comm);
	return real.Comm_accept(port, info, root, comm, newcomm);
}
ALSO(PMPI_Comm_accept, MPI_Comm_accept)

int MPI_Comm_connect(const char *port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *newcomm)
{
	comm_before(comm);
	return real.Comm_connect(port, info, root, comm, newcomm);
}
ALSO(PMPI_Comm_connect, MPI_Comm_connect)

int MPI_Comm_disconnect(MPI_Comm *comm)
{
	if (comm)
		comm_before(*comm);
	return real.Comm_disconnect(comm);
}
ALSO(PMPI_Comm_disconnect, MPI_Comm_disconnect)

#if HAVE_MPI_4_NAMES
/* Its ranks need not have called MPI_Init(), where ours agree. */
int MPI_Comm_create_from_group(MPI_Group group, const char *tag, MPI_Info info,
			       MPI_Errhandler errhandler, MPI_Comm *newcomm)
{
	int code = real.Comm_create_from_group(group, tag, info, errhandler, newcomm);

	if (!shim.on || code || *newcomm == MPI_COMM_NULL)
		return code;
	shim_lock();
	comm_rendezvous(*newcomm, OTHER_SESSION);
	shim_unlock();
	return code;
}
ALSO(PMPI_Comm_create_from_group, MPI_Comm_create_from_group)
#endif

/* ---- start and end ------------------------------------------------------ */

static struct comm *comm_know(MPI_Comm handle, struct coll_group *group, uint64_t id)
{
	struct comm *comm = calloc(1, sizeof(*comm));
	int i;

	if (!comm)
		return NULL;
	comm->group = group;
	comm->id = id;
	real.Comm_rank(handle, &comm->rank);
	real.Comm_size(handle, &comm->ranks);
	comm->members = malloc(comm->ranks * sizeof(*comm->members));
	for (i = 0; comm->members && i < comm->ranks; i++)
		comm->members[i] = i;
	return comm_remember(handle, comm);
}

int comm_start(void)
{
	if (real.Comm_create_keyval(MPI_COMM_NULL_COPY_FN, comm_forget, &keyval, NULL) ||
	    !comm_know(MPI_COMM_WORLD, coll_world(shim.context), 1) || !comm_meet(MPI_COMM_SELF))
		return -ENOMEM;
	return 0;
}

/* The attributes stay on the communicators, and mean nothing any more. */
void comm_end(void)
{
	while (comms)
		comm_remove(comms);
	real.Comm_free_keyval(&keyval);
}
