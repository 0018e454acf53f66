// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sweep.h"

enum { WORKERS_MAX = 256, PROGRESS_MS = 100 };

/* Header of the results, in shared memory. */
struct sweep_shared {
	atomic_uint next, done;
};

static size_t shared_bytes(u32 count)
{
	return 4096 + (size_t)count * sizeof(struct flit_result);
}

static struct flit_result *results_of(struct sweep_shared *shared)
{
	return (struct flit_result *)((char *)shared + 4096);
}

static void sweep_work(struct sweep_shared *shared, const struct flit_config *config, u32 count)
{
	u32 i;

	while ((i = atomic_fetch_add(&shared->next, 1)) < count) {
		flit_run(&config[i], &results_of(shared)[i]);
		atomic_fetch_add(&shared->done, 1);
	}
}

static void wait_for(struct sweep_shared *shared, pid_t *pids, u32 workers, u32 count,
		     void (*progress)(u32, u32))
{
	const struct timespec pause = { .tv_nsec = PROGRESS_MS * 1000000L };
	u32 running = workers, i;

	while (running) {
		for (i = 0; i < workers; i++)
			if (pids[i] > 0 &&
			    waitpid(pids[i], NULL, progress ? WNOHANG : 0) == pids[i]) {
				pids[i] = 0;
				running--;
			}
		if (progress)
			progress(atomic_load(&shared->done), count);
		if (running && progress)
			nanosleep(&pause, NULL);
	}
}

struct flit_result *flit_sweep(const struct flit_config *config, u32 count, u32 workers,
			       void (*progress)(u32 done, u32 count))
{
	struct sweep_shared *shared = mmap(NULL, shared_bytes(count), PROT_READ | PROT_WRITE,
					   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const pid_t parent = getpid();
	pid_t pids[WORKERS_MAX];
	u32 i, started;

	if (shared == MAP_FAILED)
		return NULL;
	if (workers > WORKERS_MAX)
		workers = WORKERS_MAX;
	if (workers > count)
		workers = count;
	for (i = 0; i < count; i++)	/* result of a worker that dies */
		results_of(shared)[i].error = -ECHILD;
	fflush(NULL);
	for (started = 0; workers > 1 && started < workers; started++) {
		pids[started] = fork();
		if (!pids[started]) {
			/* A run may take hours, and nobody would read its result. */
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (getppid() == parent)
				sweep_work(shared, config, count);
			_exit(0);
		}
		if (pids[started] < 0)
			break;
	}
	if (!started)
		sweep_work(shared, config, count);
	wait_for(shared, pids, started, count, progress);
	return results_of(shared);
}

void flit_sweep_free(struct flit_result *result, u32 count)
{
	munmap((char *)result - 4096, shared_bytes(count));
}
