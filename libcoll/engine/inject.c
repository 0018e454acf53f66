// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What is injected (a specification) and when (plans). No sockets, no clock. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inject.h"

/* Events that began so long before a plan does: hardly any is longer. */
enum { PERIODS_BACK = 8 };

/* ---- random numbers ---------------------------------------------------------- */

/* splitmix64 (Steele, Lea, Flood 2014): any state is valid. */
uint64_t coll_inject_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* ---- plans ------------------------------------------------------------------ */

void coll_inject_plan_init(struct coll_inject_plan *plan, const struct coll_inject_spec *spec,
			   uint64_t stream, uint64_t now)
{
	uint64_t back;

	*plan = (struct coll_inject_plan){ .noise = coll_noise_said_plan(&spec->noise) };
	plan->stream = coll_noise_stream(&plan->noise, stream);
	/* Events are under way already. A table may have a million of them in its period. */
	back = plan->noise.model->arrival == COLL_NOISE_REPLAY ? 0 : PERIODS_BACK * plan->noise.model->period;
	coll_noise_seek(&plan->noise, &plan->stream, now > back ? now - back : 0);
	plan->next = coll_noise_next(&plan->noise, &plan->stream);
	while (plan->next.start < now)
		coll_inject_plan_next(plan);
}

struct coll_noise_span coll_inject_plan_next(struct coll_inject_plan *plan)
{
	struct coll_noise_span event = plan->next;

	if (event.start + event.duration > plan->busy_until)
		plan->busy_until = event.start + event.duration;
	plan->next = coll_noise_next(&plan->noise, &plan->stream);
	return event;
}

uint64_t coll_inject_plan_strikes(struct coll_inject_plan *plan, uint64_t from, uint64_t to)
{
	struct coll_noise_span event;
	uint64_t sum = 0;

	while (plan->next.start <= to) {
		event = coll_inject_plan_next(plan);
		sum += event.start > from ? event.duration : 0;
	}
	return sum;
}

uint64_t coll_inject_plan_busy(struct coll_inject_plan *plan, uint64_t now)
{
	while (plan->next.start <= now)
		coll_inject_plan_next(plan);
	return plan->busy_until > now ? plan->busy_until : 0;
}

/* ---- specifications ----------------------------------------------------------- */

struct coll_inject_reading {
	const char *spec;		/* as the user wrote it */
	char *why;
	size_t bytes;
};

