// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tools/common/arguments.h"
#include "injector.h"
#include "thread.h"
#include "node/units.h"

enum { FIFO_PRIORITY = 50, SLICE_NS = 100000, SETTLE_NS = 20000000, FINGERPRINT_EVENTS = 1000 };

#define SPARE_NS (5 * NODE_S)	/* the module stops this long after the end in any case */

/* ---- one thread ----------------------------------------------------------------------- */

static int allocate_log(struct noise_injector_cpu *cpu)
{
	cpu->refusal = "no memory for the log";
	cpu->log = noise_thread_memory(cpu->injector->options.capacity, sizeof(*cpu->log));
	return cpu->log ? 0 : -ENOMEM;
}

static int settle_in(struct noise_injector_cpu *cpu)
{
	int status = noise_thread_bind(cpu->cpu, &cpu->refusal);

	if (!status)
		status = allocate_log(cpu);
	return status ? status : noise_thread_schedule(&cpu->injector->options.policy,
						       &cpu->refusal);
}

/* Sleeps in short intervals and checks for the stop flag; false: stop. */
static bool sleep_until(const struct noise_injector *injector, u64 wall)
{
	u64 now = noise_clock_read(CLOCK_REALTIME);

	while (now < wall) {
		const u64 glance = now + 100 * NODE_MS, to = wall < glance ? wall : glance;
		const struct timespec time = { to / NODE_S, to % NODE_S };

		if (__atomic_load_n(&injector->stop, __ATOMIC_RELAXED))
			return false;
		clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &time, NULL);
		now = noise_clock_read(CLOCK_REALTIME);
	}
	return !__atomic_load_n(&injector->stop, __ATOMIC_RELAXED);
}

static void keep_busy(struct noise_injector_cpu *cpu, const struct coll_noise_span *span)
{
	const struct noise_clock *clock = cpu->injector->clock;
	const u64 cost = cpu->injector->options.cost, epoch = cpu->injector->options.epoch;
	const u64 begin = noise_ticks(clock->counter);
	const u64 length = noise_clock_ticks(clock, span->duration > cost ?
							    span->duration - cost : 0);
	u64 now = begin;

	while (now - begin < length)
		now = noise_ticks(clock->counter);
	if (cpu->count < cpu->injector->options.capacity)
		cpu->log[cpu->count++] = (struct noise_injected){ epoch + span->start,
								  span->duration, begin, now };
	else
		cpu->lost++;
}

static const struct coll_noise_plan *plan_of(const struct noise_injector_cpu *cpu)
{
	const struct noise_injector_options *options = &cpu->injector->options;

	return &options->plan[options->plans > 1 ? cpu->stream : 0];
}

/* Merges events that touch. */
static void injector_merge(struct noise_injector_cpu *cpu, struct coll_noise_stream *stream,
			   struct coll_noise_span *span, struct coll_noise_span *next)
{
	while (next->start <= span->start + span->duration) {
		const u64 end = next->start + next->duration;

		if (end > span->start + span->duration)
			span->duration = end - span->start;
		*next = coll_noise_next(plan_of(cpu), stream);
		cpu->merged++;
	}
}

static void *inject_cpu(void *argument)
{
	struct noise_injector_cpu *cpu = argument;
	struct noise_injector *injector = cpu->injector;
	const struct coll_noise_plan *plan = plan_of(cpu);
	struct coll_noise_stream stream = coll_noise_stream(plan, cpu->stream);
	struct coll_noise_span span, next;
	u64 epoch;

	cpu->error = settle_in(cpu);
	pthread_barrier_wait(&injector->ready);
	pthread_barrier_wait(&injector->ready);
	if (cpu->error)
		return NULL;
	epoch = injector->options.epoch;
	coll_noise_seek(plan, &stream, injector->from - epoch);
	next = coll_noise_next(plan, &stream);
	for (;;) {
		span = next;
		next = coll_noise_next(plan, &stream);
		injector_merge(cpu, &stream, &span, &next);
		if (epoch + span.start >= injector->until ||
		    !sleep_until(injector, epoch + span.start))
			break;
		keep_busy(cpu, &span);
	}
	return NULL;
}

