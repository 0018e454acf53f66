// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Every collective in every form: every layout of moved data, every type with every
 * operation, in place and not, every root, several counts, on communicators of
 * several kinds; against our own reference.
 */
#include "scene.h"

static uint64_t calls;

static void play(struct scene scene)
{
	int again = 0;

	/* Each of these makes connections of its own: one in four will do. */
	if (scene.form == PERSISTENT && scene.seed % 4)
		return;
	scene_begin(&scene);
	calls++;
	if (scene.form != BLOCKING)
		must(MPI_Wait(&scene.request, MPI_STATUS_IGNORE), "MPI_Wait");
	scene_check(&scene);
	for (; scene.form == PERSISTENT && again < 2; again++) {
		scene_again(&scene);
		must(MPI_Wait(&scene.request, MPI_STATUS_IGNORE), "MPI_Wait");
		scene_check(&scene);
	}
	scene_free(&scene);
}

static void moves(MPI_Comm comm, enum form form)
{
	static const int counts[] = { 0, 1, 7, 1500 };
	struct scene scene = { .form = form, .comm = comm };
	int rank, ranks, i, layout;

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &ranks);
	for (scene.what = BARRIER; scene.what < REDUCE; scene.what++)
		for (layout = 0; layout < LAYOUTS; layout++)
			for (i = 0; i < 4; i++) {
				/* Ranks differ in how they see the same data. */
				scene.in_layout = (layout + rank) % LAYOUTS;
				scene.out_layout = (layout + 2 * rank + i) % LAYOUTS;
				scene.count = counts[i];
				scene.root = layout + i;
				scene.seed++;
				scene.in_place = false;
				play(scene);
				scene.in_place = scene.what > BCAST;
				/* MPI swaps blocks in place only if they have one layout. */
				if (scene.what == ALLTOALLW || scene.what == ALLTOALLV)
					scene.in_layout = scene.out_layout;
				if (scene.in_place && (i & 1))
					play(scene);
			}
}

static void reduces(MPI_Comm comm, enum form form)
{
	static const int counts[] = { 1, 0, 17, 700 };
	struct scene scene = { .form = form, .comm = comm, .seed = 100000 };
	int i;

	for (scene.what = REDUCE; scene.what < WHATS; scene.what++)
		for (i = 0; i < reductions(); i++) {
			reduction_choose(&scene, i);
			scene.count = counts[i % 4];
			scene.root = i;
			scene.in_place = i / 4 % 2;
			scene.seed++;
			play(scene);
		}
}

static void sweep(MPI_Comm comm, enum form form)
{
	moves(comm, form);
	reduces(comm, form);
	must_have_counted(calls, 0, "sweep");
	calls = 0;
}

int main(int argc, char **argv)
{
	MPI_Comm half, self;
	int rank, ranks;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	scenes_start();
	must_have_counted(0, 0, "before the first call");
	sweep(MPI_COMM_WORLD, BLOCKING);
	sweep(MPI_COMM_WORLD, NONBLOCKING);
	MPI_Comm_split(MPI_COMM_WORLD, rank * 2 < ranks, -rank, &half);
	sweep(half, BLOCKING);
	sweep(half, PERSISTENT);
	MPI_Comm_free(&half);
	MPI_Comm_dup(MPI_COMM_SELF, &self);
	sweep(self, BLOCKING);
	sweep(self, NONBLOCKING);
	MPI_Comm_free(&self);
	scenes_end();
	if (!rank)
		printf("swept\n");
	MPI_Finalize();
	return 0;
}
