// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* One run: warms up, measures, drains; its result. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "machine.h"

enum {
	STUCK_CYCLES = 4096,	/* cycles between two checks for a deadlock */
	DRAIN_TIMES = 50,	/* multiple of the run's cycles after which draining is given up */
};

/* Counters from the end of the warm-up on. */
struct run_window {
	u64 now, arrived, offered;
	u64 served[4];
	u64 none, gap, outer_none, outer_gap;
};

static struct run_window run_sample(const struct flit_sim *sim)
{
	struct run_window w = { .now = sim->now, .arrived = sim->arrived, .offered = sim->offered,
			    .none = sim->idle_none, .gap = sim->idle_gap,
			    .outer_none = sim->outer_none, .outer_gap = sim->outer_gap };

	memcpy(w.served, sim->served, sizeof(w.served));
	return w;
}

static u64 flits_between(const struct run_window *w)
{
	return w->served[FLIT_KIND_MESH] + w->served[FLIT_KIND_OUTER];
}

static struct flit_idle idle_links(u32 links, double cycles, u64 none, u64 gap, u64 used)
{
	struct flit_idle idle = { none / cycles, gap / cycles, 0 };

	idle.blocked = links - idle.none - idle.gap - used / cycles;
	return idle;
}

/* What happened to the links between two samples. */
static void note_links(const struct flit_sim *sim, const struct run_window *a,
		       const struct run_window *b, struct flit_point *all, struct flit_point *outer)
{
	const struct flit_net *net = sim->net;
	const double cycles = b->now > a->now ? b->now - a->now : 1;
	const u64 used = flits_between(b) - flits_between(a);
	const u64 outer_used = b->served[FLIT_KIND_OUTER] - a->served[FLIT_KIND_OUTER];

	all->used = used / cycles / (net->between ? net->between : 1);
	outer->used = net->outer ? outer_used / cycles / net->outer : 0;
	all->idle = outer->idle = (struct flit_idle){ 0 };
	if (!sim->config->interval)
		return;		/* the reasons were not counted */
	all->idle = idle_links(net->between, cycles, b->none - a->none, b->gap - a->gap, used);
	outer->idle = idle_links(net->outer, cycles, b->outer_none - a->outer_none,
				 b->outer_gap - a->outer_gap, outer_used);
}

static void note_distribution(const struct flit_counts *counts, u32 bin, struct flit_result *result)
{
	u32 at;

	result->bin = bin ? bin : 1;
	for (at = 0; at <= counts->most && at < counts->size; at++) {
		u32 into = at / result->bin;

		result->bins[into < FLIT_BINS ? into : FLIT_BINS - 1] += counts->count[at];
	}
}

static void note_result(const struct flit_sim *sim, const struct run_window *a,
			const struct run_window *b, struct flit_result *result)
{
	const double cycles = b->now > a->now ? b->now - a->now : 1;
	struct flit_point all, outer;

	note_links(sim, a, b, &all, &outer);
	result->use = all.used;
	result->idle = all.idle;
	result->outer_use = outer.used;
	result->outer_idle = outer.idle;
	result->throughput = (b->arrived - a->arrived) / cycles;
	result->accepted = result->throughput / sim->net->nodes;
	result->offered = (b->offered - a->offered) / cycles / sim->net->nodes;
	flit_latency(&sim->counts, &result->all);
	flit_latency(&sim->local, &result->local);
	flit_latency(&sim->modules, &result->between);
	note_distribution(&sim->counts, sim->config->bin, result);
}

static void note_totals(const struct flit_sim *sim, struct flit_result *result)
{
	result->cycles = sim->now;
	result->sent = sim->sent;
	result->arrived = sim->arrived;
	result->inside = sim->sent - sim->arrived;
	result->hops = sim->served[FLIT_KIND_MESH] + sim->served[FLIT_KIND_OUTER] +
		       sim->served[FLIT_KIND_EJECT];
	result->missing = sim->config->drain ? sim->outstanding : 0;
}