/* ---- the module --------------------------------------------------------------------------- */

static int refuse_module(struct noise_injector *injector, const char *command, int error)
{
	if (error == -ENOENT)
		fprintf(stderr, "%s %s: the module is not loaded (insmod coll.ko); --user injects "
			"from user space\n", argument_program, command);
	else
		fprintf(stderr, "%s %s: %s\n", argument_program, command,
			noise_module_reason(injector->module));
	return error;
}

/* The absolute start: from then on each event is injected, or counted as missed. */
static void begin_at(struct noise_injector *injector, u64 wall)
{
	if (injector->from < wall)
		injector->from = wall;
	injector->until = injector->from + injector->options.duration;
}

/* One injector per plan: with a plan for each CPU, one for each CPU. */
static int begin_module(struct noise_injector *injector, const char *command)
{
	const struct noise_injector_options *o = &injector->options;
	struct noise_module_order order = {
		.cpus = &o->cpus, .context = o->context, .epoch = o->epoch,
		.lifetime = injector->until - noise_clock_read(CLOCK_REALTIME) + SPARE_NS,
		.share = o->max_share * 10000, .log = o->capacity < 1 << 20 ? o->capacity : 1 << 20,
		.cost = o->cost,
	};
	int error = noise_module_open(&injector->module);
	u32 i;

	for (i = 0; !error && i < injector->cpus; i++) {
		struct node_cpus self = { { 0 } };

		node_cpus_add(&self, injector->cpu[i].cpu);
		order.cpus = o->plans > 1 ? &self : &o->cpus;
		order.plan = &o->plan[o->plans > 1 ? i : 0];
		order.stream = o->plans > 1 ? i : 0;
		if (i && o->plans == 1)
			injector->cpu[i].id = injector->cpu[0].id;
		else
			error = noise_module_inject(injector->module, &order, &injector->cpu[i].id);
	}
	if (error)
		return refuse_module(injector, command, error);
	begin_at(injector, noise_clock_read(CLOCK_REALTIME));	/* the request took time */
	return 0;
}

/* The module's log in the form of the user-space log. */
static void take_log(u32 number, const struct coll_noise_injected *event, u32 count, u64 lost,
		     void *data)
{
	struct noise_injector *injector = data;
	struct noise_injector_cpu *cpu = NULL;
	u32 i;

	for (i = 0; i < injector->cpus; i++)
		if (injector->cpu[i].cpu == number)
			cpu = &injector->cpu[i];
	if (!cpu)
		return;
	cpu->lost = lost;
	for (i = 0; i < count && cpu->count < injector->options.capacity; i++) {
		const u64 begin = event[i].asked_start + event[i].late;

		if (event[i].asked_start < injector->from ||
		    event[i].asked_start >= injector->until)
			continue;
		cpu->log[cpu->count++] = (struct noise_injected){
			event[i].asked_start, event[i].asked_duration,
			noise_clock_at(injector->clock, begin),
			noise_clock_at(injector->clock, begin + event[i].duration),
		};
	}
}

static void end_module(struct noise_injector *injector)
{
	struct noise_module *module = injector->module;
	u32 i;

	noise_clock_settle(injector->clock);
	for (i = 0; i < injector->cpus; i++)
		if (!i || injector->options.plans > 1)
			noise_module_stop(module, injector->cpu[i].id);
	for (i = 0; i < injector->cpus; i++) {
		struct noise_injector_cpu *cpu = &injector->cpu[i];

		if (!i || injector->options.plans > 1)
			noise_module_log(module, cpu->id, take_log, injector);
		noise_module_missed(module, cpu->id, cpu->cpu, &cpu->merged, &cpu->refused);
	}
}

/* ---- all threads ------------------------------------------------------------------------ */

