// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * coll sim flit: a network of wormhole routers, cycle by cycle. Runs of several
 * policies, values and seeds go side by side on the cores; before them the
 * routing is proved free of deadlock.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/arena.h"
#include "tools/arguments.h"
#include "tools/command.h"
#include "flit.h"

enum { PROOF_NODES = 1024, JOBS_MAX = 256, PATTERN_CYCLES = 20000, PROGRAM_CYCLES = 100000000 };

struct settings {
	struct flit_plan plan;
	const char *net, *values, *rates, *data, *rounds, *bytes, *trace, *series, *distribution;
	struct flit_collective collective;
	u32 routing;		/* or FLIT_NONE: what fits the network */
	u32 jobs;
	bool json, csv, broken, proof_only, proof, no_proof, unsafe;
};

static const char help[] =
"usage: coll sim flit [OPTION ...]\n"
"\n"
"Simulates wormhole routers with virtual channels, a flit and a cycle at a time.\n"
"LIST is A,B,... or FIRST:LAST:STEP; runs differ in policy, value and seed.\n"
"\n"
"network and routing\n"
"  --net N           mesh:AxB[xC], torus:AxB[xC] or tesh:m,L,q (mesh:16x16)\n"
"  --routing R       dor, north-last, tesh, adaptive (dor, or tesh on a tesh)\n"
"  --policy P,...    which channel a link serves: rr, occupancy, occupancy-hier,\n"
"                    age, occupancy-age, hold (rr,occupancy)\n"
"traffic\n"
"  --traffic T       uniform, hotspot, transpose, complement, fft, four, trace,\n"
"                    schedule (uniform)\n"
"  --rate LIST       messages a PE and cycle (0.001)\n"
"  --length L        flits of a message, without its header (16)\n"
"  --hot N           hotspot: N PEs are the targets (16); --hot-step S: 0, S, 2S, ... (1)\n"
"  --data LIST       fft: n, the data of a PE (1)\n"
"  --rounds LIST     four: steps (10); schedule: runs (1)\n"
"  --jitter N        fft, four: each PE begins up to N cycles late (0)\n"
"  --trace FILE      trace: lines CYCLE FROM TO FLITS (- is stdin)\n"
"  --collective C  --algorithm A[:K=V]  --ranks N  --bytes LIST  --place P\n"
"                    schedule: of C (allreduce ring 16 4096), ranks linear, spread\n"
"                    or random on the PEs; --flit-bytes N (8) of payload,\n"
"                    --reduce-cycles X, --copy-cycles X a byte (0.25, 0.125)\n"
"machine\n"
"  --machine M       thesis or booksim: what the following are by themselves\n"
"  --vcs N  --inject-vcs N  --eject-vcs N   virtual channels\n"
"  --buffer N  --out-buffer N    flits of a channel behind and before the link\n"
"  --link N  --inject N  --credit N  --route-delay N  --setup N   cycles\n"
"  --header N        flits;  --queue N  messages a PE holds (0: any)\n"
"  --heads H         who gets a free channel: policy, turn, first, oldest\n"
"  --one-port B  --to-self B  --classes-first B    0 or 1\n"
"runs\n"
"  --cycles N        of a run (20000; programs: until they end, at most 10^8)\n"
"  --warmup N        cycles that are not measured (0)\n"
"  --drain           measure the messages born in the window, however late\n"
"  --seeds N         runs of each kind (1)\n"
"  --seed S          the first one's (1)\n"
"  --jobs N          processes (one a core)\n"
"proof\n"
"  --proof           only prove that the routing cannot deadlock\n"
"  --no-proof        do not; --unsafe: run even if it can\n"
"  --break-classes   one class of channels where two are needed\n"
"output\n"
"  --json  --csv     instead of a table\n"
"  --series FILE     links over time as CSV, a point every --interval N cycles\n"
"  --distribution FILE   latencies as CSV, in bins of --bin N cycles\n"
"\n"
"Exit status: 0 ok, 1 a deadlock or an error, 2 wrong usage.\n";

/* ---- options ------------------------------------------------------------ */

