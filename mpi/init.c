// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* MPI_Init to MPI_Finalize: joins and leaves the job; settings, the lock, errors. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collmpi.h"
#include "shim.h"

struct shim shim;

const char *const which_names[WHICH_COUNT] = {
#define NAME(Name, name) #name,
	EACH_COLLECTIVE(NAME)
};

const char *const reason_texts[REASONS] = {
	[OURS] = "",
	[OTHER_SWITCHED_OFF] = "switched off by COLL_MPI",
	[OTHER_INTER] = "inter-communicator",
	[OTHER_JOB] = "communicator with ranks of another job",
	[OTHER_SESSION] = "communicator of a session",
	[OTHER_UNMET] = "nonblocking, and no blocking call on the communicator yet",
	[OTHER_FORTRAN] = "nonblocking with counts, from Fortran (or by a PMPI name): this MPI writes to the request",
	[OTHER_REFUSED] = "arguments that MPI refuses",
	[OTHER_TYPE] = "reduction that libcoll and MPI_Reduce_local do not cover",
	[OTHER_FAILED] = "the ranks could not agree over the MPI",
	[OTHER_TRIED] = "trials of which is faster",
	[OTHER_FASTER] = "the MPI is faster, by trials",
};

/* ---- locks -------------------------------------------------------------- */

static pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

void shim_lock(void)
{
	if (shim.threads)
		pthread_mutex_lock(&mutex);
}

void shim_unlock(void)
{
	if (shim.threads)
		pthread_mutex_unlock(&mutex);
}

/* ---- failing ------------------------------------------------------------ */

static bool error_says(int code, const char *text)
{
	char said[MPI_MAX_ERROR_STRING];
	int length;

	return !real.Error_string(code, said, &length) && !strcmp(said, text);
}

/* MPICH 4.0 has a text of its own for a code that is added to a class of the MPI's: then the class is ours, too. */
static int error_add(const char *text)
{
	static int class = MPI_ERR_OTHER;
	int code;

	if (real.Add_error_code(class, &code) || real.Add_error_string(code, text))
		return MPI_ERR_OTHER;
	if (class != MPI_ERR_OTHER || error_says(code, text) || real.Add_error_class(&class))
		return code;
	real.Add_error_string(class, "libcollmpi has failed");
	return error_add(text);
}

/* An MPI has some thousands of codes, and a program may try again and again. */
static int error_code(const char *text)
{
	static char latest[MPI_MAX_ERROR_STRING];
	static int code = MPI_ERR_OTHER;
	char brief[MPI_MAX_ERROR_STRING];

	snprintf(brief, sizeof(brief), "%.*s", (int)sizeof(brief) - 1, text);
	if (strcmp(latest, brief))
		code = error_add(brief);
	strcpy(latest, brief);
	return code;
}

int shim_fail(MPI_Comm comm, const char *what, int error, const char *why)
{
	char text[512];
	int code;

	snprintf(text, sizeof(text), "libcollmpi: rank %d: %s: %.300s", shim.rank, what,
		 why && *why ? why : coll_strerror(error));
	fprintf(stderr, "%s\n", text);
	code = error_code(text);
	if (comm != MPI_COMM_NULL)
		real.Comm_call_errhandler(comm, code);
	return code;
}

void shim_end_job(const char *why)
{
	fprintf(stderr, "libcollmpi: rank %d: %s\n", shim.rank, why);
	abort();
}

void shim_no_memory(void)
{
	shim_end_job("no memory to compare libcoll with the MPI; COLL_MPI_HAND=off does without");
}

bool shim_all(bool mine)
{
	int good = mine, all = 0;

	return !real.Allreduce(&good, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD) && all;
}

/* ---- settings ----------------------------------------------------------- */

static int setting_of(const char *name)
{
	int i;

	for (i = 0; i < WHICH_COUNT; i++)
		if (!strcmp(name, which_names[i]))
			return i;
	return -1;
}

/* "on", "off", or the names of the collectives that libcoll does, separated by commas. */
static int read_on(const char *text, uint32_t *on)
{
	char copy[512], *save, *name;
	int i;

	*on = 0;
	if (!text || !*text || !strcmp(text, "on") || !strcmp(text, "off")) {
		*on = text && !strcmp(text, "off") ? 0 : ~0u;
		return 0;
	}
	snprintf(copy, sizeof(copy), "%s", text);
	for (name = strtok_r(copy, ",", &save); name; name = strtok_r(NULL, ",", &save)) {
		i = setting_of(name);
		if (i < 0)
			return -EINVAL;
		*on |= 1u << i;
	}
	return 0;
}

static int read_hand(const char *text, int32_t *hand)
{
	static const char *const names[] = { "off", "auto", "all" };
	int i;

	*hand = !text || !*text ? HAND_SAME : HAND_OFF;
	for (i = 0; text && *text && i < 3; i++)
		if (!strcmp(text, names[i])) {
			*hand = i;
			return 0;
		}
	return text && *text ? -EINVAL : 0;
}

static bool is_set(const char *name)
{
	const char *value = getenv(name);

	return value && *value && strcmp(value, "0");
}