const char *noise_injector_context(const struct noise_injector_options *options)
{
	return options->module ? noise_context_names[options->context] :
				 noise_policy_name(&options->policy);
}

struct noise_policy noise_injector_policy(void)
{
	const struct noise_policy fifo = { .policy = SCHED_FIFO, .priority = FIFO_PRIORITY };
	const struct noise_policy other = { .policy = SCHED_OTHER, .runtime = SLICE_NS };
	const struct sched_param priority = { .sched_priority = FIFO_PRIORITY };
	const int was = sched_getscheduler(0);
	struct sched_param before;

	/* Tries the policy on the calling thread: rlimits or capabilities may allow it. */
	if (sched_getparam(0, &before) || sched_setscheduler(0, SCHED_FIFO, &priority))
		return other;
	sched_setscheduler(0, was, &before);
	return fifo;
}

static void list_cpus(struct noise_injector *injector)
{
	const struct node_cpus *cpus = &injector->options.cpus;
	u32 number = node_cpus_next(cpus, 0), i;

	for (i = 0; i < injector->cpus; i++) {
		injector->cpu[i] = (struct noise_injector_cpu){ .injector = injector,
								.cpu = number, .stream = i };
		number = node_cpus_next(cpus, number + 1);
	}
}

static int start_threads(struct noise_injector *injector)
{
	int status = 0;
	u32 i;

	for (i = 0; !status && i < injector->cpus; i++)
		status = -pthread_create(&injector->cpu[i].thread, NULL, inject_cpu,
					 &injector->cpu[i]);
	return status;
}

static int allocate_logs(struct noise_injector *injector)
{
	int status = 0;
	u32 i;

	for (i = 0; !status && i < injector->cpus; i++)
		status = allocate_log(&injector->cpu[i]);
	return status;
}

static void choose_time(struct noise_injector *injector)
{
	injector->from = noise_clock_read(CLOCK_REALTIME) + SETTLE_NS;
	if (injector->options.from_now)
		injector->options.epoch = injector->from;
	begin_at(injector, injector->options.epoch);
}

static int first_error(const struct noise_injector *injector, const char *command)
{
	u32 i;

	for (i = 0; i < injector->cpus; i++) {
		const struct noise_injector_cpu *cpu = &injector->cpu[i];

		if (!cpu->error)
			continue;
		return noise_thread_refuse(command, cpu->cpu, cpu->refusal, cpu->error);
	}
	return 0;
}

/* The capacity of the log: twice the expected events. Fetching a larger log takes long. */
static u64 log_capacity(const struct noise_injector_options *options)
{
	u64 capacity = 0, most = 0;
	u32 i;

	for (i = 0; i < options->plans; i++) {
		const struct coll_noise_plan *plan = &options->plan[i];
		const u64 events = plan->model->arrival == COLL_NOISE_REPLAY ? plan->spans : 1;

		capacity = (options->duration / plan->model->period + 1) * events;
		most = capacity > most ? capacity : most;
	}
	capacity = 2 * most + 1024;
	return capacity < options->capacity ? capacity : options->capacity;
}

int noise_injector_begin(struct noise_injector *injector,
			 const struct noise_injector_options *options, struct noise_clock *clock,
			 const char *command)
{
	int status;

	*injector = (struct noise_injector){ .options = *options, .clock = clock };
	injector->options.capacity = log_capacity(options);
	injector->cpus = node_cpus_count(&options->cpus);
	injector->cpu = calloc(injector->cpus, sizeof(*injector->cpu));
	if (!injector->cpu)
		return -ENOMEM;
	pthread_barrier_init(&injector->ready, NULL, injector->cpus + 1);
	list_cpus(injector);
	if (options->module) {
		status = allocate_logs(injector);
		choose_time(injector);
		return status ? status : begin_module(injector, command);
	}
	status = start_threads(injector);
	if (status) {	/* running threads would wait forever at the barrier */
		fprintf(stderr, "%s %s: no threads: %s\n", argument_program, command,
			strerror(-status));
		exit(1);
	}
	pthread_barrier_wait(&injector->ready);
	status = first_error(injector, command);
	injector->stop = status != 0;
	choose_time(injector);
	pthread_barrier_wait(&injector->ready);
	if (status)
		noise_injector_wait(injector);
	return status;
}

