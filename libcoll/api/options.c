// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The options of the library: one table, with parser, default and valid values.
 *
 * Length: the table is a quarter, and its readers are of use to it alone.
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "algo/tuning.h"
#include "core/noise/text.h"
#include "core/port.h"
#include "libcoll/base/clock.h"
#include "libcoll/base/cpus.h"
#include "libcoll/base/log.h"
#include "libcoll/engine/inject.h"
#include "libcoll/base/options.h"
#include "libcoll/progress/progress.h"

/* ---- values ------------------------------------------------------------- */

struct option {
	const char *name;
	/*
	 * Reads a value into a field of `size` bytes. -EINVAL: it is not valid. NULL: it is one
	 * of the words of `valid`.
	 */
	int (*read)(void *field, size_t size, const char *value);
	size_t offset, size;
	bool of_group;			/* a group may have another value than its context */
	const char *initial;		/* the default; NULL: 0, none or "" */
	const char *valid;		/* for errors: "a duration: 500ms, 5s, 2m" */
};

static int read_text(void *field, size_t size, const char *value)
{
	if (strlen(value) >= size)
		return -EINVAL;
	strcpy(field, value);
	return 0;
}

static int read_progress(void *field, size_t size, const char *value)
{
	return coll_progress_find(value) ? read_text(field, size, value) : -EINVAL;
}

/* `words`: "auto, uring or epoll". */
static int read_word(void *field, size_t size, const char *value, const char *words)
{
	const size_t length = strlen(value);

	while (words) {
		if (!strncmp(words, value, length) && length &&
		    (!words[length] || words[length] == ',' || !strncmp(words + length, " or ", 4)))
			return read_text(field, size, value);
		words = strpbrk(words, ", ");
		if (words)
			words += *words == ',' ? 2 : strlen(" or ");
	}
	return -EINVAL;
}

/* Whether other CPUs exist is checked when they are needed. */
static int read_cpus(void *field, size_t size, const char *value)
{
	cpu_set_t cpus;

	if (*value && strcmp(value, "others") && coll_cpus_parse(value, &cpus))
		return -EINVAL;
	return read_text(field, size, value);
}

static int read_priority(void *field, size_t size, const char *value)
{
	struct coll_priority priority;

	if (*value && coll_priority_parse(value, &priority))
		return -EINVAL;
	return read_text(field, size, value);
}

/* A number and one of the units; `scale` gets the unit's factor. */
static int read_scaled(const char *value, const char *const *units, const double *scales,
		       double *result)
{
	char *end;
	int i;

	errno = 0;
	*result = strtod(value, &end);
	if (end == value || errno || !isfinite(*result) || *result < 0)
		return -EINVAL;
	for (i = 0; units[i]; i++)
		if (!strcmp(end, units[i])) {
			*result *= scales[i];
			return 0;
		}
	return -EINVAL;
}

int coll_options_time(const char *value, double *seconds)
{
	return coll_text_seconds(value, seconds) ? 0 : -EINVAL;
}

static int read_duration(void *field, size_t size, const char *value)
{
	double seconds;

	(void)size;
	if (coll_options_time(value, &seconds) || seconds > 1e9)
		return -EINVAL;
	*(uint64_t *)field = seconds * COLL_SECOND;
	return 0;
}

static int read_deadline(void *field, size_t size, const char *value)
{
	uint64_t ns;
	int error = read_duration(&ns, size, value);

	if (error || ns < COLL_SECOND / 1000 || ns > COLL_DEADLINE_MAX)
		return -EINVAL;
	*(uint64_t *)field = ns;
	return 0;
}

static int read_bytes(void *field, size_t size, const char *value)
{
	static const char *const units[] = { "", "K", "M", "G", NULL };
	static const double scales[] = { 1, 1 << 10, 1 << 20, 1 << 30 };
	double bytes;

	(void)size;
	if (read_scaled(value, units, scales, &bytes) || bytes > 1e15)
		return -EINVAL;
	*(uint64_t *)field = bytes;
	return 0;
}

static int read_chunk(void *field, size_t size, const char *value)
{
	uint64_t bytes;
	int error = read_bytes(&bytes, size, value);

	if (error || (bytes && (bytes < 4096 || bytes > 128 << 20)))
		return -EINVAL;
	*(uint64_t *)field = bytes;
	return 0;
}

