// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "algo/common/levels.h"
#include "tuning.h"

/* All but `late`, which is a list, and `across`, which is a name. */
static const struct tuning_option {
	const char *key;
	size_t member;
	u64 least;
} options[] = {
	{ "T", offsetof(struct coll_tuning, redundancy), 0 },
	{ "segment", offsetof(struct coll_tuning, segment), 1 },
	{ "bound", offsetof(struct coll_tuning, bound), 0 },
	{ "n", offsetof(struct coll_tuning, lanes), 1 },
	{ "relays", offsetof(struct coll_tuning, relays), 0 },
	{ "radix", offsetof(struct coll_tuning, radix), 2 },
	{ "replicas", offsetof(struct coll_tuning, replicas), 1 },
	{ "ports", offsetof(struct coll_tuning, ports), 1 },
	{ "wavelengths", offsetof(struct coll_tuning, wavelengths), 1 },
	{ "ahead", offsetof(struct coll_tuning, ahead), 0 },
	{ "simplex", offsetof(struct coll_tuning, simplex), 0 },
};

/* Options of every algorithm: how its schedule requests circuits. */
static const char common_options[] = "ports,wavelengths,ahead,simplex";

enum { OPTIONS = sizeof(options) / sizeof(options[0]) };

static const char late_key[] = "late", across_key[] = "across";

static u64 *option_value(struct coll_tuning *tuning, const struct tuning_option *option)
{
	return (u64 *)((char *)tuning + option->member);
}

/* Whether `list` ("T,segment", "T segment") has the word of this length. */
static bool list_has(const char *list, const char *word, size_t length)
{
	while (*list) {
		size_t here = strcspn(list, ", ");

		if (here == length && !memcmp(list, word, length))
			return true;
		list += here;
		list += strspn(list, ", ");
	}
	return false;
}

bool coll_algo_has_option(const struct coll_algo *algo, const char *key)
{
	return algo->options && list_has(algo->options, key, strlen(key));
}

static bool is_key(const struct coll_algo *algo, const char *key, size_t length, const char *word)
{
	return length == strlen(word) && !memcmp(key, word, length) &&
	       (!algo || coll_algo_has_option(algo, word));
}

static const struct tuning_option *option_find(const struct coll_algo *algo, const char *key,
					       size_t length)
{
	size_t i;

	if (algo && !list_has(common_options, key, length) &&
	    (!algo->options || !list_has(algo->options, key, length)))
		return NULL;
	for (i = 0; i < OPTIONS; i++)
		if (strlen(options[i].key) == length && !memcmp(options[i].key, key, length))
			return &options[i];
	return NULL;
}

/* A whole number with an optional suffix, all of [text, text + length). */
static bool parse_size(const char *text, size_t length, u64 *value)
{
	static const char suffixes[] = "KMG";
	u64 limit = COLL_UNSET - 1, n = 0;
	size_t i;

	for (i = 0; i < length && isdigit((unsigned char)text[i]); i++) {
		u64 digit = text[i] - '0';

		if (n > (limit - digit) / 10)
			return false;
		n = n * 10 + digit;
	}
	if (!i)
		return false;
	if (i + 1 == length) {
		const char *suffix = strchr(suffixes, toupper((unsigned char)text[i]));
		unsigned int shift = suffix ? 10 * (suffix - suffixes + 1) : 0;

		if (!suffix || n > limit >> shift)
			return false;
		n <<= shift;
		i++;
	}
	*value = n;
	return i == length;
}

static int refuse_key(const struct coll_algo *algo, const char *key, size_t length, char *why,
		      size_t bytes)
{
	if (algo && !algo->options)
		snprintf(why, bytes, "%s has no option '%.*s': it takes none", algo->name,
			 (int)length, key);
	else
		snprintf(why, bytes, "%s has no option '%.*s'; valid: %s",
			 algo ? algo->name : "no algorithm", (int)length, key,
			 algo ? algo->options
			      : "T, segment, bound, n, relays, radix, replicas, ports, wavelengths, "
				"ahead, simplex, late, across");
	return -EINVAL;
}

/* "3+17": up to COLL_LATE_MAX ranks. */
static bool parse_ranks(const char *text, size_t length, u32 late[COLL_LATE_MAX])
{
	u32 count = 0;
	u64 rank;

	for (;;) {
		const char *plus = memchr(text, '+', length);
		const size_t here = plus ? (size_t)(plus - text) : length;

		if (count == COLL_LATE_MAX || !parse_size(text, here, &rank) || rank >= COLL_RANKS_MAX)
			return false;
		late[count++] = rank;
		if (!plus)
			break;
		text = plus + 1;
		length -= here + 1;
	}
	while (count < COLL_LATE_MAX)
		late[count++] = COLL_NONE;
	return true;
}