enum option_key {
	KEY_NET = 256,
	KEY_ROUTING,
	KEY_POLICY,
	KEY_TRAFFIC,
	KEY_RATE,
	KEY_LENGTH,
	KEY_HOT,
	KEY_HOT_STEP,
	KEY_DATA,
	KEY_ROUNDS,
	KEY_TRACE,
	KEY_COLLECTIVE,
	KEY_ALGORITHM,
	KEY_RANKS,
	KEY_BYTES,
	KEY_PLACE,
	KEY_FLIT_BYTES,
	KEY_REDUCE,
	KEY_JITTER,
	KEY_COPY,
	KEY_MACHINE,
	KEY_HEADS,
	KEY_CYCLES,
	KEY_WARMUP,
	KEY_DRAIN,
	KEY_SEEDS,
	KEY_SEED,
	KEY_JOBS,
	KEY_PROOF,
	KEY_NO_PROOF,
	KEY_UNSAFE,
	KEY_BREAK,
	KEY_JSON,
	KEY_CSV,
	KEY_SERIES,
	KEY_INTERVAL,
	KEY_DISTRIBUTION,
	KEY_BIN,
	KEY_HELP,
	KEY_MACHINE_FIRST, /* and from here on the fields of the machine */
};

static const struct option long_options[] = {
	{ "net", required_argument, NULL, KEY_NET },
	{ "routing", required_argument, NULL, KEY_ROUTING },
	{ "policy", required_argument, NULL, KEY_POLICY },
	{ "traffic", required_argument, NULL, KEY_TRAFFIC },
	{ "rate", required_argument, NULL, KEY_RATE },
	{ "length", required_argument, NULL, KEY_LENGTH },
	{ "hot", required_argument, NULL, KEY_HOT },
	{ "hot-step", required_argument, NULL, KEY_HOT_STEP },
	{ "data", required_argument, NULL, KEY_DATA },
	{ "rounds", required_argument, NULL, KEY_ROUNDS },
	{ "trace", required_argument, NULL, KEY_TRACE },
	{ "collective", required_argument, NULL, KEY_COLLECTIVE },
	{ "algorithm", required_argument, NULL, KEY_ALGORITHM },
	{ "ranks", required_argument, NULL, KEY_RANKS },
	{ "bytes", required_argument, NULL, KEY_BYTES },
	{ "place", required_argument, NULL, KEY_PLACE },
	{ "flit-bytes", required_argument, NULL, KEY_FLIT_BYTES },
	{ "reduce-cycles", required_argument, NULL, KEY_REDUCE },
	{ "copy-cycles", required_argument, NULL, KEY_COPY },
	{ "jitter", required_argument, NULL, KEY_JITTER },
	{ "machine", required_argument, NULL, KEY_MACHINE },
	{ "heads", required_argument, NULL, KEY_HEADS },
	{ "cycles", required_argument, NULL, KEY_CYCLES },
	{ "warmup", required_argument, NULL, KEY_WARMUP },
	{ "drain", no_argument, NULL, KEY_DRAIN },
	{ "seeds", required_argument, NULL, KEY_SEEDS },
	{ "seed", required_argument, NULL, KEY_SEED },
	{ "jobs", required_argument, NULL, KEY_JOBS },
	{ "proof", no_argument, NULL, KEY_PROOF },
	{ "no-proof", no_argument, NULL, KEY_NO_PROOF },
	{ "unsafe", no_argument, NULL, KEY_UNSAFE },
	{ "break-classes", no_argument, NULL, KEY_BREAK },
	{ "json", no_argument, NULL, KEY_JSON },
	{ "csv", no_argument, NULL, KEY_CSV },
	{ "series", required_argument, NULL, KEY_SERIES },
	{ "interval", required_argument, NULL, KEY_INTERVAL },
	{ "distribution", required_argument, NULL, KEY_DISTRIBUTION },
	{ "bin", required_argument, NULL, KEY_BIN },
	{ "help", no_argument, NULL, KEY_HELP },
	{ "vcs", required_argument, NULL, KEY_MACHINE_FIRST },
	{ "inject-vcs", required_argument, NULL, KEY_MACHINE_FIRST + 1 },
	{ "eject-vcs", required_argument, NULL, KEY_MACHINE_FIRST + 2 },
	{ "buffer", required_argument, NULL, KEY_MACHINE_FIRST + 3 },
	{ "out-buffer", required_argument, NULL, KEY_MACHINE_FIRST + 4 },
	{ "link", required_argument, NULL, KEY_MACHINE_FIRST + 5 },
	{ "inject", required_argument, NULL, KEY_MACHINE_FIRST + 6 },
	{ "credit", required_argument, NULL, KEY_MACHINE_FIRST + 7 },
	{ "route-delay", required_argument, NULL, KEY_MACHINE_FIRST + 8 },
	{ "setup", required_argument, NULL, KEY_MACHINE_FIRST + 9 },
	{ "header", required_argument, NULL, KEY_MACHINE_FIRST + 10 },
	{ "queue", required_argument, NULL, KEY_MACHINE_FIRST + 11 },
	{ "one-port", required_argument, NULL, KEY_MACHINE_FIRST + 12 },
	{ "to-self", required_argument, NULL, KEY_MACHINE_FIRST + 13 },
	{ "classes-first", required_argument, NULL, KEY_MACHINE_FIRST + 14 },
	{ NULL, 0, NULL, 0 },
};