static int read_streams(void *field, size_t size, const char *value)
{
	uint64_t streams;
	int error = read_bytes(&streams, size, value);

	if (error || streams > WAN_STREAMS_MAX)
		return -EINVAL;
	*(uint64_t *)field = streams;
	return 0;
}

static int read_bool(void *field, size_t size, const char *value)
{
	(void)size;
	if (strcmp(value, "0") && strcmp(value, "1"))
		return -EINVAL;
	*(uint64_t *)field = *value == '1';
	return 0;
}

static int read_log(void *field, size_t size, const char *value)
{
	const int level = coll_log_level(value);

	(void)size;
	if (level >= 0)
		*(uint64_t *)field = level;
	return level < 0 ? level : 0;
}

/* Signals that nothing else in a program depends on. */
static int read_signal(void *field, size_t size, const char *value)
{
	static const struct { const char *name; int number; } signals[] = {
		{ "none", 0 }, { "HUP", SIGHUP }, { "QUIT", SIGQUIT }, { "USR1", SIGUSR1 },
		{ "USR2", SIGUSR2 },
	};
	size_t i;

	(void)size;
	for (i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		if (!strcmp(signals[i].name, value)) {
			*(uint64_t *)field = signals[i].number;
			return 0;
		}
	return -EINVAL;
}

static int read_clusters(void *field, size_t size, const char *value)
{
	double seconds;

	if (!strncmp(value, "auto:", 5) && (coll_options_time(value + 5, &seconds) || !seconds))
		return -EINVAL;
	if (strcmp(value, "off") && strcmp(value, "named") && strncmp(value, "auto", 4) &&
	    !strchr(value, '/') && value[strspn(value, "0123456789+")])
		return -EINVAL;
	return read_text(field, size, value);
}

static int read_levels(void *field, size_t size, const char *value)
{
	if (strcmp(value, "auto") && strcmp(value, "flat") &&
	    (!*value || value[strspn(value, "0123456789+/")]))
		return -EINVAL;
	return read_text(field, size, value);
}

static int read_number(void *field, size_t size, const char *value)
{
	static const char *const units[] = { "", NULL };
	static const double scales[] = { 1 };

	(void)size;
	return read_scaled(value, units, scales, field);
}

static int read_seconds(void *field, size_t size, const char *value)
{
	(void)size;
	return coll_options_time(value, field);
}

/* "1003x2.1us+0.5x4ms": events a second and their duration; or "none". */
static int read_noise(void *field, size_t size, const char *value)
{
	struct coll_noise_rate rate[COLL_NOISES_MAX] = { { 0, 0 } };
	const u32 most = size / sizeof(*rate);
	u32 kinds = 0;

	while (*value && strcmp(value, "none")) {
		size_t length = strcspn(value, "+");
		char text[64], *rest;

		if (kinds == most || length >= sizeof(text))
			return -EINVAL;
		memcpy(text, value, length);
		text[length] = 0;
		rate[kinds].rate = strtod(text, &rest);
		if (*rest != 'x' || !(rate[kinds].rate > 0 && rate[kinds].rate <= 1e9) ||
		    coll_options_time(rest + 1, &rate[kinds].duration) ||
		    !(rate[kinds].duration > 0 && rate[kinds].duration <= 1000))
			return -EINVAL;
		kinds++;
		value += length;
		if (*value && !*++value)
			return -EINVAL;
	}
	if (!kinds)
		rate[0].duration = 1;	/* it is given, and not to be looked for: algo/common/algo.h */
	memcpy(field, rate, size);
	return 0;
}

static int read_one_noise(void *field, size_t size, const char *value)
{
	struct coll_noise_rate rate[1];

	if (read_noise(rate, sizeof(rate), value))
		return -EINVAL;
	memcpy(field, rate, size);
	return 0;
}

#define PLACE(member) \
	offsetof(struct coll_options, member), sizeof(((struct coll_options *)0)->member)
#define FIELD(member) PLACE(member), false
#define GROUP_FIELD(member) PLACE(member), true
#define COST_FIELD(level, member) GROUP_FIELD(machine.inside[COLL_LEVEL_##level].member)

static const struct option table[] = {
	{ "engine", NULL, FIELD(engine), "auto", "auto, uring or epoll" },
	{ "progress", read_progress, FIELD(progress), "call",
	  "call, thread, helper, kernel or auto" },
	{ "threads", NULL, FIELD(threads), "one", "one or any" },
	{ "progress_cpus", read_cpus, FIELD(progress_cpus), NULL,
	  "CPUs as 3 or 0-1,4, or others: those the process is not bound to" },
	{ "progress_priority", read_priority, FIELD(progress_priority), NULL,
	  "nice:-20 to nice:19, or fifo:1 to fifo:99" },
	{ "deadline", read_deadline, GROUP_FIELD(deadline_ns), "60s",
	  "a duration from 1ms to a year: 500ms, 5s, 2m" },
	{ "spin", read_duration, FIELD(spin_ns), "100us", "a duration: 20us" },
	{ "wait", NULL, FIELD(wait), "auto", "auto, yield or sleep" },
	{ "memory", NULL, FIELD(memory), "auto", "auto, copy or off" },
	{ "protect", NULL, FIELD(protect), "proof", "none, proof or seal" },
	{ "address", read_text, FIELD(address), NULL, "IP addresses with commas between" },
	{ "congestion", read_text, FIELD(congestion), NULL, "a congestion control: cubic" },
	{ "unexpected_bytes", read_bytes, GROUP_FIELD(unexpected_bytes), "16M", "a size: 16M" },
	{ "buffer_bytes", read_bytes, FIELD(buffer_bytes), NULL, "a size: 4M" },
	{ "link_policy", NULL, FIELD(link_policy), "occupancy",
	  "rr, occupancy or occupancy-hier" },
	{ "link_chunk", read_chunk, FIELD(link_chunk), NULL, "0 or a size from 4K to 128M" },
	{ "levels", read_levels, FIELD(levels), "auto",
	  "auto, flat, sizes of nodes like 4+4, or of nodes and domains like 4+4/2+2+2+2" },
	{ "clusters", read_clusters, FIELD(clusters), NULL,
	  "off, sizes like 8+8, named, a file's path with a /, auto or auto:1ms" },
	{ "cluster", read_text, FIELD(cluster), NULL, "a name of at most 63 characters" },
	{ "switch", read_text, FIELD(leaf), NULL, "a name of at most 63 characters" },
	{ "circuits", read_text, FIELD(circuits), NULL,
	  "off, on, or the path of colld's socket, of at most 107 bytes" },
	{ "node", read_text, FIELD(node), NULL, "a name of at most 63 bytes" },
	{ "circuit_ports", NULL, FIELD(circuit_ports), "auto", "auto or off" },
	{ "explain", read_bool, GROUP_FIELD(explain), NULL, "0 or 1" },
	{ "log", read_log, FIELD(log), "warn", "off, error, warn, info or debug" },
	{ "flight", read_bool, FIELD(flight), "1", "0 or 1" },
	{ "dump", read_text, FIELD(dump), NULL, "the path of a folder, of at most 255 bytes" },
	{ "report", read_text, FIELD(report), NULL, "the path of a file, of at most 255 bytes" },
	{ "dump_signal", read_signal, FIELD(dump_signal), "none", "none, HUP, QUIT, USR1 or USR2" },
	{ "inject", read_text, GROUP_FIELD(inject), NULL, "a fault specification, see coll(7)" },
	{ "alpha", read_seconds, GROUP_FIELD(machine.alpha), NULL, "a duration: 20us" },
	{ "overhead", read_seconds, GROUP_FIELD(machine.overhead), NULL, "a duration: 2us" },
	{ "beta", read_seconds, GROUP_FIELD(machine.beta), NULL, "a duration: 0.5ns" },
	{ "byte_gap", read_seconds, GROUP_FIELD(machine.byte_gap), NULL, "a duration: 0.2ns" },
	{ "gamma", read_seconds, GROUP_FIELD(machine.gamma), NULL, "a duration: 0.1ns" },
	{ "byte_work", read_seconds, GROUP_FIELD(machine.byte_work), NULL, "a duration: 0.5ns" },
	{ "node_alpha", read_seconds, COST_FIELD(NODE, alpha), NULL, "a duration: 2us" },
	{ "node_overhead", read_seconds, COST_FIELD(NODE, overhead), NULL, "a duration: 0.5us" },
	{ "node_beta", read_seconds, COST_FIELD(NODE, beta), NULL, "a duration: 0.1ns" },
	{ "node_byte_gap", read_seconds, COST_FIELD(NODE, byte_gap), NULL, "a duration: 0.1ns" },
	{ "domain_alpha", read_seconds, COST_FIELD(DOMAIN, alpha), NULL, "a duration: 1.5us" },
	{ "domain_overhead", read_seconds, COST_FIELD(DOMAIN, overhead), NULL, "a duration: 0.4us" },
	{ "domain_beta", read_seconds, COST_FIELD(DOMAIN, beta), NULL, "a duration: 0.08ns" },
	{ "domain_byte_gap", read_seconds, COST_FIELD(DOMAIN, byte_gap), NULL, "a duration: 0.08ns" },
	{ "measure", NULL, FIELD(measure), "auto", "auto, off, start or always" },
	{ "measure_time", read_duration, FIELD(measure_ns), "20ms", "a duration: 20ms" },
	{ "costs", read_text, FIELD(costs), NULL, "a file's path of at most 255 bytes" },
	{ "delta", read_seconds, GROUP_FIELD(machine.delta), NULL, "a duration: 10ms" },
	{ "noise", read_noise, GROUP_FIELD(machine.noise), NULL,
	  "none, or up to 8 of RATExDURATION with + between: 1000x10us+0.5x4ms" },
	{ "link_noise", read_one_noise, GROUP_FIELD(machine.link_noise), NULL,
	  "none, or RATExDURATION: 10x2ms" },
	{ "grain", read_seconds, GROUP_FIELD(machine.grain), NULL, "a duration: 1ms" },
	{ "wan", NULL, FIELD(wan), "off", "auto or off" },
	{ "switch_alpha", read_seconds, GROUP_FIELD(machine.switch_alpha), NULL, "a duration: 1.5us" },
	{ "switch_beta", read_seconds, GROUP_FIELD(machine.switch_beta), NULL, "a duration: 0.1ns" },
	{ "wan_alpha", read_seconds, GROUP_FIELD(machine.wan_alpha), NULL, "a duration: 10ms" },
	{ "wan_beta", read_seconds, GROUP_FIELD(machine.wan_beta), NULL, "a duration: 0.8ns" },
	{ "wan_congestion", read_text, FIELD(wan_congestion), NULL, "a congestion control: bbr" },
	{ "wan_pacing", read_bytes, FIELD(wan_pacing), NULL, "bytes a second: 1M" },
	{ "wan_streams", read_streams, FIELD(wan_streams), NULL, "a number from 0 to 16" },
	{ "wan_buffer_bytes", read_bytes, FIELD(wan_buffer_bytes), NULL, "a size: 4M" },
	{ "wan_loss", read_number, GROUP_FIELD(machine.congestion), NULL, "a number: 0.1" },
	{ NULL, NULL, 0, 0, false, NULL, NULL },
};

/* ---- algorithms --------------------------------------------------------- */

static int collective_find(const char *name)
{
	int i;

	for (i = 0; i < COLL_COLLECTIVES; i++)
		if (!strcmp(coll_collective_names[i], name))
			return i;
	return -1;
}

static void list_algos(enum coll_collective collective, char *text, size_t bytes)
{
	const struct coll_algo *const *algo;
	size_t length = snprintf(text, bytes, "auto");

	for (algo = coll_algos; *algo && length < bytes; algo++)
		if ((*algo)->collective == collective)
			length += snprintf(text + length, bytes - length, ", %s", (*algo)->name);
}

/* "butterfly-redundant:T=2", or "auto". */
static int set_algo(struct coll_options *options, enum coll_collective collective,
		    const char *value, char *why, size_t why_bytes)
{
	struct coll_tuning tuning = COLL_TUNING_UNSET;
	const struct coll_algo *algo = NULL;
	const char *colon = strchrnul(value, ':');
	char name[64], valid[OPTIONS_WHY];
	int error = 0;

	snprintf(name, sizeof(name), "%.*s", (int)(colon - value), value);
	if (strcmp(name, "auto")) {
		algo = coll_algo_find(collective, name);
		if (!algo) {
			list_algos(collective, valid, sizeof(valid));
			snprintf(why, why_bytes, "%s has no algorithm '%s'; it has %s",
				 coll_collective_names[collective], name, valid);
			return -EINVAL;
		}
	}
	if (*colon)
		error = coll_tuning_parse(algo, colon + 1, &tuning, why, why_bytes);
	if (error)
		return error;
	options->algo[collective] = algo;
	options->tuning[collective] = tuning;
	return 0;
}

/* "off" is the empty text. */
static int set_inject(struct coll_options *options, const char *value, char *why,
		      size_t why_bytes)
{
	struct coll_inject_config config;
	int error = coll_inject_parse(&config, value, why, why_bytes);

	if (error)
		return error;
	coll_inject_release(&config);
	if (strlen(value) >= sizeof(options->inject)) {
		snprintf(why, why_bytes, "option inject: at most %zu characters are valid",
			 sizeof(options->inject) - 1);
		return -EINVAL;
	}
	strcpy(options->inject, strcmp(value, "off") ? value : "");
	return 0;
}

/* ---- setting ------------------------------------------------------------ */

static const struct option *option_find(const char *key)
{
	const struct option *option;

	for (option = table; option->name; option++)
		if (!strcmp(option->name, key))
			return option;
	return NULL;
}

static int option_read(struct coll_options *options, const struct option *option,
		       const char *value)
{
	void *field = (uint8_t *)options + option->offset;

	return option->read ? option->read(field, option->size, value) :
			      read_word(field, option->size, value, option->valid);
}

bool coll_options_is_of_context(const char *key)
{
	const struct option *option = option_find(key);

	return option && !option->of_group;
}

int coll_options_set(struct coll_options *options, const char *key, const char *value,
		     char *why, size_t why_bytes)
{
	const struct option *option = option_find(key);
	int collective = collective_find(key);

	if (collective >= 0)
		return set_algo(options, collective, value, why, why_bytes);
	if (!strcmp(key, "inject"))
		return set_inject(options, value, why, why_bytes);
	if (!option) {
		snprintf(why, why_bytes, "no option '%s'; coll(7) lists them", key);
		return -EINVAL;
	}
	if (option_read(options, option, value)) {
		snprintf(why, why_bytes, "option %s: '%s' is not %s", key, value, option->valid);
		return -EINVAL;
	}
	return 0;
}

int coll_options_parse(struct coll_options *options, const char *text, char *why,
		       size_t why_bytes)
{
	char *copy = strdup(text), *save, *pair;
	int error = 0;

	if (!copy)
		return -ENOMEM;
	for (pair = strtok_r(copy, " \t\n", &save); pair && !error;
	     pair = strtok_r(NULL, " \t\n", &save)) {
		char *value = strchr(pair, '=');

		if (!value) {
			snprintf(why, why_bytes, "'%s' is not key=value", pair);
			error = -EINVAL;
			break;
		}
		*value++ = 0;
		error = coll_options_set(options, pair, value, why, why_bytes);
	}
	free(copy);
	return error;
}

/* COLL_<NAME> for one option, with any value that the option takes. */
static int from_environment(struct coll_options *options, const char *name, char *why,
			    size_t why_bytes)
{
	char variable[64] = "COLL_";
	const char *value;
	size_t i;

	for (i = 0; name[i] && i < sizeof(variable) - 6; i++)
		variable[5 + i] = toupper((unsigned char)name[i]);
	variable[5 + i] = 0;
	value = getenv(variable);
	if (!value)
		return 0;
	if (!coll_options_set(options, name, value, why, why_bytes))
		return 0;
	snprintf(why + strlen(why), why_bytes - strlen(why), " (from %s)", variable);
	return -EINVAL;
}

/* `text` without the blanks around it, in place. */
static char *trimmed_text(char *text)
{
	char *end = text + strlen(text);

	while (end > text && isspace((unsigned char)end[-1]))
		*--end = 0;
	while (isspace((unsigned char)*text))
		text++;
	return text;
}

/*
 * One line of a file, which is changed. A value is all that is left of its line: what is not a value as a
 * whole ("3 us", "5s deadline = 1s") is refused, for a part of it would be another one.
 */
static int from_line(struct coll_options *options, char *line, bool (*keys)(const struct option *option),
		     char *why, size_t why_bytes)
{
	char *equals, *key;

	line[strcspn(line, "#")] = 0;
	key = trimmed_text(line);
	if (!*key)
		return 0;
	equals = strchr(key, '=');
	if (!equals) {
		snprintf(why, why_bytes, "not key = value");
		return -EINVAL;
	}
	*equals = 0;
	key = trimmed_text(key);
	if (keys && (!option_find(key) || !keys(option_find(key)))) {
		snprintf(why, why_bytes, "'%s' is no cost; valid: alpha, beta and the like, see coll(7)", key);
		return -EINVAL;
	}
	return coll_options_set(options, key, trimmed_text(equals + 1), why, why_bytes);
}

/* Lines of "key = value"; # begins a comment. `what` names the file; `keys` are valid, or NULL: all. */
static int from_file(struct coll_options *options, const char *what, const char *path,
		     bool (*keys)(const struct option *option), char *why, size_t why_bytes)
{
	FILE *file = fopen(path, "re");
	char line[1024], reason[OPTIONS_WHY];
	int number = 0, error = 0;

	while (file && !error && fgets(line, sizeof(line), file)) {
		number++;
		if (strlen(line) == sizeof(line) - 1) {
			snprintf(reason, sizeof(reason), "a line of more than %zu bytes", sizeof(line) - 2);
			error = -EINVAL;
		} else {
			error = from_line(options, line, keys, reason, sizeof(reason));
		}
		if (error)
			snprintf(why, why_bytes, "%s:%d: %s", path, number, reason);
	}
	if (!file || (!error && ferror(file))) {	/* a folder opens, and fails here */
		snprintf(why, why_bytes, "%s: cannot read %s: %s", what, path, strerror(errno));
		error = -EINVAL;
	}
	if (file)
		fclose(file);
	return error;
}

static void set_defaults(struct coll_options *options)
{
	const struct option *option;
	int error;

	for (option = table; option->name; option++) {
		if (!option->initial)
			continue;
		error = option_read(options, option, option->initial);
		coll_assert(!error);
	}
}

int coll_options_init(struct coll_options *options, char *why, size_t why_bytes)
{
	const char *path = getenv("COLL_CONFIG");
	const struct option *option;
	int i, error = 0;

	memset(options, 0, sizeof(*options));
	set_defaults(options);
	for (i = 0; i < COLL_COLLECTIVES; i++)
		options->tuning[i] = COLL_TUNING_UNSET;
	if (path && *path)
		error = from_file(options, "COLL_CONFIG", path, NULL, why, why_bytes);
	for (option = table; option->name && !error; option++)
		error = from_environment(options, option->name, why, why_bytes);
	for (i = 0; i < COLL_COLLECTIVES && !error; i++)
		error = from_environment(options, coll_collective_names[i], why, why_bytes);
	return error;
}

static bool option_off(const char *value)
{
	return !*value || !strcmp(value, "off");
}

bool coll_options_ask_nothing(const struct coll_options *options, const char *collective)
{
	const struct coll_machine *machine = &options->machine;
	const int i = collective_find(collective);

	return i >= 0 && !options->algo[i] &&
	       !memcmp(&options->tuning[i], &COLL_TUNING_UNSET, sizeof(options->tuning[i])) &&
	       !strcmp(options->memory, "auto") && !strcmp(options->levels, "auto") &&
	       strcmp(options->protect, "seal") && option_off(options->clusters) &&
	       option_off(options->circuits) && !coll_options_follow(options) &&
	       !coll_options_measure_first(options) && !*options->inject && !*options->report &&
	       !(machine->noise[0].duration > 0) && !(machine->link_noise.duration > 0);
}

/* ---- costs ---------------------------------------------------------------- */

/* Numbers of the machine that are measured: all but noise. */
static bool option_is_cost(const struct option *option)
{
	return option->offset >= offsetof(struct coll_options, machine) &&
	       option->offset < offsetof(struct coll_options, machine) + sizeof(struct coll_machine) &&
	       (option->read == read_seconds || option->read == read_number);
}

void coll_options_take(struct coll_options *options, const struct coll_machine *found)
{
	const struct option *option;

	for (option = table; option->name; option++) {
		const size_t offset = option->offset - offsetof(struct coll_options, machine);
		double *value = (double *)((char *)options + option->offset);

		if (option_is_cost(option) && *value <= 0)
			*value = *(const double *)((const char *)found + offset);
	}
}

int coll_options_read_costs(const struct coll_options *options, struct coll_machine *found,
			    char *why, size_t why_bytes)
{
	struct coll_options read = { .costs = "" };
	int error = 0;

	if (options->costs[0])
		error = from_file(&read, "option costs", options->costs, option_is_cost, why, why_bytes);
	*found = read.machine;
	return error;
}
