// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "algo/tuning.h"
#include "tools/arguments.h"
#include "tools/bench/bench.h"
#include "sim.h"

static const char help[] =
"usage: coll sim COLLECTIVE [OPTION ...]\n"
"       coll sim replay FILE ... [OPTION ...]\n"
"       coll sim circuit [OPTION ...]\n"
"       coll sim flit [OPTION ...]\n"
"\n"
"Runs a collective's schedules in virtual time. replay: a whole program's instead; circuit:\n"
"over circuits; flit: a network on a chip. Each has its --help.\n"
"\n"
"  --algo A[:K=V,...],...   algorithms; T=best: the T with the least mean time\n"
"                           (without: the one that would be chosen)\n"
"  --ranks N,N,A..B,...     how many; A..B doubles from A to B (64)\n"
"  --size BYTES             of the vector; of a block, where there is one a rank (8)\n"
"  --root R                 (0)\n"
"what it costs: durations like 1us, 25ns, 1e-7 (seconds)\n"
"  --alpha T                a message's latency (1us)\n"
"  --beta T                 a byte's transport (1ns)\n"
"  --gamma T                a byte's reduction (0.1ns)\n"
"  --copy T                 a byte's copy (0)\n"
"  --overhead T             CPU time to send, and to receive, a message (0)\n"
"  --send-overhead T, --recv-overhead T    one of them\n"
"  --redundant-overhead T   CPU time of a redundant send (as --send-overhead)\n"
"  --gap T, --nic T         NIC time of a message, of a byte of it (0)\n"
"  --eager BYTES            longer messages wait for their receive (never)\n"
"  --slow R:X,...           rank R's CPU is X times as slow\n"
"  --clusters N             equal ones, far from each other (1)\n"
"  --wan-alpha T, --wan-beta T    of messages between them (10ms, as --beta)\n"
"  --wan-trunk T            a byte's time where they share the way: 0.8ns (0: none)\n"
"  --wan-loss X             share lost for each time as much as fits (0.5)\n"
"noise, as collnoise(1) writes it: periodic:period=10ms,duration=250us | replay:FILE |\n"
"  poisson:rate=100,duration=50us,length=exponential ... ,phase=same|random|staggered\n"
"  --os-noise NOISE         of every rank; up to 4 times\n"
"  --link-noise NOISE       of every message\n"
"  --noise-semantics S      event (default), occupancy or goal\n"
"how\n"
"  --runs N                 with different noise (30; 1 without noise)\n"
"  --seed N                 (1)\n"
"  --threads N              (as many as there are cores)\n"
"  --path P                 any, levels or events (any)\n"
"  --json, --csv            instead of a table\n"
"  --all-runs               each run's time as well (JSON)\n"
"  --histogram N            the runs' times in N bins (JSON)\n"
"  --plot FILE.svg          also a picture: means over the ranks, or of one number of ranks\n"
"                           the distribution of the runs\n"
"  --timeline FILE          what every op of one run did, for chrome://tracing\n"
"  --critical-path          what the last rank of that run waited for\n"
"  --prove                  one run with real bytes: the results must be right\n"
"  --speed                  the simulator's own CPU time, messages and events a second\n"
"\n"
"coll verify --list names collectives, algorithms and their options.\n"
"Exit status: 0 ok, 1 it cannot be simulated, 2 wrong usage.\n";

static const char replay_help[] =
"usage: coll sim replay FILE ... [OPTION ...]\n"
"\n"
"Runs a program in virtual time: traces of all its ranks (coll-trace(5)), the prefix that\n"
"COLL_MPI_TRACE was, or one GOAL program.\n"
"\n"
"  --alike                  one rank's trace stands for all; it has collectives only\n"
"  --algo COLLECTIVE=A[:K=V,...]   for these calls; may be repeated (as would be chosen)\n"
"  --cpu X                  computing takes X times as long (1)\n"
"  --unit T                 GOAL: a calc's 1 (1ns)\n"
"circuits: collectives ask ahead for theirs, each other message for its own\n"
"  --delta T                to set one up\n"
"  --ports K                at once a rank (1)\n"
"  --wavelengths W          at once in all (0: enough)\n"
"and of coll sim --help: costs, --slow, --clusters, --wan-..., noise, --runs, --seed,\n"
"--threads, --path, --json, --all-runs, --timeline, --critical-path\n"
"\n"
"Exit status: 0 ok, 1 it cannot be simulated, 2 wrong usage.\n";