static int parse_late(const char *text, size_t length, struct coll_tuning *tuning, char *why,
		      size_t bytes)
{
	const char *equals = memchr(text, '=', length);

	if (equals && parse_ranks(equals + 1, text + length - equals - 1, tuning->late))
		return 0;
	snprintf(why, bytes, "option '%.*s': valid is late=RANK, up to %u ranks with + between them",
		 (int)length, text, COLL_LATE_MAX);
	return -EINVAL;
}

/* NULL: the collective of `algo` has no such algorithm; without one: of all. */
static const char *across_name(const struct coll_algo *algo, u64 across)
{
	const char *name = coll_across_names[across];

	return !algo || coll_algo_find(algo->collective, name) ? name : NULL;
}

static int refuse_across(const struct coll_algo *algo, const char *text, size_t length, char *why, size_t bytes)
{
	size_t used = snprintf(why, bytes, "option '%.*s': valid is across=ALGORITHM, one of", (int)length, text);
	u64 i;

	for (i = 0; i < COLL_ACROSS && used < bytes; i++)
		if (across_name(algo, i))
			used += snprintf(why + used, bytes - used, " %s", across_name(algo, i));
	return -EINVAL;
}

static int parse_across(const struct coll_algo *algo, const char *text, size_t length,
			struct coll_tuning *tuning, char *why, size_t bytes)
{
	const char *value = text + sizeof(across_key);
	u64 i;

	for (i = 0; length > sizeof(across_key) && i < COLL_ACROSS; i++) {
		const char *name = across_name(algo, i);

		if (!name || strlen(name) != length - sizeof(across_key) || memcmp(name, value, strlen(name)))
			continue;
		tuning->across = i;
		return 0;
	}
	return refuse_across(algo, text, length, why, bytes);
}

/* One KEY=VALUE of this length. */
static int parse_one(const struct coll_algo *algo, const char *text, size_t length,
		     struct coll_tuning *tuning, char *why, size_t bytes)
{
	const char *equals = memchr(text, '=', length);
	size_t key = equals ? (size_t)(equals - text) : length;
	const struct tuning_option *option = option_find(algo, text, key);
	u64 value;

	if (is_key(algo, text, key, late_key))
		return parse_late(text, length, tuning, why, bytes);
	if (is_key(algo, text, key, across_key))
		return parse_across(algo, text, length, tuning, why, bytes);
	if (!option)
		return refuse_key(algo, text, key, why, bytes);
	if (!equals || !parse_size(equals + 1, length - key - 1, &value) || value < option->least) {
		snprintf(why, bytes,
			 "option '%.*s': valid is %s=N, a whole number from %llu, suffix K, M or G",
			 (int)length, text, option->key, (unsigned long long)option->least);
		return -EINVAL;
	}
	*option_value(tuning, option) = value;
	return 0;
}

int coll_tuning_parse(const struct coll_algo *algo, const char *text, struct coll_tuning *tuning,
		      char *why, size_t bytes)
{
	struct coll_tuning parsed = *tuning;

	if (bytes)
		*why = '\0';
	while (*text) {
		size_t length = strcspn(text, ",");
		int error = parse_one(algo, text, length, &parsed, why, bytes);

		if (error)
			return error;
		text += length;
		text += *text == ',';
	}
	*tuning = parsed;
	return 0;
}

const char *coll_tuning_print(const struct coll_tuning *tuning, char *text, size_t bytes)
{
	struct coll_tuning copy = *tuning;
	size_t used = 0, i;
	char late[48];

	if (bytes)
		*text = '\0';
	for (i = 0; i < OPTIONS && used < bytes; i++) {
		u64 value = *option_value(&copy, &options[i]);

		if (value != COLL_UNSET)
			used += snprintf(text + used, bytes - used, "%s%s=%llu", used ? "," : "",
					 options[i].key, (unsigned long long)value);
	}
	if (tuning->across < COLL_ACROSS && used < bytes)
		used += snprintf(text + used, bytes - used, "%s%s=%s", used ? "," : "", across_key,
				 coll_across_names[tuning->across]);
	if (*coll_late_print(tuning->late, late, sizeof(late)) && used < bytes)
		snprintf(text + used, bytes - used, "%s%s=%s", used ? "," : "", late_key, late);
	return text;
}