/* The machine's fields, in the order of the options above. */
static const struct field {
	const char *option;
	size_t offset;
	u32 least, most;
	bool flag;
} fields[] = {
	{ "--vcs", offsetof(struct flit_machine, vcs), 1, 16, false },
	{ "--inject-vcs", offsetof(struct flit_machine, inject_vcs), 1, 16, false },
	{ "--eject-vcs", offsetof(struct flit_machine, eject_vcs), 1, 16, false },
	{ "--buffer", offsetof(struct flit_machine, buffer), 1, 30000, false },
	{ "--out-buffer", offsetof(struct flit_machine, out_buffer), 0, 30000, false },
	{ "--link", offsetof(struct flit_machine, link), 1, 1000, false },
	{ "--inject", offsetof(struct flit_machine, inject), 1, 1000, false },
	{ "--credit", offsetof(struct flit_machine, credit), 0, 1000, false },
	{ "--route-delay", offsetof(struct flit_machine, route), 0, 1000, false },
	{ "--setup", offsetof(struct flit_machine, setup), 0, 1000000, false },
	{ "--header", offsetof(struct flit_machine, header), 0, 1000000, false },
	{ "--queue", offsetof(struct flit_machine, queue), 0, 1000000, false },
	{ "--one-port", offsetof(struct flit_machine, one_port), 0, 1, true },
	{ "--to-self", offsetof(struct flit_machine, to_self), 0, 1, true },
	{ "--classes-first", offsetof(struct flit_machine, classes_first), 0, 1, true },
};

static bool flit_number(const char *what, u64 least, u64 most, u64 *value)
{
	return argument_number("sim flit", what, optarg, least, most, value);
}

static bool flit_number32(const char *what, u64 least, u64 most, u32 *value)
{
	u64 wide;

	if (!flit_number(what, least, most, &wide))
		return false;
	*value = wide;
	return true;
}

static bool flit_real(const char *what, double *value)
{
	char *rest;

	*value = strtod(optarg, &rest);
	if (rest != optarg && !*rest && *value >= 0 && *value < 1e9)
		return true;
	fprintf(stderr, "coll sim flit: %s '%s'; valid: a number, 0 or more\n", what, optarg);
	return false;
}

static bool set_field(struct flit_machine *machine, const struct field *field)
{
	char *at = (char *)machine + field->offset;
	u32 value;

	if (!flit_number32(field->option, field->least, field->most, &value))
		return false;
	if (field->flag)
		*(bool *)at = value;
	else
		*(u32 *)at = value;
	return true;
}

static bool set_machine(struct flit_plan *plan)
{
	static const char *const names[] = { "thesis", "booksim", NULL };
	u32 word;

	if (!argument_word("sim flit", "machine", optarg, names, 2, &word))
		return false;
	plan->machine = names[word];
	plan->base.machine = word ? flit_booksim : flit_thesis;
	return true;
}

static bool set_policies(struct flit_plan *plan)
{
	char *copy = strdupa(optarg), *word, *rest = copy;
	u32 policy;

	plan->policies = 0;
	while ((word = strsep(&rest, ","))) {
		if (!argument_word("sim flit", "policy", word, flit_policy_names, FLIT_POLICIES,
				   &policy))
			return false;
		if (plan->policies < FLIT_POLICIES)
			plan->policy[plan->policies++] = policy;
	}
	return true;
}

static bool set_word(const char *what, const char *const *names, u32 count, u32 *word)
{
	return argument_word("sim flit", what, optarg, names, count, word);
}

