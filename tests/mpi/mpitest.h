/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* For programs that test the shim: failing, counting, random numbers all ranks share. */
#ifndef MPITEST_H
#define MPITEST_H

#include <dlfcn.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(OPEN_MPI) && OPEN_MPI
#include <mpi-ext.h>
#endif

/* Open MPI 5 has MPI 4's persistent collectives and sessions without being MPI 4. */
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define HAVE_SESSIONS 1
#define INIT(Name) MPI_##Name##_init
#else
#define HAVE_SESSIONS 0
#define INIT(Name) MPIX_##Name##_init
#endif

__attribute__((noreturn, format(printf, 1, 2))) static inline void fail(const char *format, ...)
{
	va_list arguments;
	int rank = -1;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	va_start(arguments, format);
	printf("rank %d: ", rank);
	vprintf(format, arguments);
	va_end(arguments);
	printf("\n");
	fflush(stdout);
	MPI_Abort(MPI_COMM_WORLD, 1);
	exit(1);
}

static inline void must(int code, const char *what)
{
	char text[MPI_MAX_ERROR_STRING] = "";
	int length;

	if (code == MPI_SUCCESS)
		return;
	MPI_Error_string(code, text, &length);
	fail("%s: %s", what, text);
}

/* What the shim counted since the last call; false where there is none. */
static inline bool counted(uint64_t *ours, uint64_t *handed)
{
	static uint64_t last[2];
	uint64_t now[2] = { 0, 0 };
	int (*counts)(uint64_t *, uint64_t *) =
		(int (*)(uint64_t *, uint64_t *))dlsym(RTLD_DEFAULT, "collmpi_counts");

	if (!counts || !counts(&now[0], &now[1]))
		return false;
	*ours = now[0] - last[0];
	*handed = now[1] - last[1];
	memcpy(last, now, sizeof(last));
	return true;
}

/* The shim's trials of whether the MPI is faster (COLL_MPI_HAND) count its own times so many times. */
static inline bool scale_trials(double factor)
{
	int (*scale)(double) = (int (*)(double))dlsym(RTLD_DEFAULT, "collmpi_scale_trials");

	return scale && scale(factor);
}

/* The deadline of this rank for others in a call that is handed over. */
static inline bool hand_deadline(uint64_t ns)
{
	int (*set)(uint64_t) = (int (*)(uint64_t))dlsym(RTLD_DEFAULT, "collmpi_hand_deadline");

	return set && set(ns);
}

/*
 * Nothing is proved by a shim that was never called: with EXPECT_SHIM set there has
 * to be one, and it has to have seen exactly so many calls since the last time. With SCALE_TRIALS
 * trials say who does them.
 */
static inline void must_have_counted(uint64_t ours, uint64_t handed, const char *where)
{
	uint64_t ours_seen, handed_seen;

	if (!counted(&ours_seen, &handed_seen)) {
		if (getenv("EXPECT_SHIM"))
			fail("%s: the shim is not at work", where);
		return;
	}
	if (getenv("SCALE_TRIALS") && ours_seen + handed_seen == ours + handed)
		return;
	if (ours_seen != ours || handed_seen != handed)
		fail("%s: the shim did %llu calls and handed on %llu, not %llu and %llu", where,
		     (unsigned long long)ours_seen, (unsigned long long)handed_seen,
		     (unsigned long long)ours, (unsigned long long)handed);
}

struct dice {
	uint64_t state;
};

static inline uint32_t roll(struct dice *dice, uint32_t sides)
{
	dice->state = dice->state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(dice->state >> 33) % sides;
}

#endif
