// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "uapi/coll_device.h"
#include "libcoll/base/cpus.h"
#include "unexpected.h"
#include "libcoll/engine/engine.h"
#include "exec.h"
#include "health.h"
#include "libcoll/link/link.h"
#include "offload.h"
#include "run.h"

enum {
	WORDS = 1024,			/* runs in the kernel at once */
	/* The kernel's capacity for unexpected messages counts as locked memory from the start. */
	UNEXPECTED_BYTES = 1 << 20,
	STREAM_BYTES = 65536,		/* what comes back with a link, by estimate */
	RETRY_NS = 200000,		/* while a run waits for links to come back */
};

struct coll_offload {
	int fd;
	struct coll_device_shared *shared;
	size_t shared_bytes;
	struct coll_run *runs;		/* runs in the kernel */
	uint16_t free_word[WORDS];
	uint32_t free_words;
	struct coll_watch watch;		/* for who sleeps */
};

static struct coll_offload *offload_of(const struct coll_group *group)
{
	return group->context->offload;
}

/* One command: its result, or a negative errno. */
static long offload_command(const struct coll_offload *offload, unsigned int op, void *argument,
			    uint32_t bytes)
{
	struct coll_device_command c = { .argument = (uintptr_t)argument, .bytes = bytes };
	int result = ioctl(offload->fd, op, &c);

	return result < 0 ? -errno : result;
}

/* ---- opening ------------------------------------------------------------------ */

/* Of the CPUs that the option names, those of a node's ranks in turn. */
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
		return "this user may not open it";
	default:
		return strerror(error);
	}
}

static int set_up(struct coll_context *context, char *why, size_t why_bytes)
{
	struct coll_offload *offload = context->offload;
	struct coll_device_setup setup = { .version = COLL_DEVICE_VERSION, .words = WORDS };
	int error = thread_cpu(context, &setup.cpu);

	const char *priority = context->options.progress_priority;

	thread_priority(priority, &setup);
	if (!error)
		error = offload_command(offload, COLL_DEVICE_SETUP, &setup, sizeof(setup));
	if (error) {
		snprintf(why, why_bytes, "/dev/coll: %s%s%s%s%s", strerror(-error),
			 setup.cpu == COLL_NONE ? "" : ": option progress_cpus ",
			 setup.cpu == COLL_NONE ? "" : context->options.progress_cpus,
			 *priority ? ": option progress_priority " : "", priority);
		return error;
	}
	offload->shared_bytes = sizeof(*offload->shared) + WORDS * sizeof(offload->shared->word[0]);
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
	(void)watch;	/* to wake up is all: coll_offload_poll() looks at the words */
	(void)events;
}