static const struct flit_program *program_of(enum flit_pattern pattern)
{
	switch (pattern) {
	case FLIT_FFT:
		return &flit_program_fft;
	case FLIT_FOUR:
		return &flit_program_four;
	case FLIT_TRACE:
		return &flit_program_trace;
	case FLIT_SCHEDULE:
		return &flit_program_schedule;
	default:
		return NULL;
	}
}

struct run_progress {
	struct run_window begin, end, point;	/* samples */
	bool begun, ended;
	u64 next_look;		/* check for a deadlock */
};

static void note_point(struct flit_sim *sim, struct run_progress *p, struct flit_result *result)
{
	struct run_window now = run_sample(sim);

	if (result->points < FLIT_POINTS) {
		note_links(sim, &p->point, &now, &result->point[result->points],
			   &result->outer_point[result->points]);
		result->points++;
	}
	p->point = now;
}

/* Between two cycles: executes what is due; returns whether the run continues. */
static int run_watch(struct flit_sim *sim, const struct flit_program *program,
		     struct run_progress *p, struct flit_result *result)
{
	const struct flit_config *config = sim->config;
	const bool over = sim->now >= config->cycles;

	if (!p->begun && sim->now >= config->warmup) {
		p->begin = p->end = run_sample(sim);
		p->begun = true;
	}
	if (config->interval && sim->now >= p->point.now + config->interval && !over)
		note_point(sim, p, result);
	if (!p->ended && over) {
		p->end = run_sample(sim);
		p->ended = true;
		p->next_look = sim->now;
	}
	if (sim->error)
		return sim->error;
	if (sim->now >= p->next_look) {
		p->next_look = sim->now + STUCK_CYCLES;
		if (flit_stuck(sim, &result->stuck))
			return -EDEADLK;
	}
	if (program && sim->done && !sim->travelling && !sim->held)
		return 1;
	if (!over)
		return 0;
	if (program && !sim->done)
		return -ETIME;
	return !config->drain || !sim->outstanding || sim->now >= DRAIN_TIMES * config->cycles;
}

static int run_play(struct flit_sim *sim, const struct flit_program *program,
		    struct flit_result *result)
{
	struct run_progress p = { .next_look = STUCK_CYCLES };
	int status;

	flit_traffic_start(sim);
	while (!(status = run_watch(sim, program, &p, result)))
		flit_cycle(sim);
	if (!p.ended)
		p.end = run_sample(sim);
	note_result(sim, &p.begin, &p.end, result);
	note_totals(sim, result);
	return status < 0 ? status : 0;
}

void flit_finished(struct flit_result *result, u64 at, u32 of)
{
	result->finish_mean += (double)at / of;
	if (!result->finish_first || at < result->finish_first)
		result->finish_first = at;
	if (at > result->finish_last)
		result->finish_last = at;
}

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

int flit_run(const struct flit_config *config, struct flit_result *result)
{
	const struct flit_program *program = program_of(config->pattern);
	const double before = cpu_seconds();
	struct flit_sim sim;
	int status;

	memset(result, 0, sizeof(*result));
	result->error = -ECHILD;	/* if the process dies during the run */
	status = flit_machine_make(&sim, config);
	if (config->drain)
		sim.end = DRAIN_TIMES * config->cycles;
	if (!status && program)
		status = program->start(&sim);
	if (!status) {
		status = run_play(&sim, program, result);
		if (program)
			program->finish(&sim, result);
	}
	flit_machine_free(&sim);
	result->seconds = cpu_seconds() - before;
	result->error = status;
	return status;
}

/* Time of the flits after the first, with few buffer places per channel. */
static u64 later_flits(const struct flit_machine *m, u64 flits)
{
	const u32 loop = m->link + m->credit;

	if (m->buffer >= loop)
		return flits - 1;
	return (flits - 1) / m->buffer * loop + (flits - 1) % m->buffer;
}

u64 flit_zero_load(const struct flit_config *config, u32 from, u32 to, u32 length)
{
	const struct flit_machine *m = &config->machine;
	const u64 routers = flit_distance(config->net, from, to) + 1;
	const u64 enter = m->setup + m->inject + !m->out_buffer;

	return enter + routers * (m->route + m->link + 1) + later_flits(m, length + m->header);
}