static int inject_refuse(const struct coll_inject_reading *reading, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int inject_refuse(const struct coll_inject_reading *reading, const char *format, ...)
{
	int n = snprintf(reading->why, reading->bytes, "inject '%s': ", reading->spec);
	va_list arguments;

	va_start(arguments, format);
	if (n >= 0 && (size_t)n < reading->bytes)
		vsnprintf(reading->why + n, reading->bytes - n, format, arguments);
	va_end(arguments);
	return -EINVAL;
}

enum key {
	KEY_HOW = 1 << 0,
	KEY_MODEL = 1 << 1,
	KEY_PROBABILITY = 1 << 2,
	KEY_AFTER = 1 << 3,
	KEY_RANK = 1 << 4,
	KEY_FROM = 1 << 5,
};

static const struct {
	const char *name, *valid;
} keys[] = {
	{ "how", "sleep or spin" },
	{ "model", "event or occupancy" },
	{ "probability", "a number from 0 to 1" },
	{ "after", "a whole number" },
	{ "rank", "a rank" },
	{ "from", "a rank" },
};

enum { KEYS = sizeof(keys) / sizeof(*keys) };

/* Forms of noise continue with a noise model, whose keys mix with the form's own. */
static const struct form {
	const char *name;
	enum coll_inject_kind kind;
	unsigned int needed, allowed;
	bool noise;
} forms[] = {
	{ "os", INJECT_OS, 0, KEY_HOW | KEY_RANK, true },
	{ "link", INJECT_LINK, 0, KEY_MODEL | KEY_RANK | KEY_FROM, true },
	{ "short", INJECT_SHORT, KEY_PROBABILITY, KEY_RANK, false },
	{ "drop", INJECT_DROP, KEY_AFTER, KEY_RANK, false },
	{ "kill", INJECT_KILL, KEY_AFTER | KEY_RANK, 0, false },
	{ "stop", INJECT_STOP, KEY_AFTER | KEY_RANK, 0, false },
};

enum { FORMS = sizeof(forms) / sizeof(*forms) };

static bool read_real(const char *value, double most, double *number)
{
	char *end;

	*number = strtod(value, &end);
	return end != value && !*end && *number >= 0 && *number <= most;
}

static bool read_whole(const char *value, uint64_t *number)
{
	char *end;

	errno = 0;
	*number = strtoull(value, &end, 10);
	return *value >= '0' && *value <= '9' && !*end && !errno && *number < COLL_NONE;
}

/* Reads one of two words: 0 or 1. */
static bool read_either(const char *value, const char *zero, const char *one, unsigned int *which)
{
	*which = !strcmp(value, one);
	return *which || !strcmp(value, zero);
}

static bool read_value(struct coll_inject_spec *spec, unsigned int key, const char *value)
{
	switch (key) {
	case KEY_HOW:
		return read_either(value, "sleep", "spin", &spec->how);
	case KEY_MODEL:
		return read_either(value, "event", "occupancy", &spec->model);
	case KEY_PROBABILITY:
		return read_real(value, 1, &spec->probability);
	case KEY_AFTER:
		return read_whole(value, &spec->after);
	case KEY_FROM:
		return read_whole(value, &spec->from);
	default:
		return read_whole(value, &spec->rank);
	}
}

/* Lists the names of these keys: "how, rank". */
static const char *list_keys(unsigned int mask, char *text, size_t bytes)
{
	size_t length = 0;
	int i;

	text[0] = 0;
	for (i = 0; i < KEYS && length < bytes; i++)
		if (mask & 1u << i)
			length += snprintf(text + length, bytes - length, "%s%s",
					   length ? ", " : "", keys[i].name);
	return text;
}

static unsigned int find_key(const struct form *form, const char *name, size_t length)
{
	int i;

	for (i = 0; i < KEYS; i++)
		if (strlen(keys[i].name) == length && !strncmp(keys[i].name, name, length))
			return 1u << i & (form->needed | form->allowed);
	return 0;
}

static bool noise_key(const char *name, size_t length)
{
	int i;

	for (i = 0; coll_noise_keys[i]; i++)
		if (strlen(coll_noise_keys[i]) == length &&
		    !strncmp(coll_noise_keys[i], name, length))
			return true;
	return false;
}

static int refuse_key(const struct coll_inject_reading *reading, const struct form *form,
		      const char *name, int length)
{
	char valid[200];
	size_t at = strlen(list_keys(form->needed | form->allowed, valid, sizeof(valid)));
	int i;

	for (i = 0; form->noise && coll_noise_keys[i]; i++)
		at += snprintf(valid + at, sizeof(valid) - at, ", %s", coll_noise_keys[i]);
	return inject_refuse(reading, "%s has no '%.*s'; valid: %s", form->name, length, name,
			     valid);
}

/* Reads one "key=value" of the form; *seen gets its bit. */
static int read_pair(const struct coll_inject_reading *reading, const struct form *form,
		     struct coll_inject_spec *spec, const char *pair, unsigned int *seen)
{
	size_t length = strcspn(pair, "=");
	const char *value = pair + length + (pair[length] == '=');
	unsigned int key = find_key(form, pair, length);

	if (!key)
		return refuse_key(reading, form, pair, length);
	*seen |= key;
	if (!read_value(spec, key, value))
		return inject_refuse(reading, "%.*s '%s' is not %s", (int)length, pair, value,
				     keys[__builtin_ctz(key)].valid);
	return 0;
}

/* "periodic:period=10ms,how=spin": keys that the form does not have are the model's. */
static int read_noise(const struct coll_inject_reading *reading, const struct form *form,
		      struct coll_inject_spec *spec, char *text, uint64_t seed)
{
	struct coll_text_error wrong;
	char *model = calloc(1, strlen(text) + 3), *save, *pair;
	char *rest = strchrnul(text, ':');
	unsigned int seen;
	int error = 0;

	if (!model)
		return -ENOMEM;
	if (*rest)
		*rest++ = 0;
	strcat(strcpy(model, text), ":");
	for (pair = strtok_r(rest, ",", &save); pair && !error; pair = strtok_r(NULL, ",", &save)) {
		if (!strchr(pair, '=') || noise_key(pair, strcspn(pair, "=")))
			strcat(strcat(model, pair), ",");
		else
			error = read_pair(reading, form, spec, pair, &seen);
	}
	if (!error) {
		error = coll_noise_parse(model, seed, &spec->noise, &wrong);
		if (error == -EINVAL)
			inject_refuse(reading, "%s", wrong.reason);
	}
	free(model);
	return error;
}

static const struct form *find_form(const char *text, size_t *length)
{
	int i;

	for (i = 0; i < FORMS; i++) {
		*length = strlen(forms[i].name);
		if (!strncmp(text, forms[i].name, *length) &&
		    (text[*length] == ':' || (!text[*length] && !forms[i].noise)))
			return &forms[i];
	}
	return NULL;
}

/* "os:poisson:rate=100,duration=1ms"; `text` is cut up. */
static int read_spec(const struct coll_inject_reading *reading, struct coll_inject_spec *spec,
		     char *text, uint64_t seed)
{
	size_t length;
	const struct form *form = find_form(text, &length);
	unsigned int seen = 0, missing;
	char *save, *pair, valid[100];
	int error = 0;

	if (!form)
		return inject_refuse(reading,
				     "valid: os:periodic, os:poisson, os:replay, link:periodic, "
				     "link:poisson, link:replay, short, drop, kill, stop, seed=N, "
				     "off");
	*spec = (struct coll_inject_spec){ .kind = form->kind, .rank = INJECT_EVERY_RANK,
					   .from = INJECT_EVERY_RANK };
	text += length + (text[length] == ':');
	if (form->noise)
		return read_noise(reading, form, spec, text, seed);
	for (pair = strtok_r(text, ",", &save); pair && !error; pair = strtok_r(NULL, ",", &save))
		error = read_pair(reading, form, spec, pair, &seen);
	missing = form->needed & ~seen;
	if (!error && missing)
		error = inject_refuse(reading, "needs %s",
				      list_keys(missing, valid, sizeof(valid)));
	return error;
}

static int read_item(struct coll_inject_config *config, const char *item, char *why, size_t bytes)
{
	const struct coll_inject_reading reading = { item, why, bytes };
	uint64_t seed = config->seed + ((uint64_t)config->count << 32);
	char *copy;
	int error;

	if (config->count == INJECT_SPECS_MAX)
		return inject_refuse(&reading, "more than %d at once", INJECT_SPECS_MAX);
	copy = strdup(item);
	if (!copy)
		return -ENOMEM;
	error = read_spec(&reading, &config->spec[config->count++], copy, seed);
	free(copy);
	return error;
}

static int read_seed(struct coll_inject_config *config, const char *item, char *why, size_t bytes)
{
	const struct coll_inject_reading reading = { item, why, bytes };

	return read_whole(item + strlen("seed="), &config->seed) ?
		       0 :
		       inject_refuse(&reading, "a seed is a whole number below 2^32");
}

/* Reads the seed alone, or all but the seed. */
static int read_items(struct coll_inject_config *config, const char *text, bool seed, char *why,
		      size_t bytes)
{
	char *copy = strdup(text), *save, *item;
	int error = copy ? 0 : -ENOMEM;

	for (item = copy ? strtok_r(copy, ";", &save) : NULL; item && !error;
	     item = strtok_r(NULL, ";", &save)) {
		if (!strncmp(item, "seed=", strlen("seed=")) != seed)
			continue;
		error = seed ? read_seed(config, item, why, bytes) :
			       read_item(config, item, why, bytes);
	}
	free(copy);
	return error;
}

int coll_inject_parse(struct coll_inject_config *config, const char *text, char *why, size_t bytes)
{
	int error;

	*config = (struct coll_inject_config){ .seed = 1 };
	if (!strcmp(text, "off"))
		return 0;
	error = read_items(config, text, true, why, bytes);
	if (!error)
		error = read_items(config, text, false, why, bytes);
	if (error)
		coll_inject_release(config);
	return error;
}

void coll_inject_release(struct coll_inject_config *config)
{
	uint32_t i;

	for (i = 0; i < config->count; i++)
		coll_noise_said_free(&config->spec[i].noise);
	config->count = 0;
}

/* ---- short reads and writes ----------------------------------------------------- */

int coll_short_io_clip(struct coll_short_io *io, struct iovec *iov, int count, bool *cut)
{
	uint64_t bytes = 0, keep;
	int j;

	*cut = false;
	if (!io)
		return count;
	for (j = 0; j < count; j++)
		bytes += iov[j].iov_len;
	*cut = bytes > 1 && (coll_inject_random(&io->random) >> 11) * 0x1p-53 < io->probability;
	if (!*cut)
		return count;
	keep = 1 + coll_inject_random(&io->random) % (bytes - 1);
	for (j = 0; j < count && keep; j++) {
		if (iov[j].iov_len > keep)
			iov[j].iov_len = keep;
		keep -= iov[j].iov_len;
	}
	return j;
}
