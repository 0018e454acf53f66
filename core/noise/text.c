// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"
#include "core/text_parsed.h"

#define SECOND 1000000000ull

/* ---- times -------------------------------------------------------------------- */

static const struct noise_unit {
	const char *name;
	u64 ns;
} units[] = {
	{ "s", SECOND },	 { "ms", SECOND / 1000 },  { "us", SECOND / 1000000 }, { "ns", 1 },
	{ "m", 60 * SECOND }, { "h", 3600 * SECOND }, { "d", 86400 * SECOND },
};

enum { UNITS = sizeof(units) / sizeof(*units), SMALL_UNITS = 4 };

static u64 unit_of(const char *name, u64 none)
{
	int i;

	for (i = 0; i < UNITS; i++)
		if (!strcmp(name, units[i].name))
			return units[i].ns;
	return *name ? 0 : none;
}

static bool read_ns(const char *text, u64 unit, double *ns)
{
	size_t digits = strspn(text, "0123456789.");
	char *rest;

	*ns = strtod(text, &rest);
	if (!digits || rest == text || text[1] == 'x' || text[1] == 'X')
		return false;	/* strtod() takes more: signs, words, 0x10 */
	unit = unit_of(rest, unit);
	*ns *= unit;
	return unit && *ns < 0x1p62;
}

bool coll_text_time(const char *text, u64 unit, u64 *ns)
{
	double value;

	if (!read_ns(text, unit, &value))
		return false;
	*ns = llround(value);
	return true;
}

bool coll_text_seconds(const char *text, double *seconds)
{
	if (!read_ns(text, SECOND, seconds))
		return false;
	*seconds /= SECOND;
	return true;
}

static void print_time(const char *key, u64 ns, FILE *to)
{
	int i = 0;

	while (i < SMALL_UNITS - 1 && ns % units[i].ns)
		i++;
	fprintf(to, "%s=%llu%s", key, (unsigned long long)(ns / units[i].ns), units[i].name);
}

/* ---- words -------------------------------------------------------------------- */

static const char *const arrivals[] = { "periodic", "poisson", "replay", NULL };
static const char *const phases[] = { "same", "random", "staggered", NULL };
static const char *const lengths[] = { "fixed", "exponential", "pareto", "table", NULL };

static bool read_word(const char *text, const char *const *words, u8 *number)
{
	for (*number = 0; words[*number]; ++*number)
		if (!strcmp(text, words[*number]))
			return true;
	return false;
}

static bool read_number(const char *text, u64 most, u64 *number)
{
	return coll_parse_number(text, strlen(text), most, number);
}

static bool read_u32(const char *text, u32 *number)
{
	u64 value;

	if (!read_number(text, COLL_NONE - 1, &value))
		return false;
	*number = value;
	return true;
}

/* A real number, above 0 and at most `most`. */
static bool read_real(const char *text, double most, double *number)
{
	char *rest;

	*number = strtod(text, &rest);
	return rest != text && !*rest && *number > 0 && *number <= most;
}

static bool read_rate(const char *text, u64 *period)
{
	double rate;

	if (!read_real(text, 1e9 / COLL_NOISE_PERIOD_MIN, &rate) ||
	    rate < 1e9 / COLL_NOISE_PERIOD_MAX)
		return false;
	*period = llround(1e9 / rate);
	return true;
}

static bool read_shape(const char *text, u32 *shape)
{
	double value;

	if (!read_real(text, COLL_NOISE_SHAPE_MAX / 1e3, &value))
		return false;
	*shape = lround(value * 1000);
	return true;
}

/* ---- models ------------------------------------------------------------------- */

struct noise_reading {
	struct coll_noise_said *said;
	const char *file;
	u32 cpu;
};

static bool read_file(const char *text, struct noise_reading *reading)
{
	reading->said->model.length = COLL_NOISE_TABLE;
	reading->file = text;
	return *text;
}

enum noise_key {
	KEY_PERIOD, KEY_RATE, KEY_DURATION, KEY_LENGTH, KEY_SHAPE, KEY_TABLE, KEY_LONGEST,
	KEY_PHASE, KEY_STREAMS, KEY_SEED, KEY_CPU, KEYS,
};

const char *const coll_noise_keys[] = { "period", "rate", "duration", "length", "shape", "table",
					"longest", "phase", "streams", "seed", "cpu", NULL };

static const char *const valid[KEYS] = {
	[KEY_PERIOD] = "a time from 1us to 1d: 10ms",
	[KEY_RATE] = "events a second, from one a day to 1000000",
	[KEY_DURATION] = "a time from 1ns to 1000s: 250us",
	[KEY_LENGTH] = "fixed, exponential, pareto or table",
	[KEY_SHAPE] = "a number above 1, at most 100",
	[KEY_TABLE] = "a file",
	[KEY_LONGEST] = "a time up to 1000s",
	[KEY_PHASE] = "same, random or staggered",
	[KEY_STREAMS] = "how many share a period",
	[KEY_SEED] = "a whole number below 2^64",
	[KEY_CPU] = "a CPU's number",
};

static bool read_value(struct noise_reading *reading, enum noise_key key, const char *value)
{
	struct coll_noise_model *model = &reading->said->model;

	switch (key) {
	case KEY_PERIOD:
		return coll_text_time(value, SECOND, &model->period) && model->period;
	case KEY_RATE:
		return read_rate(value, &model->period);
	case KEY_DURATION:
		return coll_text_time(value, SECOND, &model->duration);
	case KEY_LENGTH:
		return read_word(value, lengths, &model->length);
	case KEY_SHAPE:
		return read_shape(value, &model->shape);
	case KEY_TABLE:
		return read_file(value, reading);
	case KEY_LONGEST:
		return coll_text_time(value, SECOND, &model->longest);
	case KEY_PHASE:
		return read_word(value, phases, &model->phase);
	case KEY_STREAMS:
		return read_u32(value, &model->streams);
	case KEY_SEED:
		return read_number(value, ~0ull, &model->seed);
	default:
		return read_u32(value, &reading->cpu);
	}
}