enum key {
	KEY_ALGO,
	KEY_RANKS,
	KEY_SIZE,
	KEY_ROOT,
	KEY_ALPHA,
	KEY_BETA,
	KEY_GAMMA,
	KEY_COPY,
	KEY_OVERHEAD,
	KEY_SEND,
	KEY_RECV,
	KEY_REDUNDANT,
	KEY_GAP,
	KEY_NIC,
	KEY_EAGER,
	KEY_OS,
	KEY_LINK,
	KEY_SEMANTICS,
	KEY_RUNS,
	KEY_SEED,
	KEY_THREADS,
	KEY_PATH,
	KEY_JSON,
	KEY_CSV,
	KEY_ALL_RUNS,
	KEY_HISTOGRAM,
	KEY_PLOT,
	KEY_TIMELINE,
	KEY_CRITICAL_PATH,
	KEY_PROVE,
	KEY_SPEED,
	KEY_SLOW,
	KEY_CLUSTERS,
	KEY_WAN_ALPHA,
	KEY_WAN_BETA,
	KEY_WAN_TRUNK,
	KEY_WAN_LOSS,
	KEY_HELP,
	KEY_ALIKE,
	KEY_CPU,
	KEY_UNIT,
	KEY_DELTA,
	KEY_PORTS,
	KEY_WAVELENGTHS,
};

static const struct option long_options[] = {
	{ "algo", required_argument, NULL, KEY_ALGO },
	{ "ranks", required_argument, NULL, KEY_RANKS },
	{ "size", required_argument, NULL, KEY_SIZE },
	{ "bytes", required_argument, NULL, KEY_SIZE },
	{ "root", required_argument, NULL, KEY_ROOT },
	{ "alpha", required_argument, NULL, KEY_ALPHA },
	{ "beta", required_argument, NULL, KEY_BETA },
	{ "gamma", required_argument, NULL, KEY_GAMMA },
	{ "copy", required_argument, NULL, KEY_COPY },
	{ "overhead", required_argument, NULL, KEY_OVERHEAD },
	{ "send-overhead", required_argument, NULL, KEY_SEND },
	{ "recv-overhead", required_argument, NULL, KEY_RECV },
	{ "redundant-overhead", required_argument, NULL, KEY_REDUNDANT },
	{ "gap", required_argument, NULL, KEY_GAP },
	{ "nic", required_argument, NULL, KEY_NIC },
	{ "eager", required_argument, NULL, KEY_EAGER },
	{ "os-noise", required_argument, NULL, KEY_OS },
	{ "link-noise", required_argument, NULL, KEY_LINK },
	{ "noise-semantics", required_argument, NULL, KEY_SEMANTICS },
	{ "runs", required_argument, NULL, KEY_RUNS },
	{ "seed", required_argument, NULL, KEY_SEED },
	{ "threads", required_argument, NULL, KEY_THREADS },
	{ "path", required_argument, NULL, KEY_PATH },
	{ "json", no_argument, NULL, KEY_JSON },
	{ "csv", no_argument, NULL, KEY_CSV },
	{ "all-runs", no_argument, NULL, KEY_ALL_RUNS },
	{ "histogram", required_argument, NULL, KEY_HISTOGRAM },
	{ "plot", required_argument, NULL, KEY_PLOT },
	{ "timeline", required_argument, NULL, KEY_TIMELINE },
	{ "critical-path", no_argument, NULL, KEY_CRITICAL_PATH },
	{ "prove", no_argument, NULL, KEY_PROVE },
	{ "speed", no_argument, NULL, KEY_SPEED },
	{ "slow", required_argument, NULL, KEY_SLOW },
	{ "clusters", required_argument, NULL, KEY_CLUSTERS },
	{ "wan-alpha", required_argument, NULL, KEY_WAN_ALPHA },
	{ "wan-beta", required_argument, NULL, KEY_WAN_BETA },
	{ "wan-trunk", required_argument, NULL, KEY_WAN_TRUNK },
	{ "wan-loss", required_argument, NULL, KEY_WAN_LOSS },
	{ "help", no_argument, NULL, KEY_HELP },
	{ "alike", no_argument, NULL, KEY_ALIKE },
	{ "cpu", required_argument, NULL, KEY_CPU },
	{ "unit", required_argument, NULL, KEY_UNIT },
	{ "delta", required_argument, NULL, KEY_DELTA },
	{ "ports", required_argument, NULL, KEY_PORTS },
	{ "wavelengths", required_argument, NULL, KEY_WAVELENGTHS },
	{ NULL, 0, NULL, 0 },
};

