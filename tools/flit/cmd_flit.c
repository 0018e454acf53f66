// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * coll sim flit: a network of wormhole routers, cycle by cycle. Runs of several policies, values
 * and seeds execute in parallel. Before them the routing is proved free of deadlock.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/arena.h"
#include "tools/common/arguments.h"
#include "tools/common/command.h"
#include "tools/common/options.h"
#include "tools/common/whole.h"
#include "settings.h"

enum { PROOF_NODES = 1024, PATTERN_CYCLES = 20000, PROGRAM_CYCLES = 100000000, ROUNDS_MAX = 1000000 };

/* ---- the axis ----------------------------------------------------------- */

enum { AXIS_REAL, AXIS_WHOLE, AXIS_FLOATS = 4 };	/* else values are multiples of this */

static bool print_list(const char *option, const char *text, double least, double most, u32 unit)
{
	fprintf(stderr, "coll sim flit: %s '%s'; valid: A,B,... or FIRST:LAST:STEP, at most %d "
		"values, from %g to %g%s\n", option, text, FLIT_VALUES_MAX, least, most,
		unit == AXIS_FLOATS ? ", multiples of 4" : unit ? ", whole numbers" : "");
	return false;
}

/* A number with K or M at *text, and moves past it. Nothing else that strtod() takes: signs, words, 0x10. */
static bool read_value(const char **text, double *value)
{
	char *rest;

	if (!strspn(*text, "0123456789.") || (*text)[1] == 'x' || (*text)[1] == 'X')
		return false;
	*value = strtod(*text, &rest);
	if (rest == *text)
		return false;
	if (*rest == 'K' || *rest == 'M')
		*value *= *rest++ == 'K' ? 1024 : 1048576;
	*text = rest;
	return isfinite(*value);
}

/* The rest of "FIRST:LAST:STEP". */
static bool read_steps(const char *text, double first, struct flit_plan *plan)
{
	double last, step;

	if (!read_value(&text, &last) || *text++ != ':' || !read_value(&text, &step) || *text)
		return false;
	if (step <= 0 || last < first || (last - first) / step >= FLIT_VALUES_MAX - 0.5)
		return false;	/* half a step is allowed for below */
	for (plan->values = 0; first + plan->values * step < last + step / 2; plan->values++)
		plan->value[plan->values] = first + plan->values * step;
	return true;
}

static bool read_values(const char *text, struct flit_plan *plan)
{
	for (plan->values = 0; plan->values < FLIT_VALUES_MAX; text++) {
		if (!read_value(&text, &plan->value[plan->values]))
			return false;
		if (*text == ':' && !plan->values)
			return read_steps(text + 1, plan->value[0], plan);
		plan->values++;
		if (*text != ',')
			return !*text;
	}
	return false;
}

static bool read_list(const char *option, const char *text, double least, double most, u32 unit,
		      struct flit_plan *plan)
{
	bool fine = read_values(text, plan);
	u32 v;

	for (v = 0; fine && v < plan->values; v++) {
		const double value = plan->value[v];

		fine = value >= least && value <= most && (!unit || fmod(value, unit) == 0);
	}
	return fine || print_list(option, text, least, most, unit);
}

static bool read_axis(struct flit_settings *s)
{
	struct flit_plan *plan = &s->plan;
	u64 runs;

	switch (plan->base.pattern) {
	case FLIT_FFT:
		plan->axis = "data";
		return read_list("--data", s->data, 1, 4096, AXIS_WHOLE, plan);
	case FLIT_FOUR:
		plan->axis = "rounds";
		return read_list("--rounds", s->rounds ? s->rounds : "10", 1, ROUNDS_MAX, AXIS_WHOLE, plan);
	case FLIT_SCHEDULE:
		plan->axis = "bytes";
		if (!argument_number("sim flit", "--rounds", s->rounds ? s->rounds : "1", 1, ROUNDS_MAX,
				     &runs))
			return false;
		plan->base.work.rounds = runs;
		return read_list("--bytes", s->bytes, 0, 1e9, AXIS_FLOATS, plan);
	case FLIT_TRACE:
		plan->axis = "rate";
		return read_list("--rate", "0", 0, 0, AXIS_REAL, plan);
	default:
		plan->axis = "rate";
		return read_list("--rate", s->rates, 0, 1, AXIS_REAL, plan);
	}
}

