// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* /dev/coll of a context: opened, told what ends, closed. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libcoll/base/cpus.h"
#include "libcoll/engine/engine.h"
#include "offload.h"
#include "offload_device.h"
#include "planned.h"

long coll_offload_command(const struct coll_offload *offload, unsigned int op, void *argument,
			  uint32_t bytes)
{
	struct coll_device_command c = { .argument = (uintptr_t)argument, .bytes = bytes };
	int result = ioctl(offload->fd, op, &c);

	return result < 0 ? -errno : result;
}

/* ---- opening ----------------------------------------------------------- */

/* Each rank of a node takes the next of the CPUs that the option names. */
static int thread_cpu(const struct coll_context *context, uint32_t *cpu)
{
	cpu_set_t cpus;
	int error, turn, i;

	*cpu = COLL_NONE;
	if (!context->options.progress_cpus[0])
		return 0;
	error = coll_cpus_parse(context->options.progress_cpus, &cpus);
	if (error)
		return error;
	turn = context->boot->rank % CPU_COUNT(&cpus);
	for (i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &cpus) && !turn--)
			*cpu = i;
	return 0;
}

static void thread_priority(const char *text, struct coll_device_setup *setup)
{
	struct coll_priority priority;

	if (!*text || coll_priority_parse(text, &priority))
		return;
	setup->policy = priority.fifo ? COLL_DEVICE_FIFO : COLL_DEVICE_NORMAL;
	setup->priority = priority.value;
}

static const char *open_problem(int error)
{
	switch (error) {
	case ENOENT:
	case ENODEV:
	case ENXIO:
		return "coll.ko is not loaded here";
	case EACCES:
	case EPERM:
		return "no permission to open it";
	default:
		return strerror(error);
	}
}

static int set_up(struct coll_context *context, char *why, size_t why_bytes)
{
	struct coll_offload *offload = context->offload;
	struct coll_device_setup setup = { .version = COLL_DEVICE_VERSION, .words = OFFLOAD_WORDS };
	int error = thread_cpu(context, &setup.cpu);

	const char *priority = context->options.progress_priority;

	thread_priority(priority, &setup);
	if (!error)
		error = coll_offload_command(offload, COLL_DEVICE_SETUP, &setup, sizeof(setup));
	if (error) {
		snprintf(why, why_bytes, "/dev/coll: %s%s%s%s%s%s", strerror(-error),
			 error == -EAGAIN ? " (RLIMIT_NPROC or pids.max counts its thread)" : "",
			 setup.cpu == COLL_NONE ? "" : ": option progress_cpus ",
			 setup.cpu == COLL_NONE ? "" : context->options.progress_cpus,
			 *priority ? ": option progress_priority " : "", priority);
		return error;
	}
	offload->shared_bytes =
		sizeof(*offload->shared) + OFFLOAD_WORDS * sizeof(offload->shared->word[0]);
	offload->shared = mmap(NULL, offload->shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			       offload->fd, 0);
	if (offload->shared != MAP_FAILED)
		return 0;
	error = -errno;
	snprintf(why, why_bytes, "/dev/coll: its shared memory: %s", strerror(-error));
	return error;
}

static void offload_woken(struct coll_watch *watch, int events)
{
	(void)watch;	/* waking up is all: coll_offload_poll() reads the words */
	(void)events;
}

int coll_offload_open(struct coll_context *context, char *why, size_t why_bytes)
{
	struct coll_offload *offload = calloc(1, sizeof(*offload));
	int error = -ENOMEM;

	if (!offload)
		return error;
	do {	/* the kernel gives up at a signal, whatever its handler's flags */
		offload->fd = open("/dev/coll", O_RDWR | O_CLOEXEC);
	} while (offload->fd < 0 && errno == EINTR);
	if (offload->fd < 0) {
		error = -errno;
		snprintf(why, why_bytes, "/dev/coll: %s", open_problem(-error));
		free(offload);
		return error;
	}
	context->offload = offload;
	context->to_kernel = true;
	error = set_up(context, why, why_bytes);
	if (error) {
		close(offload->fd);
		free(offload);
		context->offload = NULL;
		return error;
	}
	for (; offload->free_words < OFFLOAD_WORDS; offload->free_words++)
		offload->free_word[offload->free_words] = offload->free_words;
	offload->watch =
		(struct coll_watch){ .ready = offload_woken, .owner = context, .fd = offload->fd };
	return 0;
}

void coll_offload_close(struct coll_context *context)
{
	struct coll_offload *offload = context->offload;

	if (!offload)
		return;
	if (offload->watch.armed)
		coll_engine_unwatch(&context->engine, &offload->watch);
	munmap(offload->shared, offload->shared_bytes);
	close(offload->fd);
	free(offload);
	context->offload = NULL;
}

/* ---- commands ---------------------------------------------------------- */

void coll_offload_fail(struct coll_group *group)
{
	struct coll_device_fail fail = {
		.group = group->offload.number,
		.error = -group->error,
		.failed_rank = group->failed_rank,
		.reporter = group->reporter,
	};

	if (group->offload.made)
		coll_offload_command(coll_offload_of(group), COLL_DEVICE_FAIL, &fail, sizeof(fail));
}

void coll_offload_loaded(struct coll_planned *planned, uint32_t number)
{
	struct coll_planned **slot = &planned->group->offload.plans;

	planned->loaded = number + 1;
	planned->next_loaded = *slot;
	if (*slot)
		(*slot)->loaded_slot = &planned->next_loaded;
	planned->loaded_slot = slot;
	*slot = planned;
}

static void planned_unlink(struct coll_planned *planned)
{
	*planned->loaded_slot = planned->next_loaded;
	if (planned->next_loaded)
		planned->next_loaded->loaded_slot = planned->loaded_slot;
	planned->loaded = 0;
}

void coll_offload_forget(struct coll_planned *planned)
{
	struct coll_device_number number = { .number = planned->loaded - 1 };

	if (!planned->loaded)	/* maybe the group has been freed */
		return;
	coll_offload_command(coll_offload_of(planned->group), COLL_DEVICE_UNLOAD, &number,
			     sizeof(number));
	planned_unlink(planned);
}

void coll_offload_forget_all(struct coll_group *group)
{
	while (group->offload.plans)
		planned_unlink(group->offload.plans);
}