static bool options_wrong(const char *option, const char *text, const char *valid)
{
	return argument_refuse_option("sim", option, text, valid);
}

static bool options_unexpected(const char *text)
{
	fprintf(stderr,
		"coll sim: '%s' is no option; after the collective there are options only\n", text);
	return false;
}

/* ---- lists ------------------------------------------------------------------ */

static bool add_ranks(struct sim_options *options, const char *text, u64 ranks)
{
	if (!ranks || ranks > COLL_RANKS_MAX || options->rank_counts == SIM_RANKS_LIST_MAX)
		return options_wrong("ranks", text, "up to 64 numbers from 1 to 16777216");
	options->ranks[options->rank_counts++] = ranks;
	return true;
}

/* "8", "4..131072" and such, with commas between. */
static bool read_ranks(const char *text, struct sim_options *options)
{
	const char *at = text;
	char *rest;
	u64 first, last;

	options->rank_counts = 0;
	for (;;) {
		if (!isdigit((unsigned char)*at))
			return options_wrong("ranks", text, "N, A..B (doubling), commas between");
		first = last = strtoull(at, &rest, 10);
		if (rest[0] == '.' && rest[1] == '.' && isdigit((unsigned char)rest[2]))
			last = strtoull(rest + 2, &rest, 10);
		if (last < first || (*rest && *rest != ','))
			return options_wrong("ranks", text, "N, A..B (doubling), commas between");
		for (; first <= last; first *= 2)
			if (!add_ranks(options, text, first))
				return false;
		if (!*rest)
			return true;
		at = rest + 1;
	}
}

static bool no_algorithm(const struct sim_options *options, const char *name, size_t length)
{
	const struct coll_algo *const *algo;

	fprintf(stderr, "coll sim: %s has no algorithm '%.*s'; valid:",
		coll_collective_names[options->collective], (int)length, name);
	for (algo = coll_algos; *algo; algo++)
		if ((int)(*algo)->collective == options->collective)
			fprintf(stderr, " %s", (*algo)->name);
	fprintf(stderr, "\n");
	return false;
}

static bool add_algorithm(struct sim_options *options, const char *name, size_t length)
{
	const struct coll_algo *const *algo;

	if (options->choices == SIM_ALGOS_MAX) {
		fprintf(stderr, "coll sim: more than %d algorithms\n", SIM_ALGOS_MAX);
		return false;
	}
	for (algo = coll_algos; *algo; algo++)
		if ((int)(*algo)->collective == options->collective &&
		    strlen((*algo)->name) == length && !memcmp((*algo)->name, name, length)) {
			options->choice[options->choices++] =
				(struct sim_choice){ *algo, COLL_TUNING_UNSET, false };
			return true;
		}
	return no_algorithm(options, name, length);
}

static bool add_tuning(struct sim_choice *choice, const char *text)
{
	char why[160];

	if (!strcmp(text, "T=best") && choice->algo->options &&
	    strchr(choice->algo->options, 'T')) {
		choice->best = true;
		return true;
	}
	if (!coll_tuning_parse(choice->algo, text, &choice->tuning, why, sizeof(why)))
		return true;
	fprintf(stderr, "coll sim: %s\n", why);
	return false;
}

/* "allreduce=butterfly-redundant:T=2" */
static bool read_chosen(const char *text, struct sim_options *options)
{
	const char *equals = strchrnul(text, '='), *colon = strchrnul(equals, ':');
	char name[32];

	if (!*equals)
		return options_wrong("algo", text, "COLLECTIVE=ALGORITHM[:KEY=VALUE,...]");
	snprintf(name, sizeof(name), "%.*s", (int)(equals - text), text);
	if (!argument_collective("sim replay", name, &options->collective))
		return false;
	options->choices = 0;
	if (!add_algorithm(options, equals + 1, colon - equals - 1) ||
	    (*colon && !add_tuning(&options->choice[0], colon + 1)))
		return false;
	if (options->choice[0].best)
		return options_wrong("algo", text,
				     "T=best is for one collective; here T is a number");
	options->chosen[options->collective] = options->choice[0];
	options->choices = 0;
	return true;
}