/* ---- whether the options are consistent ---------------------------------- */

static bool flit_refuse(const char *what)
{
	fprintf(stderr, "coll sim flit: %s\n", what);
	return false;
}

static bool check_machine(const struct flit_machine *m, const struct flit_net *net)
{
	u32 node, ports = 0;

	for (node = 0; node < net->nodes; node++)
		if (net->ports[node] > ports)
			ports = net->ports[node];
	if (ports * m->vcs > 64) {
		fprintf(stderr, "coll sim flit: --vcs %u; valid for %s: 1 to %u\n", m->vcs,
			net->name, 64 / ports);
		return false;
	}
	if (m->inject_vcs > m->vcs || m->eject_vcs > m->vcs)
		return flit_refuse("--inject-vcs and --eject-vcs are at most --vcs");
	if (!m->credit && !m->out_buffer)
		return flit_refuse("--credit 0 needs --out-buffer 1 or more");
	if (!m->credit && m->link != 1)
		return flit_refuse("--credit 0 needs --link 1");
	if (m->one_port && m->out_buffer)
		return flit_refuse("--one-port 1 needs --out-buffer 0");
	return true;
}

static bool check_traffic(struct flit_settings *s)
{
	struct flit_config *base = &s->plan.base;
	const struct flit_net *net = &s->plan.net;

	if (!flit_refuse_others(s))
		return false;
	if (s->proof_only && s->csv)
		return flit_refuse("--proof has no CSV; valid: --json");
	if (!base->cycles)
		base->cycles = base->pattern <= FLIT_COMPLEMENT ? PATTERN_CYCLES : PROGRAM_CYCLES;
	if (base->warmup >= base->cycles)
		return flit_refuse("--warmup must be less than --cycles");
	if ((u64)(base->hot - 1) * base->hot_step >= net->nodes && base->pattern == FLIT_HOTSPOT)
		return flit_refuse("--hot and --hot-step: the network has fewer nodes");
	if (base->pattern == FLIT_TRANSPOSE && net->shape != FLIT_TESH &&
	    (net->dimensions != 2 || net->size[0] != net->size[1]))
		return flit_refuse("--traffic transpose needs two equal sides, or a tesh");
	if (base->pattern == FLIT_FFT && net->nodes & (net->nodes - 1))
		return flit_refuse("--traffic fft needs 2^k nodes");
	if (base->pattern == FLIT_FOUR && net->dimensions != 2)
		return flit_refuse("--traffic four needs two dimensions");
	if (base->pattern == FLIT_TRACE && !s->trace)
		return flit_refuse("--traffic trace needs --trace FILE");
	if (base->interval && (base->cycles - 1) / base->interval >= FLIT_POINTS) {
		fprintf(stderr, "coll sim flit: --interval %u: more than %d points in %llu cycles; valid: "
			"%llu or more, or fewer --cycles\n", base->interval, FLIT_POINTS,
			(unsigned long long)base->cycles,
			(unsigned long long)(base->cycles - 1) / FLIT_POINTS + 1);
		return false;
	}
	return true;
}

static bool check_output(const struct flit_settings *s)
{
	if (s->series && !s->plan.base.interval)
		return flit_refuse("--series needs --interval N");
	return true;
}

static bool make_route(struct flit_settings *s)
{
	struct flit_plan *plan = &s->plan;
	const bool tesh = plan->net.shape == FLIT_TESH;
	const u32 routing = s->routing == FLIT_NONE ? (tesh ? FLIT_ROUTE_TESH : FLIT_DOR) :
						      s->routing;
	char why[256];

	if (!flit_route_make(&plan->base.route, &plan->net, routing, plan->base.machine.vcs,
			     s->broken, why, sizeof(why)))
		return true;
	return flit_refuse(why);
}

/* ---- the proof ---------------------------------------------------------- */

