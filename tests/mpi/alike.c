// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * alike PREFIX: every collective on data whose sums are rounded, blocking and not; what
 * each rank gets is written to PREFIX.exact.RANK and PREFIX.rounded.RANK, so that a run
 * with the shim can be compared with one without.
 */
#include "scene.h"

static FILE *exact, *rounded;
static uint64_t calls;

/* What the MPIs do not do, or get wrong themselves: sweep has our own reference for it. */
static const char *const not_right[][2] = {
	{ "MPI_INTEGER", ", land" }, { "MPI_INTEGER", ", lor" }, { "MPI_INTEGER", ", lxor" },
	/* Both take unsigned for signed here, if not in each collective and type. */
	{ "MPI_U", ", min" }, { "MPI_U", ", max" },
#if defined(OPEN_MPI) && OPEN_MPI
	/* 4.1: sums of small integers saturate. */
	{ "CHAR", ", sum" }, { "MPI_SHORT", ", sum" }, { "MPI_UINT16_T", ", sum" },
#else
	/* 4.0: writes beyond its memory. */
	{ "maps with gaps", "reduce_scatter" },
#endif
};

static bool mpi_is_right(const struct scene *scene)
{
	const char *name = scene_name(scene);
	size_t i;

	for (i = 0; i < sizeof(not_right) / sizeof(*not_right); i++)
		if (strstr(name, not_right[i][0]) && strstr(name, not_right[i][1]))
			return false;
	return true;
}

static void play(struct scene scene)
{
	scene.rounded = true;
	if (!mpi_is_right(&scene))
		return;
	scene_begin(&scene);
	calls++;
	if (scene.form != BLOCKING)
		must(MPI_Wait(&scene.request, MPI_STATUS_IGNORE), "MPI_Wait");
	scene_write(&scene, exact, rounded);
	scene_free(&scene);
}

static void moves(struct scene scene)
{
	static const int counts[] = { 1, 7, 900 };
	int rank, i;

	MPI_Comm_rank(scene.comm, &rank);
	for (scene.what = BARRIER; scene.what < REDUCE; scene.what++)
		for (i = 0; i < 3; i++) {
			scene.in_layout = (rank + i) % LAYOUTS;
			scene.out_layout = (2 * rank + i) % LAYOUTS;
			scene.count = counts[i];
			scene.root = i;
			scene.seed++;
			play(scene);
		}
}

static void reduces(struct scene scene)
{
	static const int counts[] = { 3, 200 };
	int i;

	for (scene.what = REDUCE; scene.what < WHATS; scene.what++)
		for (i = 0; i < reductions(); i++) {
			reduction_choose(&scene, i);
			scene.count = counts[i % 2];
			scene.root = i;
			scene.seed++;
			play(scene);
		}
}

static FILE *open_file(const char *prefix, const char *what, int rank)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s.%s.%d", prefix, what, rank);
	file = fopen(path, "w");
	if (!file)
		fail("cannot write %s", path);
	return file;
}

int main(int argc, char **argv)
{
	struct scene scene = { .comm = MPI_COMM_WORLD, .seed = 5 };
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (argc != 2)
		fail("alike PREFIX");
	exact = open_file(argv[1], "exact", rank);
	rounded = open_file(argv[1], "rounded", rank);
	scenes_start();
	for (scene.form = BLOCKING; scene.form <= NONBLOCKING; scene.form++) {
		moves(scene);
		reduces(scene);
	}
	must_have_counted(calls, 0, "alike");
	scenes_end();
	if (fclose(exact) || fclose(rounded))
		fail("cannot write all");
	if (!rank)
		printf("%llu calls\n", (unsigned long long)calls);
	MPI_Finalize();
	return 0;
}