/* "butterfly,ring:segment=64K,butterfly-redundant:T=best" */
static bool read_algorithms(const char *text, struct sim_options *options)
{
	char *copy = strdup(text), *save, *piece, *colon;
	bool fine = copy;

	options->choices = 0;
	for (piece = strtok_r(copy, ",", &save); piece && fine;
	     piece = strtok_r(NULL, ",", &save)) {
		colon = strchrnul(piece, ':');
		if (!*colon && strchr(piece, '=') && options->choices) {
			fine = add_tuning(&options->choice[options->choices - 1], piece);
			continue;
		}
		fine = add_algorithm(options, piece, colon - piece);
		if (fine && *colon)
			fine = add_tuning(&options->choice[options->choices - 1], colon + 1);
	}
	free(copy);
	return fine;
}

/* ---- values ----------------------------------------------------------------- */

static bool read_time(const char *what, const char *text, double *seconds)
{
	if (coll_text_seconds(text, seconds) && *seconds < 1e9)
		return true;
	return options_wrong(what, text, "a duration: 1us, 25ns, 0.1ns, 1e-7 (seconds)");
}

static bool read_bytes(const char *what, const char *text, u64 *bytes)
{
	static const char suffixes[] = "KMG";
	const char *suffix = NULL;
	char *rest;

	*bytes = strtoull(text, &rest, 10);
	if (isdigit((unsigned char)*text) && *rest && !rest[1])
		suffix = strchr(suffixes, toupper((unsigned char)*rest));
	if (suffix)
		*bytes <<= 10 * (suffix - suffixes + 1);
	if (isdigit((unsigned char)*text) && (!*rest || suffix) && *bytes <= COLL_BYTES_MAX)
		return true;
	return options_wrong(what, text, "a size: 8, 64K, 1M");
}

/* The plan's tables live as long as the options do. */
static bool read_noise(const char *what, const char *text, struct coll_noise_said *said,
		       struct sim_noise *noise)
{
	struct coll_text_error error;

	if (coll_noise_parse(text, 0, said, &error)) {
		fprintf(stderr, "coll sim: %s '%s': %s\n", what, text, error.reason);
		return false;
	}
	*noise = (struct sim_noise){ said->model, said->table, said->spans };
	return true;
}

static bool add_os_noise(const char *text, struct sim_options *options)
{
	if (options->os_noises == SIM_SOURCES_MAX) {
		fprintf(stderr, "coll sim: --os-noise more than %d times\n", SIM_SOURCES_MAX);
		return false;
	}
	options->os_noise[options->os_noises] = text;
	return read_noise("--os-noise", text, &options->said[options->os_noises],
			  &options->model.os[options->os_noises]) &&
	       ++options->os_noises;
}

static bool read_word(const char *what, const char *text, const char *const *names, u32 count,
		      int *index)
{
	u32 found;

	if (!argument_word("sim", what, text, names, count, &found))
		return false;
	*index = found;
	return true;
}

/* "3:1.5,17:2" */
static bool read_slow(const char *text, struct sim_options *options)
{
	const char *at = text;
	char *rest;

	for (options->slow_count = 0; options->slow_count < SIM_SLOW_MAX; at = rest + 1) {
		u64 rank = strtoull(at, &rest, 10);
		double factor = *rest == ':' && isdigit((unsigned char)*at) ?
					strtod(rest + 1, &rest) :
					0;

		if (!(factor > 0 && factor <= 1e6) || rank >= COLL_RANKS_MAX ||
		    (*rest && *rest != ','))
			break;
		options->slow[options->slow_count].rank = rank;
		options->slow[options->slow_count++].factor = factor;
		if (!*rest)
			return true;
	}
	return options_wrong("slow", text, "RANK:FACTOR, up to 16 with commas between");
}

static bool read_cpu(const char *text, double *factor)
{
	char *rest;

	*factor = strtod(text, &rest);
	return (rest != text && !*rest && *factor >= 1e-6 && *factor <= 1e6) ||
	       options_wrong("cpu", text, "a number from 1e-6 to 1e6");
}

static bool read_loss(const char *text, double *loss)
{
	char *rest;

	*loss = strtod(text, &rest);
	return (rest != text && !*rest && *loss >= 0 && *loss <= 100) ||
	       options_wrong("wan-loss", text, "a number from 0 to 100");
}

static bool read_u32(const char *what, const char *text, u32 least, u32 most, u32 *value)
{
	u64 number;

	if (!argument_number("sim", what, text, least, most, &number))
		return false;
	*value = number;
	return true;
}