static bool flit_prove(struct flit_settings *s)
{
	struct flit_plan *plan = &s->plan;
	char why[256] = "", text[4096] = "";
	int status;

	if (s->no_proof || (plan->net.nodes > PROOF_NODES && !s->proof_only)) {
		if (!s->no_proof)
			fprintf(stderr, "coll sim flit: more than %d nodes: not proved free of "
				"deadlock; --proof does it\n", PROOF_NODES);
		return true;
	}
	status = flit_depend(&plan->base.route, &plan->proof, why, sizeof(why));
	plan->proved = !status;
	if (!status)
		return true;
	flit_cycle_print(&plan->net, &plan->proof.cycle, text, sizeof(text));
	if (status == -EDEADLK)
		fprintf(stderr, "coll sim flit: this routing can deadlock: %u channels, each of "
			"which may wait for the next: %s\n", plan->proof.cycle.count, text);
	else
		fprintf(stderr, "coll sim flit: %s\n", *why ? why : strerror(-status));
	return s->unsafe;
}

static int show_proof(const struct flit_plan *plan, bool json)
{
	if (!plan->proved)
		return COMMAND_ERROR;
	if (json)
		printf("{\"network\": \"%s\", \"routing\": \"%s\", \"proved\": true, "
		       "\"channels\": %u, \"dependencies\": %llu}\n", plan->net.name,
		       flit_routing_names[plan->base.route.routing], plan->proof.channels,
		       (unsigned long long)plan->proof.dependencies);
	else
		printf("%s, routing %s: free of deadlock; %llu dependencies of %u channels "
		       "without a cycle\n", plan->net.name,
		       flit_routing_names[plan->base.route.routing],
		       (unsigned long long)plan->proof.dependencies, plan->proof.channels);
	return COMMAND_OK;
}

/* ---- running ------------------------------------------------------------ */

static void show_progress(u32 done, u32 count)
{
	if (done < count)
		fprintf(stderr, "\r%3u %%  %u of %u runs ", done * 100 / count, done, count);
	else
		fprintf(stderr, "\r\033[K");
	fflush(stderr);
}

/* A configuration for each run. Schedules and values of one kind are shared. */
static bool make_configs(struct flit_settings *s, struct flit_work *works)
{
	struct flit_plan *plan = &s->plan;
	u32 p, v, seed;

	for (v = 0; v < plan->values; v++) {
		works[v] = plan->base.work;
		works[v].data = plan->value[v];
		if (plan->base.pattern == FLIT_FOUR)
			works[v].rounds = plan->value[v];
		if (plan->base.pattern == FLIT_SCHEDULE &&
		    !flit_emit(&s->collective, plan->value[v], plan->net.nodes, plan->base.seed,
			       &works[v]))
			return false;
	}
	for (p = 0; p < plan->policies; p++)
		for (v = 0; v < plan->values; v++)
			for (seed = 0; seed < plan->seeds; seed++) {
				u32 at = (p * plan->values + v) * plan->seeds + seed;
				struct flit_config *config = &plan->config[at];

				*config = plan->base;
				config->policy = plan->policy[p];
				config->rate = plan->value[v];
				config->work = works[v];
				config->seed = plan->base.seed + seed;
			}
	return true;
}

static bool report_error(const struct flit_plan *plan, u32 at)
{
	const struct flit_result *r = &plan->result[at];
	char text[4096];

	if (!r->error)
		return true;
	fprintf(stderr, "coll sim flit: policy %s, %s %g, seed %llu: ",
		flit_policy_names[plan->config[at].policy], plan->axis,
		plan->value[at / plan->seeds % plan->values],
		(unsigned long long)plan->config[at].seed);
	if (r->error == -EDEADLK) {
		flit_cycle_print(&plan->net, &r->stuck, text, sizeof(text));
		fprintf(stderr, "deadlock after %llu cycles: %u channels whose packets wait for "
			"each other: %s\n", (unsigned long long)r->cycles, r->stuck.count, text);
	} else if (r->error == -ETIME) {
		fprintf(stderr, "not finished after %llu cycles; --cycles allows more\n",
			(unsigned long long)r->cycles);
	} else if (r->error == -ECHILD) {
		fprintf(stderr, "its process has ended before it\n");
	} else {
		fprintf(stderr, "%s\n", strerror(-r->error));
	}
	return false;
}