static bool apply_traffic(int key, struct settings *s)
{
	struct flit_config *base = &s->plan.base;
	u32 word;

	switch (key) {
	case KEY_TRAFFIC:
		if (!set_word("traffic", flit_pattern_names, FLIT_PATTERNS, &word))
			return false;
		base->pattern = word;
		return true;
	case KEY_RATE:
		s->rates = optarg;
		return true;
	case KEY_LENGTH:
		return flit_number32("--length", 1, 1 << 20, &base->length);
	case KEY_HOT:
		return flit_number32("--hot", 1, FLIT_NODES_MAX, &base->hot);
	case KEY_HOT_STEP:
		return flit_number32("--hot-step", 1, FLIT_NODES_MAX, &base->hot_step);
	case KEY_DATA:
		s->data = optarg;
		return true;
	case KEY_ROUNDS:
		s->rounds = optarg;
		return true;
	case KEY_TRACE:
		s->trace = optarg;
		base->pattern = FLIT_TRACE;
		return true;
	case KEY_COLLECTIVE:
		s->collective.collective = optarg;
		return true;
	case KEY_ALGORITHM:
		s->collective.algorithm = optarg;
		return true;
	case KEY_RANKS:
		return flit_number32("--ranks", 1, FLIT_NODES_MAX, &s->collective.ranks);
	case KEY_BYTES:
		s->bytes = optarg;
		return true;
	case KEY_PLACE:
		s->collective.place = optarg;
		return true;
	case KEY_FLIT_BYTES:
		return flit_number32("--flit-bytes", 1, 1 << 16, &base->work.flit_bytes);
	case KEY_JITTER:
		return flit_number32("--jitter", 0, 1000000, &base->work.jitter);
	case KEY_REDUCE:
		return flit_real("--reduce-cycles", &base->work.reduce);
	default:
		return flit_real("--copy-cycles", &base->work.copy);
	}
}

static bool apply_run(int key, struct settings *s)
{
	struct flit_config *base = &s->plan.base;

	switch (key) {
	case KEY_CYCLES:
		return flit_number("--cycles", 1, 1000000000000, &base->cycles);
	case KEY_WARMUP:
		return flit_number("--warmup", 0, 1000000000000, &base->warmup);
	case KEY_DRAIN:
		base->drain = true;
		return true;
	case KEY_SEEDS:
		return flit_number32("--seeds", 1, FLIT_SEEDS_MAX, &s->plan.seeds);
	case KEY_SEED:
		return flit_number("--seed", 0, ~(u64)0 - 1, &base->seed);
	case KEY_JOBS:
		return flit_number32("--jobs", 1, JOBS_MAX, &s->jobs);
	case KEY_INTERVAL:
		return flit_number32("--interval", 1, 1000000000, &base->interval);
	case KEY_SERIES:
		s->series = optarg;
		return true;
	case KEY_DISTRIBUTION:
		s->distribution = optarg;
		return true;
	default:
		return flit_number32("--bin", 1, 1000000, &base->bin);
	}
}

static bool apply_flag(int key, struct settings *s)
{
	switch (key) {
	case KEY_PROOF:
		return s->proof_only = true;
	case KEY_NO_PROOF:
		return s->no_proof = true;
	case KEY_UNSAFE:
		return s->unsafe = true;
	case KEY_BREAK:
		return s->broken = true;
	case KEY_JSON:
		return s->json = true;
	default:
		return s->csv = true;
	}
}

static bool apply_option(int key, char *const *argv, struct settings *s)
{
	switch (key) {
	case KEY_NET:
		s->net = optarg;
		return true;
	case KEY_ROUTING:
		return set_word("routing", flit_routing_names, FLIT_ROUTINGS, &s->routing);
	case KEY_POLICY:
		return set_policies(&s->plan);
	case KEY_TRAFFIC ... KEY_COPY:
		return apply_traffic(key, s);
	case KEY_MACHINE:
		return true;		/* it came before all others */
	case KEY_HEADS:
		return set_word("order of heads", flit_heads_names, FLIT_HEADS,
				&s->plan.base.machine.heads);
	case KEY_CYCLES ... KEY_JOBS:
	case KEY_SERIES ... KEY_BIN:
		return apply_run(key, s);
	case KEY_PROOF ... KEY_CSV:
		return apply_flag(key, s);
	default:
		if (key >= KEY_MACHINE_FIRST)
			return set_field(&s->plan.base.machine, &fields[key - KEY_MACHINE_FIRST]);
		return argument_unknown("sim flit", key, argv, long_options);
	}
}

/* ---- the axis ----------------------------------------------------------- */

static bool say_list(const char *option, const char *text)
{
	fprintf(stderr, "coll sim flit: %s '%s'; valid: A,B,... or FIRST:LAST:STEP, at most %d "
		"values\n", option, text, FLIT_VALUES_MAX);
	return false;
}