/* All ranks take rank 0's settings: environments may differ. */
static void share_settings(void)
{
	struct settings *settings = &shim.settings;

	if (read_on(getenv("COLL_MPI"), &settings->on) && !shim.rank)
		fprintf(stderr, "libcollmpi: COLL_MPI='%s' is not valid and counts as off; valid: "
			"on, off, or names of collectives separated by commas\n",
			getenv("COLL_MPI"));
	if (read_hand(getenv("COLL_MPI_HAND"), &settings->hand) && !shim.rank)
		fprintf(stderr, "libcollmpi: COLL_MPI_HAND='%s' is not valid and counts as off; valid: "
			"auto, all or off\n", getenv("COLL_MPI_HAND"));
	settings->report = is_set("COLL_MPI_REPORT");
	settings->trace = is_set("COLL_MPI_TRACE");
	real.Bcast(settings, sizeof(*settings), MPI_BYTE, 0, MPI_COMM_WORLD);
}

/*
 * A rank of a correct MPI program may wait for hours, so the default deadline is a day.
 * An io_uring serves one thread only, so threads get epoll. In the call of a survey a root
 * waits for all ranks, which MPI_Test() must not: costs follow nothing unless they are asked to.
 */
static void choose_options(char *text, size_t bytes, int level)
{
	snprintf(text, bytes, "%s%s%s", coll_shim_deadline_set() ? "" : "deadline=86400s ",
		 getenv("COLL_MEASURE") ? "" : "measure=off ",
		 level >= MPI_THREAD_SERIALIZED ? "engine=epoll" : "");
}

/* ---- start -------------------------------------------------------------- */

/*
 * On a node with more ranks than cores Open MPI yields its core while it waits. MPICH
 * polls without yielding: the rank that it waits for gets the core some milliseconds
 * later, when the scheduler preempts the poller.
 */
#if defined(OPEN_MPI) && OPEN_MPI
static const bool mpi_yields = true;
#else
static const bool mpi_yields = false;
#endif

static bool open_parts(void)
{
	return !real.Comm_dup(MPI_COMM_SELF, &shim.self) &&
	       !real.Comm_dup(MPI_COMM_WORLD, &shim.all) &&
	       !real.Comm_set_errhandler(shim.self, MPI_ERRORS_RETURN) &&
	       !real.Comm_group(MPI_COMM_WORLD, &shim.world) && !type_start() && !op_start() &&
	       !comm_start();
}

static void free_node(void)
{
	if (shim.node != MPI_COMM_NULL)
		real.Comm_free(&shim.node);
}

/* All ranks join or none; without libcoll the MPI's own collectives are used. */
static void init_join(void)
{
	char options[64];
	int level = MPI_THREAD_SINGLE;

	shim.process = getpid();
	real.Comm_rank(MPI_COMM_WORLD, &shim.rank);
	real.Comm_size(MPI_COMM_WORLD, &shim.ranks);
	share_settings();
	if (!shim.settings.on)
		return;
	real.Query_thread(&level);
	shim.threads = level == MPI_THREAD_MULTIPLE;
	choose_options(options, sizeof(options), level);
	shim.node = MPI_COMM_NULL;
	if (boot_mpi_open(options, &shim.context)) {
		free_node();
		return;
	}
	shim.on = shim_all(open_parts());
	shim.yields = shim.on && coll_shim_crowded(shim.context) && !mpi_yields;
	shim.polls = shim.yields || (shim.on && shim.threads);
	if (shim.on)
		hand_start();
	shim.opened = coll_shim_now();
	if (shim.on && shim.settings.trace)
		trace_start();
}

int MPI_Init(int *argc, char ***argv)
{
	int code = real.Init(argc, argv);

	if (!code)
		init_join();
	return code;
}
ALSO(PMPI_Init, MPI_Init)

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	int code = real.Init_thread(argc, argv, required, provided);

	if (!code)
		init_join();
	return code;
}
ALSO(PMPI_Init_thread, MPI_Init_thread)

/* ---- end ---------------------------------------------------------------- */

static const uint64_t CLOSING_NS = 5000000000;

/* When all ranks are here, no rank needs data that we still hold: closing is quick. */
static void init_leave(void)
{
	comm_gather_round(MPI_COMM_WORLD);
	if (shim.settings.trace)
		trace_end();
	if (shim.settings.report)
		report_print();
	task_end();
	comm_end();
	hand_end();
	shim.on = shim.yields = shim.polls = false;
	type_end();
	shim.left = coll_shim_close(shim.context, CLOSING_NS);
	shim.context = NULL;
	real.Group_free(&shim.world);
	real.Comm_free(&shim.self);
	real.Comm_free(&shim.all);
	free_node();
}

int MPI_Finalize(void)
{
	if (shim.on)
		init_leave();
	return real.Finalize();
}
ALSO(PMPI_Finalize, MPI_Finalize)

/* A program that ends without MPI_Finalize: what this rank has counted is not lost. It is not its children's. */
static void report_unfinished(const char *end)
{
	if (shim.on && shim.settings.report && shim.process == getpid())
		report_print_unfinished(end);
	shim.settings.report = false;
}

int MPI_Abort(MPI_Comm comm, int code)
{
	report_unfinished("MPI_Abort");
	return real.Abort(comm, code);
}
ALSO(PMPI_Abort, MPI_Abort)

__attribute__((destructor)) static void exit_unfinished(void)
{
	report_unfinished("its end without MPI_Finalize");
}

/* ---- for tests and tools ------------------------------------------------ */

int collmpi_counts(uint64_t *ours, uint64_t *handed)
{
	hand_unlearn();
	*ours = shim.ours;
	*handed = shim.handed;
	return shim.on;
}