static bool read_plot(const char *text, struct sim_options *options)
{
	options->plot = text;
	return bench_is_svg(text) ||
	       argument_refuse("sim", "--plot", text, "a file name ending in .svg");
}

static bool read_cost(int key, const char *what, const char *text, struct sim_costs *costs)
{
	switch (key) {
	case KEY_ALPHA:
		return read_time(what, text, &costs->alpha);
	case KEY_BETA:
		return read_time(what, text, &costs->beta);
	case KEY_GAMMA:
		return read_time(what, text, &costs->gamma);
	case KEY_COPY:
		return read_time(what, text, &costs->copy);
	case KEY_SEND:
		return read_time(what, text, &costs->send);
	case KEY_RECV:
		return read_time(what, text, &costs->recv);
	case KEY_OVERHEAD:
		return read_time(what, text, &costs->send) && read_time(what, text, &costs->recv);
	case KEY_REDUNDANT:
		return read_time(what, text, &costs->redundant);
	case KEY_GAP:
		return read_time(what, text, &costs->gap);
	case KEY_NIC:
		return read_time(what, text, &costs->nic);
	default:
		return read_bytes(what, text, &costs->eager);
	}
}

static bool options_apply(int key, const char *text, struct sim_options *options)
{
	static const char *const paths[] = { "any", "levels", "events" };
	int word;

	switch (key) {
	case KEY_ALGO:
		return options->replay ? read_chosen(text, options) :
					 read_algorithms(text, options);
	case KEY_ALIKE:
		options->alike = true;
		return true;
	case KEY_CPU:
		return read_cpu(text, &options->cpu);
	case KEY_UNIT:
		return read_time("unit", text, &options->unit) &&
		       (options->unit > 0 || options_wrong("unit", text, "more than 0"));
	case KEY_DELTA:
		return read_time("delta", text, &options->delta);
	case KEY_PORTS:
		return read_u32("--ports", text, 1, COLL_PORTS_MAX, &options->ports);
	case KEY_WAVELENGTHS:
		return read_u32("--wavelengths", text, 0, 1 << 24, &options->wavelengths);
	case KEY_RANKS:
		return read_ranks(text, options);
	case KEY_SIZE:
		return read_bytes("size", text, &options->size);
	case KEY_ROOT:
		return read_u32("--root", text, 0, COLL_RANKS_MAX - 1, &options->root);
	case KEY_OS:
		return add_os_noise(text, options);
	case KEY_LINK:
		options->link_noise = text;
		coll_noise_said_free(&options->said[SIM_SOURCES_MAX]);
		return read_noise("--link-noise", text, &options->said[SIM_SOURCES_MAX],
				  &options->model.link);
	case KEY_SEMANTICS:
		if (!read_word("noise semantics", text, sim_semantics_names, SIM_SEMANTICS, &word))
			return false;
		options->model.semantics = word;
		return true;
	case KEY_RUNS:
		return read_u32("--runs", text, 1, 1000000, &options->runs);
	case KEY_SEED:
		return argument_number("sim", "--seed", text, 0, ~0ull >> 1, &options->seed);
	case KEY_THREADS:
		return read_u32("--threads", text, 1, 256, &options->threads);
	case KEY_PATH:
		if (!read_word("path", text, paths, 3, &word))
			return false;
		options->path = word;
		return true;
	case KEY_JSON:
		options->format = SIM_JSON;
		return true;
	case KEY_CSV:
		options->format = SIM_CSV;
		return true;
	case KEY_HISTOGRAM:
		return read_u32("--histogram", text, 1, 1000, &options->bins);
	case KEY_PLOT:
		return read_plot(text, options);
	case KEY_TIMELINE:
		options->timeline = text;
		return true;
	case KEY_CRITICAL_PATH:
		options->critical_path = true;
		return true;
	case KEY_PROVE:
		options->prove = true;
		return true;
	case KEY_SPEED:
		options->speed = true;
		return true;
	case KEY_SLOW:
		return read_slow(text, options);
	case KEY_CLUSTERS:
		return read_u32("--clusters", text, 1, 64, &options->clusters);
	case KEY_WAN_ALPHA:
		return read_time("wan-alpha", text, &options->wan.alpha);
	case KEY_WAN_BETA:
		return read_time("wan-beta", text, &options->wan.beta);
	case KEY_WAN_TRUNK:
		return read_time("wan-trunk", text, &options->wan.trunk);
	case KEY_WAN_LOSS:
		return read_loss(text, &options->wan.loss);
	default:
		options->all_runs = true;
		return true;
	}
}