static double flit_suffixed(const char *text, char **rest)
{
	double value = strtod(text, rest);

	if (*rest != text && (**rest == 'K' || **rest == 'M'))
		value *= *(*rest)++ == 'K' ? 1024 : 1048576;
	return value;
}

static bool read_list(const char *option, const char *text, double least, double most,
		      struct flit_plan *plan)
{
	double first, last, step, value;
	const char *at = text;
	char *rest;

	if (sscanf(text, "%lf:%lf:%lf", &first, &last, &step) == 3) {
		if (step <= 0 || last < first || first < least || last > most ||
		    (last - first) / step >= FLIT_VALUES_MAX)
			return say_list(option, text);
		for (plan->values = 0; first + plan->values * step < last + step / 2;
		     plan->values++)
			plan->value[plan->values] = first + plan->values * step;
		return true;
	}
	for (plan->values = 0; plan->values < FLIT_VALUES_MAX; at = rest + 1) {
		value = flit_suffixed(at, &rest);
		if (rest == at || value < least || value > most)
			return say_list(option, text);
		plan->value[plan->values++] = value;
		if (!*rest)
			return true;
		if (*rest != ',')
			break;
	}
	return say_list(option, text);
}

static bool read_axis(struct settings *s)
{
	struct flit_plan *plan = &s->plan;

	switch (plan->base.pattern) {
	case FLIT_FFT:
		plan->axis = "data";
		return read_list("--data", s->data ? s->data : "1", 1, 4096, plan);
	case FLIT_FOUR:
		plan->axis = "rounds";
		return read_list("--rounds", s->rounds ? s->rounds : "10", 1, 1e6, plan);
	case FLIT_SCHEDULE:
		plan->axis = "bytes";
		return read_list("--bytes", s->bytes ? s->bytes : "4096", 0, 1e9, plan);
	case FLIT_TRACE:
		plan->axis = "rate";
		return read_list("--rate", "0", 0, 0, plan);
	default:
		plan->axis = "rate";
		return read_list("--rate", s->rates ? s->rates : "0.001", 0, 1, plan);
	}
}

/* ---- whether it fits together ------------------------------------------- */

static bool flit_say(const char *what)
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
		return flit_say("--inject-vcs and --eject-vcs are at most --vcs");
	if (!m->credit && !m->out_buffer)
		return flit_say("--credit 0 needs --out-buffer 1 or more");
	if (!m->credit && m->link != 1)
		return flit_say("--credit 0 needs --link 1");
	if (m->one_port && m->out_buffer)
		return flit_say("--one-port 1 needs --out-buffer 0");
	return true;
}

static bool check_traffic(struct settings *s)
{
	struct flit_config *base = &s->plan.base;
	const struct flit_net *net = &s->plan.net;

	if (!base->cycles)
		base->cycles = base->pattern <= FLIT_COMPLEMENT ? PATTERN_CYCLES : PROGRAM_CYCLES;
	if (base->warmup >= base->cycles)
		return flit_say("--warmup must be less than --cycles");
	if ((u64)(base->hot - 1) * base->hot_step >= net->nodes && base->pattern == FLIT_HOTSPOT)
		return flit_say("--hot, --hot-step: there are not so many nodes");
	if (base->pattern == FLIT_TRANSPOSE && net->shape != FLIT_TESH &&
	    (net->dimensions != 2 || net->size[0] != net->size[1]))
		return flit_say("--traffic transpose needs two equal sides, or a tesh");
	if (base->pattern == FLIT_FFT && net->nodes & (net->nodes - 1))
		return flit_say("--traffic fft needs 2^k nodes");
	if (base->pattern == FLIT_FOUR && net->dimensions != 2)
		return flit_say("--traffic four needs two dimensions");
	if (base->pattern == FLIT_TRACE && !s->trace)
		return flit_say("--traffic trace needs --trace FILE");
	if (base->interval && (base->cycles - 1) / base->interval >= FLIT_POINTS)
		return flit_say("--interval: more than 512 points; take longer ones");
	return true;
}

static bool make_route(struct settings *s)
{
	struct flit_plan *plan = &s->plan;
	const bool tesh = plan->net.shape == FLIT_TESH;
	const u32 routing = s->routing == FLIT_NONE ? (tesh ? FLIT_ROUTE_TESH : FLIT_DOR) :
						      s->routing;
	char why[256];

	if (!flit_route_make(&plan->base.route, &plan->net, routing, plan->base.machine.vcs,
			     s->broken, why, sizeof(why)))
		return true;
	return flit_say(why);
}