int coll_offload_open(struct coll_context *context, char *why, size_t why_bytes)
{
	struct coll_offload *offload = calloc(1, sizeof(*offload));
	int error = -ENOMEM;

	if (!offload)
		return error;
	offload->fd = open("/dev/coll", O_RDWR | O_CLOEXEC);
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
	for (; offload->free_words < WORDS; offload->free_words++)
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

/* ---- the stream's bytes that nobody has used -------------------------------------- */

struct stream {
	uint8_t *data;
	uint64_t bytes, capacity;
};

static int stream_add(struct stream *stream, const void *from, uint64_t bytes)
{
	if (stream->bytes + bytes > stream->capacity) {
		uint64_t capacity = 2 * (stream->bytes + bytes);
		uint8_t *data = realloc(stream->data, capacity);

		if (!data)
			return -ENOMEM;
		stream->data = data;
		stream->capacity = capacity;
	}
	if (bytes)
		memcpy(stream->data + stream->bytes, from, bytes);
	stream->bytes += bytes;
	return 0;
}

/* What has been read of the message that is coming in. Of one thrown away only the rest is. */
static int stream_add_begun(struct stream *stream, const struct coll_link *link)
{
	struct coll_header header = link->header;
	const uint64_t end = header.offset + coll_chunk_bytes(&header);
	int error;

	if (link->header_got == sizeof(header))
		header = link->unexpected ? coll_chunk_first(&header, end) :
				       coll_chunk_rest(&header, link->payload_left);
	error = stream_add(stream, &header, link->header_got);
	if (!error && link->unexpected)
		error = stream_add(stream, link->unexpected->data, end - link->payload_left);
	return error;
}

static int stream_take(struct stream *stream, const struct coll_link *link)
{
	const struct coll_unexpected *unexpected;
	struct coll_header header;
	int error = 0;

	for (unexpected = link->kept; unexpected && !error; unexpected = unexpected->next) {
		if (unexpected == link->unexpected)
			continue;
		header = coll_chunk_first(&unexpected->header, unexpected->got);
		error = stream_add(stream, &header, sizeof(header));
		if (!error)
			error = stream_add(stream, unexpected->data, unexpected->got);
	}
	return error ? error : stream_add_begun(stream, link);
}

/* The kernel has it all now. */
static void stream_forget(struct coll_link *link)
{
	while (link->kept)
		coll_unexpected_release(link, link->kept);
	link->unexpected = NULL;
	link->target = NULL;
	link->header_got = 0;
	link->payload_left = 0;
}

/* ---- lending ------------------------------------------------------------------ */

static int offload_attach(struct coll_link *link)
{
	struct coll_group *group = link->group;
	struct coll_device_link attach = {
		.group = group->offload.number,
		.rank = link->rank,
		.fd = link->socket.fd,
	};
	struct stream stream = { 0 };
	int error = stream_take(&stream, link);

	attach.address = (uintptr_t)stream.data;
	attach.bytes = stream.bytes;
	if (!error)
		error = offload_command(offload_of(group), COLL_DEVICE_ATTACH, &attach,
					sizeof(attach));
	free(stream.data);
	if (!error)
		stream_forget(link);
	return error;
}

/* The engine stops at the link, then the kernel begins. */
int coll_offload_attach(struct coll_link *link)
{
	const struct coll_engine_ops *engine = link->socket.engine->ops;
	int error;

	link->offloaded = true;
	error = engine->pause(&link->socket);
	if (!error && link->state == LINK_UP)
		error = offload_attach(link);
	if (error || link->state != LINK_UP) {
		link->offloaded = false;
		engine->resume(&link->socket);
		coll_link_touch(link);
	}
	return error;
}

static int offload_detach(struct coll_link *link)
{
	struct coll_group *group = link->group;
	struct coll_device_link back = {
		.group = group->offload.number,
		.rank = link->rank,
		.fd = -1,
		.bytes = STREAM_BYTES,
	};
	uint8_t *stream = NULL;
	long bytes;

	do {
		free(stream);
		stream = malloc(back.bytes);
		if (!stream)
			return -ENOMEM;
		back.address = (uintptr_t)stream;
		bytes = offload_command(offload_of(group), COLL_DEVICE_DETACH, &back, sizeof(back));
		if (bytes > (long)back.bytes) {
			back.bytes = bytes;
			bytes = -EAGAIN;
		}
	} while (bytes == -EAGAIN);
	if (bytes >= 0) {
		link->offloaded = false;
		link->socket.engine->ops->resume(&link->socket);
		if (bytes)
			link->socket.ops->received_in(&link->socket, stream, bytes);
		coll_link_touch(link);
	}
	free(stream);
	return bytes < 0 ? bytes : 0;
}

int coll_offload_detach(struct coll_group *group)
{
	uint32_t rank;
	int error;

	if (!group->offload.attached)
		return 0;
	for (rank = 0; rank < group->ranks; rank++) {
		struct coll_link *link = group->links[rank];

		error = link && link->offloaded ? offload_detach(link) : 0;
		if (error)
			return error;
	}
	group->offload.attached = group->offload.partly = false;
	return 0;
}

void coll_offload_drop(struct coll_group *group)
{
	struct coll_device_number number = { .number = group->offload.number };
	uint32_t rank;

	if (!group->offload.made)
		return;
	offload_command(offload_of(group), COLL_DEVICE_GROUP_FREE, &number, sizeof(number));
	group->offload.made = false;
	group->offload.gone = true;
	group->offload.attached = false;
	for (rank = 0; rank < group->ranks; rank++) {
		struct coll_link *link = group->links[rank];

		if (!link || !link->offloaded)
			continue;
		link->offloaded = false;
		link->socket.engine->ops->resume(&link->socket);
	}
}

static const char *not_quiet(const struct coll_group *group)
{
	uint32_t rank;

	if (group->active)
		return "an earlier run is under way in user space";
	for (rank = 0; rank < group->ranks; rank++)
		if (group->links[rank] &&
		    (group->links[rank]->queue || group->links[rank]->socket.sending))
			return "a message is still on its way in user space";
	return NULL;
}

static int make_group(struct coll_group *group)
{
	struct coll_device_group asked = {
		.rank = group->rank,
		.ranks = group->ranks,
		.next_run = group->next_run,
		.unexpected_bytes = UNEXPECTED_BYTES,
	};
	long number = offload_command(offload_of(group), COLL_DEVICE_GROUP, &asked, sizeof(asked));

	if (number < 0)
		return number;
	group->offload.number = number;
	group->offload.made = true;
	return 0;
}

/* All links that are up. Why not, or NULL. */
static const char *attach_all(struct coll_group *group)
{
	const char *reason = not_quiet(group);
	uint32_t rank;
	int error = 0;

	if (reason)
		return reason;
	if (!group->offload.made)
		error = make_group(group);
	group->offload.attached = !error;
	for (rank = 0; rank < group->ranks && !error; rank++) {
		struct coll_link *link = group->links[rank];

		/* One that comes up while the engine stops at another is attached by itself. */
		if (link && link->state == LINK_UP && !link->offloaded)
			error = coll_offload_attach(link);
	}
	if (!error)
		return NULL;
	group->offload.partly = true;
	coll_offload_detach(group);
	return strerror(-error);
}

/* ---- failures ------------------------------------------------------------------ */

static const char *failure_reason(int error, uint32_t reporter)
{
	switch (error) {
	case -ETIMEDOUT:
		return "nothing came from it before the deadline";
	case -ECONNRESET:
		return reporter == COLL_NONE
			       ? "its connection ended: it has died, left or was cut off"
			       : "failed";
	case -EPROTO:
		return "called with different arguments";
	case -ECANCELED:
		return "revoked the group";
	default:
		return "its runs in the kernel failed";
	}
}

static void offload_failed(struct coll_group *group, int error, uint32_t failed_rank,
			   uint32_t reporter)
{
	coll_group_fail(group, error, failed_rank < group->ranks ? failed_rank : group->rank,
			reporter < group->ranks ? reporter : COLL_NONE,
			failure_reason(error, reporter));
}

void coll_offload_fail(struct coll_group *group)
{
	struct coll_device_fail fail = {
		.group = group->offload.number,
		.error = -group->error,
		.failed_rank = group->failed_rank,
		.reporter = group->reporter,
	};

	if (group->offload.made)
		offload_command(offload_of(group), COLL_DEVICE_FAIL, &fail, sizeof(fail));
}

/* What the kernel has heard beside the runs: a failure, a goodbye. */
static void offload_hear(struct coll_group *group)
{
	struct coll_device_control got = { .group = group->offload.number };
	const struct coll_header *header = &got.header;

	while (!offload_command(offload_of(group), COLL_DEVICE_CONTROL_GET, &got, sizeof(got))) {
		if (header->kind == COLL_MESSAGE_FAIL)
			offload_failed(group, -(int)header->hash, header->slot, header->run);
		else if (header->kind == COLL_MESSAGE_BYE && group->links[got.rank] &&
			 group->links[got.rank]->state == LINK_UP)
			coll_link_set_state(group->links[got.rank], LINK_LEFT);
	}
}

static void hear_all(struct coll_context *context)
{
	struct coll_group *group;

	if (!__atomic_load_n(&context->offload->shared->control, __ATOMIC_RELAXED))
		return;
	for (group = context->groups; group; group = group->next)
		if (group->offload.made)
			offload_hear(group);
}

/* ---- ends of runs --------------------------------------------------------------- */

static struct coll_device_word *word_of(const struct coll_run *run)
{
	return &offload_of(run->group)->shared->word[run->word - 1];
}

static bool word_done(const struct coll_run *run)
{
	return __atomic_load_n(&word_of(run)->state, __ATOMIC_ACQUIRE) == COLL_DEVICE_DONE;
}

static void run_over(struct coll_run *run)
{
	const struct coll_device_word *word = word_of(run);
	struct coll_group *group = run->group;
	struct coll_offload *offload = offload_of(group);
	struct coll_run **slot = &offload->runs;

	while (*slot != run)
		slot = &(*slot)->next_offloaded;
	*slot = run->next_offloaded;
	offload->free_word[offload->free_words++] = run->word - 1;
	if (word->status)
		offload_failed(group, word->status, word->failed_rank, word->reporter);
	run->status = word->status ? group->error : 0;
	run->word = 0;
	group->offload.running--;
	group->context->counters.runs++;
}

bool coll_offload_in_flight(struct coll_run *run)
{
	if (run->word && word_done(run))
		run_over(run);
	return run->word || run->waiting;
}

struct coll_run *coll_offload_runs(const struct coll_context *context)
{
	return context->offload ? context->offload->runs : NULL;
}

bool coll_offload_needs_link(const struct coll_link *link)
{
	const struct coll_run *run;

	if (!link->group->offload.running)
		return false;
	for (run = offload_of(link->group)->runs; run; run = run->next_offloaded)
		if (run->group == link->group &&
		    coll_peer_find(run->planned->schedule, link->rank) != COLL_NONE)
			return true;
	return false;
}

void coll_offload_deadline(const struct coll_run *run, uint64_t deadline)
{
	struct coll_device_deadline asked = {
		.group = run->group->offload.number,
		.number = run->number,
		.deadline = deadline,
	};

	if (run->word)
		offload_command(offload_of(run->group), COLL_DEVICE_DEADLINE, &asked,
				sizeof(asked));
}

/* ---- starting -------------------------------------------------------------------- */

void coll_offload_forget(struct coll_planned *planned)
{
	struct coll_device_number number = { .number = planned->loaded - 1 };

	if (planned->loaded && planned->group->offload.made)
		offload_command(offload_of(planned->group), COLL_DEVICE_UNLOAD, &number,
				sizeof(number));
	planned->loaded = 0;
}

static int offload_load(struct coll_planned *planned)
{
	struct coll_device_load asked = {
		.group = planned->group->offload.number,
		.hash = planned->hash,
		.schedule = (uintptr_t)planned->schedule,
		.bytes = planned->schedule->bytes,
	};
	long number;

	if (planned->loaded)
		return 0;
	number = offload_command(offload_of(planned->group), COLL_DEVICE_LOAD, &asked,
				 sizeof(asked));
	if (number < 0)
		return number;
	planned->loaded = number + 1;
	return 0;
}

static int run_in_kernel(struct coll_run *run)
{
	struct coll_group *group = run->group;
	struct coll_offload *offload = offload_of(group);
	const uint32_t word = offload->free_word[offload->free_words - 1];
	struct coll_device_run asked = {
		.schedule = run->planned->loaded - 1,
		.number = group->next_run,
		.word = word,
		.flags = COLL_DEVICE_QUIET,
		.in = { .address = (uintptr_t)run->in, .buffer = COLL_NONE },
		.out = { .address = (uintptr_t)run->out, .buffer = COLL_NONE },
		.deadline = run->until,
	};
	int error = offload_command(offload, COLL_DEVICE_RUN, &asked, sizeof(asked));

	if (error)
		return error;
	offload->free_words--;
	run->word = word + 1;
	run->number = group->next_run++;
	group->recent[run->number % RECENT_RUNS] = run->planned->hash;
	run->next_offloaded = offload->runs;
	offload->runs = run;
	group->offload.running++;
	return 0;
}

/* Why this run is none for the kernel whatever the state of things, or NULL. */
static const char *offload_unfit(const struct coll_run *run)
{
	if (run->planned->call.reduction == COLL_USER_REDUCTION)
		return "the application's own reduction runs in user space";
	if (!run->group->context->to_kernel)
		return "progress auto chose otherwise";
	if (run->group->context->inject)
		return "faults are injected in user space";
	if (run->group->context->circuits)
		return "circuits are asked for in user space";
	if (run->group->clusters > 1 && run->group->context->streams > 1)
		return "links with streams are kept in user space";
	if (run->group->offload.gone)
		return "the kernel's part of the group has ended";
	return NULL;
}

/* In the kernel, or why not. */
static const char *try_kernel(struct coll_run *run)
{
	struct coll_group *group = run->group;
	const char *reason = offload_unfit(run);
	int error;

	if (!reason && group->offload.partly)
		reason = "not all of its links could be attached to /dev/coll";
	if (!reason && !group->offload.attached)
		reason = attach_all(group);
	if (reason || group->state != GROUP_OK)
		return reason;
	error = offload_load(run->planned);
	if (!error) {
		coll_exec_open_links(run->planned, NULL);
		error = group->state == GROUP_OK ? run_in_kernel(run) : 0;
	}
	if (error)
		offload_hear(group);	/* it may be the group's failure */
	return error && group->state == GROUP_OK ? strerror(-error) : NULL;
}

/* 0: it has started; -EBUSY: not yet; else it has failed. */
static int try_start(struct coll_run *run)
{
	struct coll_group *group = run->group;
	const char *reason;

	if (group->state != GROUP_OK)
		return group->error;
	if (!offload_of(group)->free_words)
		return -EBUSY;
	reason = try_kernel(run);
	if (group->state != GROUP_OK)
		return group->error;
	if (reason && group->offload.attached && coll_offload_detach(group))
		return -EBUSY;
	if (group->state != GROUP_OK)	/* what came with the links */
		return group->error;
	if (reason != run->planned->aside)
		run->planned->explained = false;
	run->planned->aside = reason;
	return reason ? coll_exec_start(run, run->until) : 0;
}

int coll_offload_start(struct coll_run *run, uint64_t deadline)
{
	struct coll_group *group = run->group;
	int error;

	run->until = deadline;
	error = group->offload.waiting ? -EBUSY : try_start(run);
	if (error != -EBUSY)
		return error;
	run->waiting = true;
	run->next_offloaded = NULL;
	if (!group->offload.waiting)
		group->offload.waiting_end = &group->offload.waiting;
	*group->offload.waiting_end = run;
	group->offload.waiting_end = &run->next_offloaded;
	return 0;
}

static bool start_waiting(struct coll_group *group)
{
	struct coll_run *run;
	bool any = false;
	int error;

	while ((run = group->offload.waiting)) {
		struct coll_run *next = run->next_offloaded;

		error = coll_now() >= run->until ? -ETIMEDOUT : try_start(run);
		if (error == -EBUSY)
			break;
		if (error == -ETIMEDOUT && group->state == GROUP_OK)
			coll_group_fail(group, error, group->rank, COLL_NONE,
					"an earlier run did not end before the deadline");
		group->offload.waiting = next;
		run->waiting = false;
		run->status = error;
		any = true;
	}
	return any;
}

/* ---- turning ---------------------------------------------------------------------- */

static bool end_and_start(struct coll_context *context, bool *waiting)
{
	struct coll_offload *offload = context->offload;
	struct coll_run *run, *next;
	struct coll_group *group;
	bool any = false;

	/* First: what ends from here on makes the file readable. */
	offload->shared->seen = __atomic_load_n(&offload->shared->ended, __ATOMIC_ACQUIRE);
	hear_all(context);
	for (run = offload->runs; run; run = next) {
		next = run->next_offloaded;
		if (!word_done(run))
			continue;
		run_over(run);
		any = true;
	}
	for (group = context->groups; group; group = group->next) {
		if (group->offload.waiting)
			any |= start_waiting(group);
		*waiting |= group->offload.waiting != NULL;
	}
	return any;
}

void coll_offload_arm(struct coll_context *context)
{
	struct coll_offload *offload = context->offload;

	if (offload->runs && !offload->watch.armed)
		coll_engine_watch(&context->engine, &offload->watch, POLLIN);
}

/* Nothing wakes us when the last message of the kernel's is out. */
uint64_t coll_offload_poll(struct coll_context *context, uint64_t deadline)
{
	bool waiting = false, any = end_and_start(context, &waiting);

	if (deadline)
		coll_offload_arm(context);
	if (any || !deadline)
		return 0;
	return waiting && deadline > coll_now() + RETRY_NS ? coll_now() + RETRY_NS : deadline;
}