static bool options_settle(struct sim_options *options)
{
	struct sim_costs *costs = &options->model.costs;
	const char *refusal;
	u32 i;

	if (costs->redundant < 0)
		costs->redundant = costs->send;
	if (options->wan.beta < 0)
		options->wan.beta = costs->beta;
	for (i = 0; i < options->rank_counts; i++)
		if (options->clusters > options->ranks[i]) {
			fprintf(stderr, "coll sim: --clusters %u, but there are %u ranks\n",
				options->clusters, options->ranks[i]);
			return false;
		}
	for (i = 0; i < options->rank_counts; i++)
		if (options->root >= options->ranks[i]) {
			fprintf(stderr, "coll sim: --root %u, but there are %u ranks\n",
				options->root, options->ranks[i]);
			return false;
		}
	if (!options->runs)
		options->runs = options->os_noises || options->link_noise ? 30 : 1;
	refusal = sim_model_refuses(&options->model);
	if (refusal)
		fprintf(stderr, "coll sim: %s\n", refusal);
	return !refusal;
}

/* Whether this kind of run has the option at all. */
static bool options_belongs(int key, const struct sim_options *options)
{
	switch (key) {
	case KEY_ALIKE:
	case KEY_CPU:
	case KEY_UNIT:
	case KEY_DELTA:
	case KEY_PORTS:
	case KEY_WAVELENGTHS:
		return options->replay;
	case KEY_RANKS:
	case KEY_SIZE:
	case KEY_ROOT:
	case KEY_CSV:
	case KEY_HISTOGRAM:
	case KEY_PLOT:
	case KEY_PROVE:
	case KEY_SPEED:
		return !options->replay;
	default:
		return true;
	}
}

static bool settle_replay(int argc, char **argv, struct sim_options *options)
{
	options->file = argv + optind;
	options->files = argc - optind;
	options->rank_counts = 0;	/* the files say */
	if (options->files &&
	    (options->delta > 0 || (options->ports == 1 && !options->wavelengths)))
		return options_settle(options);
	fprintf(stderr, "coll sim replay: %s\n", options->files ?
		"--ports and --wavelengths are of circuits, which --delta asks for" :
		"no file; --help tells more");
	return false;
}

bool sim_options_read(int argc, char **argv, struct sim_options *options, bool *helped)
{
	int key, index = 0;

	*options = (struct sim_options){
		.model.costs = { .alpha = 1e-6, .beta = 1e-9, .gamma = 1e-10, .redundant = -1,
				 .eager = SIM_ALWAYS_EAGER },
		.rank_counts = 1,
		.ranks = { 64 },
		.size = 8,
		.replay = !strcmp(argv[0], "replay"),
		.cpu = 1,
		.unit = 1e-9,
		.ports = 1,
		.clusters = 1,
		.wan = { .alpha = 10e-3, .beta = -1, .loss = SIM_TCP_LOSS },
		.seed = 1,
		.threads = sysconf(_SC_NPROCESSORS_ONLN),
	};
	*helped = argc < 2 || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h");
	if (*helped) {
		fputs(options->replay ? replay_help : help, argc < 2 ? stderr : stdout);
		return false;
	}
	if (!options->replay && !argument_collective("sim", argv[1], &options->collective))
		return false;
	optind = options->replay ? 1 : 2;
	opterr = 0;
	while ((key = getopt_long(argc, argv, ":", long_options, &index)) != -1) {
		if (key == '?' || key == ':')
			return argument_unknown("sim", key, argv, long_options);
		if (key == KEY_HELP) {
			*helped = true;
			fputs(options->replay ? replay_help : help, stdout);
			return false;
		}
		if (!options_belongs(key, options)) {
			fprintf(stderr, "coll sim: --%s is not for %s\n", long_options[index].name,
				options->replay ? "a replay" : "one collective");
			return false;
		}
		if (key >= KEY_ALPHA && key <= KEY_EAGER ? !read_cost(key, long_options[index].name,
								      optarg, &options->model.costs)
							 : !options_apply(key, optarg, options))
			return false;
	}
	if (options->replay)
		return settle_replay(argc, argv, options);
	if (optind < argc)
		return options_unexpected(argv[optind]);
	return options_settle(options);
}

void sim_options_free(struct sim_options *options)
{
	u32 i;

	for (i = 0; i <= SIM_SOURCES_MAX; i++)
		coll_noise_said_free(&options->said[i]);
}