/* ---- the proof ---------------------------------------------------------- */

static bool flit_prove(struct settings *s)
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

/* A configuration for every run. Schedules and values of one kind are shared. */
static bool make_configs(struct settings *s, struct flit_work *works)
{
	struct flit_plan *plan = &s->plan;
	u32 p, v, seed;

	for (v = 0; v < plan->values; v++) {
		works[v] = plan->base.work;
		works[v].data = plan->value[v];
		if (plan->base.pattern == FLIT_FOUR)
			works[v].rounds = plan->value[v];
		if (plan->base.pattern == FLIT_SCHEDULE) {
			works[v].rounds = s->rounds ? strtoul(s->rounds, NULL, 10) : 1;
			if (!works[v].rounds)
				return flit_say("--rounds: at least 1");
			if (!flit_emit(&s->collective, plan->value[v], plan->net.nodes,
				       plan->base.seed, &works[v]))
				return false;
		}
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

static int show_results(const struct settings *s)
{
	const struct flit_plan *plan = &s->plan;
	const u32 count = plan->policies * plan->values * plan->seeds;
	bool fine = true;
	u32 i;

	for (i = 0; i < count && fine; i++)
		fine = report_error(plan, i);
	if (!fine)
		return COMMAND_ERROR;
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

static int run_all(struct settings *s)
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
			flit_say("no memory for the results");
		}
	}
	for (v = 0; v < plan->values; v++)
		if (plan->base.pattern == FLIT_SCHEDULE)
			flit_input_free(&works[v]);
	memory_free(works);
	memory_free(plan->config);
	return status;
}

static int flit_simulate(struct settings *s)
{
	struct flit_plan *plan = &s->plan;
	int status = COMMAND_ERROR;
	char why[256];

	if (flit_net_make(&plan->net, s->net, why, sizeof(why))) {
		flit_say(why);
		return COMMAND_USAGE;
	}
	plan->base.net = &plan->net;
	if (!check_machine(&plan->base.machine, &plan->net) || !check_traffic(s) ||
	    !make_route(s) || !read_axis(s))
		status = COMMAND_USAGE;
	else if (s->trace && !flit_read_trace(s->trace, plan->net.nodes, &plan->base.work))
		status = COMMAND_USAGE;
	else if (flit_prove(s))
		status = s->proof_only ? show_proof(plan, s->json) : run_all(s);
	flit_input_free(&plan->base.work);
	flit_net_free(&plan->net);
	return status;
}

/* The preset first: the machine's other options change it, wherever they stand. */
static bool find_machine(int argc, char **argv, struct settings *s)
{
	int key;

	optind = 1;
	while ((key = getopt_long(argc, argv, ":", long_options, NULL)) != -1)
		if (key == KEY_MACHINE && !set_machine(&s->plan))
			return false;
	optind = 1;
	return true;
}

int cmd_sim_flit(int argc, char **argv)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	struct settings *s = memory_grow(NULL, 1, sizeof(*s));
	int key, status = COMMAND_USAGE;

	*s = (struct settings){
		.plan = { .machine = "thesis",
			  .policies = 2,
			  .seeds = 1,
			  .policy = { FLIT_RR, FLIT_OCCUPANCY },
			  .base = { .machine = flit_thesis,
				    .length = 16,
				    .hot = 16,
				    .hot_step = 1,
				    .seed = 1,
				    .bin = 10,
				    .work = { .butterfly = 220,
					      .setup = 120,
					      .address = 120,
					      .per_datum = 16,
					      .flit_bytes = 8,
					      .reduce = 0.25,
					      .copy = 0.125 } } },
		.net = "mesh:16x16",
		.routing = FLIT_NONE,
		.collective = { "allreduce", "ring", "linear", 16 },
		.jobs = cores < 1	   ? 1
			: cores > JOBS_MAX ? JOBS_MAX
					   : cores,
	};
	opterr = 0;
	if (!find_machine(argc, argv, s))
		goto out;
	while ((key = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
		if (key == KEY_HELP) {
			fputs(help, stdout);
			status = COMMAND_OK;
			goto out;
		}
		if (!apply_option(key, argv, s))
			goto out;
	}
	if (optind < argc)
		fprintf(stderr,
			"coll sim flit: it takes options only, not '%s'; --help lists them\n",
			argv[optind]);
	else
		status = flit_simulate(s);
out:
	memory_free(s);
	return status;
}