/* Draining has an end: with more traffic than the network carries, messages still wait in their PEs. */
static void report_missing(const struct flit_plan *plan, u32 at)
{
	const struct flit_result *r = &plan->result[at];

	if (r->missing)
		fprintf(stderr, "coll sim flit: policy %s, %s %g, seed %llu: %llu messages of the window had "
			"not arrived after %llu cycles: they are not in its latencies\n",
			flit_policy_names[plan->config[at].policy], plan->axis,
			plan->value[at / plan->seeds % plan->values],
			(unsigned long long)plan->config[at].seed, (unsigned long long)r->missing,
			(unsigned long long)r->cycles);
}

static int show_results(const struct flit_settings *s)
{
	const struct flit_plan *plan = &s->plan;
	const u32 count = plan->policies * plan->values * plan->seeds;
	bool fine = true;
	u32 i;

	for (i = 0; i < count && fine; i++)
		fine = report_error(plan, i);
	if (!fine)
		return COMMAND_ERROR;
	for (i = 0; i < count; i++)
		report_missing(plan, i);
	if (s->json)
		flit_print_json(plan);
	else if (s->csv)
		flit_print_csv(plan);
	else
		flit_print_table(plan);
	if (s->series && !flit_write_series(plan, s->series))
		return COMMAND_ERROR;
	if (s->distribution && !flit_write_distribution(plan, s->distribution))
		return COMMAND_ERROR;
	return COMMAND_OK;
}

static int run_all(struct flit_settings *s)
{
	struct flit_plan *plan = &s->plan;
	const u32 count = plan->policies * plan->values * plan->seeds;
	struct flit_work *works = memory_grow(NULL, plan->values, sizeof(*works));
	int status = COMMAND_ERROR;
	u32 v;

	memset(works, 0, plan->values * sizeof(*works));
	plan->config = memory_grow(NULL, count, sizeof(*plan->config));
	if (make_configs(s, works)) {
		plan->result = flit_sweep(plan->config, count, s->jobs,
					  isatty(STDERR_FILENO) ? show_progress : NULL);
		if (plan->result) {
			status = show_results(s);
			flit_sweep_free(plan->result, count);
		} else {
			flit_refuse("no memory for the results");
		}
	}
	for (v = 0; v < plan->values; v++)
		if (plan->base.pattern == FLIT_SCHEDULE)
			flit_input_free(&works[v]);
	memory_free(works);
	memory_free(plan->config);
	return status;
}

static int flit_simulate(struct flit_settings *s)
{
	struct flit_plan *plan = &s->plan;
	int status = COMMAND_ERROR;
	char why[256];

	if (flit_net_make(&plan->net, s->net, why, sizeof(why))) {
		flit_refuse(why);
		return COMMAND_USAGE;
	}
	plan->base.net = &plan->net;
	if (!check_machine(&plan->base.machine, &plan->net) || !check_traffic(s) ||
	    !check_output(s) || !make_route(s) || !read_axis(s))
		status = COMMAND_USAGE;
	else if (s->trace && !flit_read_trace(s->trace, plan->net.nodes, &plan->base.work))
		status = COMMAND_USAGE;
	else if (whole_possible("sim flit", s->series) && whole_possible("sim flit", s->distribution) &&
		 flit_prove(s))
		status = s->proof_only ? show_proof(plan, s->json) : run_all(s);
	flit_input_free(&plan->base.work);
	flit_net_free(&plan->net);
	return status;
}

int cmd_sim_flit(int argc, char **argv)
{
	const long cores = sysconf(_SC_NPROCESSORS_ONLN);
	struct flit_settings *s = memory_grow(NULL, 1, sizeof(*s));
	int status = COMMAND_USAGE;

	*s = (struct flit_settings){
		.plan.base.work = { .butterfly = 220, .setup = 120, .address = 120,
				    .per_datum = 16 },
		.routing = FLIT_NONE,
		.jobs = cores < 1 ? 1 : cores > JOBS_MAX ? JOBS_MAX : cores,
	};
	if (options_read(&cmd_sim_flit_options, argc, argv, s))
		status = flit_simulate(s);
	memory_free(s);
	return status;
}