void noise_injector_wait(struct noise_injector *injector)
{
	u32 i;

	if (injector->options.module) {
		end_module(injector);
		return;
	}
	for (i = 0; i < injector->cpus; i++)
		pthread_join(injector->cpu[i].thread, NULL);
}

void noise_injector_free(struct noise_injector *injector)
{
	u32 i;

	for (i = 0; i < injector->cpus; i++)
		if (injector->cpu[i].log)
			munmap(injector->cpu[i].log,
			       injector->options.capacity * sizeof(struct noise_injected));
	free(injector->cpu);
	noise_module_close(injector->module);
	pthread_barrier_destroy(&injector->ready);
}

/* ---- the log ----------------------------------------------------------------------------- */

struct coll_noise_injected noise_injector_entry(const struct noise_injector *injector,
						const struct noise_injected *done)
{
	const u64 ns = noise_clock_ns(injector->clock, done->end - done->begin);

	return (struct coll_noise_injected){
		.asked_start = done->asked,
		.late = noise_clock_wall(injector->clock, done->begin) - done->asked,
		.asked_duration = done->asked_duration < UINT32_MAX ? done->asked_duration :
								      UINT32_MAX,
		.duration = ns < UINT32_MAX ? ns : UINT32_MAX,
	};
}

int noise_injector_capture(const struct noise_injector *injector, struct node_capture *capture)
{
	const u64 epoch = injector->from;
	int status = 0;
	u32 c;
	u64 i;

	node_capture_init(capture);
	capture->head.epoch = epoch;
	for (c = 0; !status && c < injector->cpus; c++) {
		const struct noise_injector_cpu *cpu = &injector->cpu[c];
		const struct coll_noise_cpu entry = { .cpu = cpu->cpu, .lost = cpu->lost,
						      .watched = injector->until - epoch };

		status = node_capture_add_cpu(capture, &entry);
		for (i = 0; !status && i < cpu->count; i++) {
			const u64 begin = noise_clock_wall(injector->clock, cpu->log[i].begin);

			status = node_capture_add_event(
				capture, begin > epoch ? begin - epoch : 0,
				noise_clock_ns(injector->clock,
					       cpu->log[i].end - cpu->log[i].begin),
				cpu->cpu, COLL_NOISE_INJECTED, 0);
		}
	}
	return status ? status : node_capture_finish(capture);
}

u64 noise_injector_planned(const struct noise_injector *injector, u32 index)
{
	const struct noise_injector_cpu *cpu = &injector->cpu[index];
	const u64 epoch = injector->options.epoch;
	struct coll_noise_stream stream = coll_noise_stream(plan_of(cpu), cpu->stream);
	u64 count = 0;

	coll_noise_seek(plan_of(cpu), &stream, injector->from - epoch);
	while (epoch + coll_noise_next(plan_of(cpu), &stream).start < injector->until)
		count++;
	return count;
}

/* FNV-1a. */
static u64 injector_mix(u64 hash, u64 value)
{
	u32 byte;

	for (byte = 0; byte < 8; byte++)
		hash = (hash ^ (value >> 8 * byte & 255)) * 0x100000001b3ull;
	return hash;
}

u64 noise_plan_fingerprint(const struct coll_noise_plan *plan, u32 number)
{
	struct coll_noise_stream stream = coll_noise_stream(plan, number);
	u64 hash = 0xcbf29ce484222325ull;
	u32 i;

	for (i = 0; i < FINGERPRINT_EVENTS; i++) {
		const struct coll_noise_span span = coll_noise_next(plan, &stream);

		hash = injector_mix(injector_mix(hash, span.start), span.duration);
	}
	return hash;
}