static int refuse_key(const char *name, struct coll_text_error *error)
{
	size_t length = snprintf(error->reason, sizeof(error->reason),
				 "there is no '%s'; valid: ", name);
	int k;

	for (k = 0; k < KEYS && length < sizeof(error->reason); k++)
		length += snprintf(error->reason + length, sizeof(error->reason) - length, "%s%s",
				   k ? ", " : "", coll_noise_keys[k]);
	return -EINVAL;
}

/* One "key=value". */
static int read_pair(struct noise_reading *reading, char *pair, struct coll_text_error *error)
{
	char *value = strchrnul(pair, '=');
	int k;

	if (*value)
		*value++ = 0;
	for (k = 0; k < KEYS && strcmp(pair, coll_noise_keys[k]); k++)
		;
	if (k == KEYS)
		return refuse_key(pair, error);
	if (!read_value(reading, k, value))
		return coll_parse_error(error, "%s '%s' is not %s", pair, value, valid[k]);
	return 0;
}

static int read_pairs(struct noise_reading *reading, char *text, struct coll_text_error *error)
{
	char *save, *pair = strtok_r(text, ",", &save);
	int wrong = 0;

	if (reading->said->model.arrival == COLL_NOISE_REPLAY) {
		if (!pair || !read_file(pair, reading))
			return coll_parse_error(error, "replay needs a file: replay:FILE");
		pair = strtok_r(NULL, ",", &save);
	}
	for (; pair && !wrong; pair = strtok_r(NULL, ",", &save))
		wrong = read_pair(reading, pair, error);
	return wrong;
}

static int read_table(struct noise_reading *reading, struct coll_text_error *error)
{
	struct coll_noise_said *said = reading->said;
	u64 length;
	u32 i;
	int wrong;

	if (!reading->file && reading->cpu != COLL_NONE)
		return coll_parse_error(error, "cpu chooses from a file; there is none");
	if (!reading->file)
		return 0;
	wrong = coll_noise_read_spans(reading->file, reading->cpu, &said->table, &said->spans,
				      &length, error);
	if (wrong)
		return wrong;
	if (said->model.arrival != COLL_NOISE_REPLAY)
		for (i = 0; i < said->spans; i++)
			said->table[i].start = 0;
	else if (!said->model.period)
		said->model.period = length;
	return 0;
}

static int read_model(struct noise_reading *reading, char *text, struct coll_text_error *error)
{
	struct coll_noise_said *said = reading->said;
	char *rest = strchrnul(text, ':');
	struct coll_noise_plan plan;
	const char *reason;
	int wrong;

	if (*rest)
		*rest++ = 0;
	if (!read_word(text, arrivals, &said->model.arrival))
		return coll_parse_error(error, "'%s' is not periodic, poisson or replay", text);
	wrong = read_pairs(reading, rest, error);
	if (!wrong)
		wrong = read_table(reading, error);
	plan = coll_noise_said_plan(said);
	if (!wrong && !said->model.period)
		wrong = coll_parse_error(error, "needs period or rate");
	else if (!wrong && !said->model.duration && said->model.length != COLL_NOISE_TABLE)
		wrong = coll_parse_error(error, "needs duration");
	else if (!wrong && coll_noise_check(&plan, &reason))
		wrong = coll_parse_error(error, "%s", reason);
	return wrong;
}

int coll_noise_parse(const char *text, u64 seed, struct coll_noise_said *said,
		     struct coll_text_error *error)
{
	struct noise_reading reading = { .said = said, .cpu = COLL_NONE };
	char *copy = strdup(text);
	int wrong;

	*error = (struct coll_text_error){ 0 };
	*said = (struct coll_noise_said){
		.model = { .phase = COLL_NOISE_RANDOM, .seed = seed },
	};
	if (!copy)
		return -ENOMEM;
	wrong = read_model(&reading, copy, error);
	free(copy);
	if (wrong)
		coll_noise_said_free(said);
	return wrong;
}

void coll_noise_said_free(struct coll_noise_said *said)
{
	free(said->table);
	said->table = NULL;
	said->spans = 0;
}

void coll_noise_print(const struct coll_noise_plan *plan, FILE *to)
{
	const struct coll_noise_model *model = plan->model;

	fprintf(to, "%s:", arrivals[model->arrival]);
	if (model->arrival == COLL_NOISE_REPLAY)
		fprintf(to, "%u events,", plan->spans);
	print_time("period", model->period, to);
	if (model->duration)
		print_time(",duration", model->duration, to);
	if (model->length == COLL_NOISE_EXPONENTIAL || model->length == COLL_NOISE_PARETO)
		fprintf(to, ",length=%s", lengths[model->length]);
	if (model->shape)
		fprintf(to, ",shape=%g", model->shape / 1e3);
	if (model->arrival != COLL_NOISE_REPLAY && plan->spans)
		fprintf(to, ",table=%u lengths", plan->spans);
	if (model->longest)
		print_time(",longest", model->longest, to);
	fprintf(to, ",phase=%s", phases[model->phase]);
	if (model->streams)
		fprintf(to, ",streams=%u", model->streams);
	fprintf(to, ",seed=%llu", (unsigned long long)model->seed);
}
