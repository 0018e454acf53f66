// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <ctype.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpus.h"

enum { WORDS = NOISE_CPUS_MAX / 64 };

void noise_cpus_add(struct noise_cpus *cpus, u32 cpu)
{
	cpus->bits[cpu / 64] |= 1ull << cpu % 64;
}

void noise_cpus_remove(struct noise_cpus *cpus, const struct noise_cpus *out)
{
	u32 i;

	for (i = 0; i < WORDS; i++)
		cpus->bits[i] &= ~out->bits[i];
}

void noise_cpus_keep(struct noise_cpus *cpus, const struct noise_cpus *in)
{
	u32 i;

	for (i = 0; i < WORDS; i++)
		cpus->bits[i] &= in->bits[i];
}

bool noise_cpus_has(const struct noise_cpus *cpus, u32 cpu)
{
	return cpu < NOISE_CPUS_MAX && cpus->bits[cpu / 64] >> cpu % 64 & 1;
}

bool noise_cpus_same(const struct noise_cpus *a, const struct noise_cpus *b)
{
	return !memcmp(a, b, sizeof(*a));
}

u32 noise_cpus_count(const struct noise_cpus *cpus)
{
	u32 i, count = 0;

	for (i = 0; i < WORDS; i++)
		count += __builtin_popcountll(cpus->bits[i]);
	return count;
}

u32 noise_cpus_next(const struct noise_cpus *cpus, u32 from)
{
	while (from < NOISE_CPUS_MAX && !noise_cpus_has(cpus, from))
		from++;
	return from;
}

/* ---- text ----------------------------------------------------------------- */

static bool read_cpu(const char **text, u32 *cpu)
{
	char *rest;
	unsigned long value;

	if (!isdigit((unsigned char)**text))
		return false;
	value = strtoul(*text, &rest, 10);
	*text = rest;
	*cpu = value;
	return value < NOISE_CPUS_MAX;
}

static bool read_span(const char **text, struct noise_cpus *cpus)
{
	u32 first, last;

	if (!read_cpu(text, &first))
		return false;
	last = first;
	if (**text == '-') {
		++*text;
		if (!read_cpu(text, &last) || last < first)
			return false;
	}
	while (first <= last)
		noise_cpus_add(cpus, first++);
	return true;
}

bool noise_cpus_read_list(struct noise_cpus *cpus, const char *text)
{
	*cpus = (struct noise_cpus){ 0 };
	if (!*text || *text == '\n')
		return true;
	while (read_span(&text, cpus)) {
		if (!*text || !strcmp(text, "\n"))
			return true;
		if (*text++ != ',')
			return false;
	}
	return false;
}

/* Hexadecimal, most significant first, a comma every eight digits: commas mean nothing. */
bool noise_cpus_read_mask(struct noise_cpus *cpus, const char *text)
{
	size_t length = strcspn(text, "\n"), i = length;
	u32 digit = 0;

	*cpus = (struct noise_cpus){ 0 };
	if (!length || (text[length] && text[length + 1]))
		return false;
	while (i--) {
		const char c = tolower((unsigned char)text[i]);
		const u64 value = isdigit((unsigned char)c) ? c - '0' : c - 'a' + 10;

		if (c == ',')
			continue;
		if (!isxdigit((unsigned char)c) || (digit >= NOISE_CPUS_MAX / 4 && value))
			return false;
		if (value)
			cpus->bits[digit / 16] |= value << digit % 16 * 4;
		digit++;
	}
	return digit > 0;
}

char *noise_cpus_list(const struct noise_cpus *cpus, char *text, size_t bytes)
{
	u32 first = noise_cpus_next(cpus, 0);
	size_t used = 0;

	*text = 0;
	while (first < NOISE_CPUS_MAX && used < bytes) {
		u32 last = first;

		while (noise_cpus_has(cpus, last + 1))
			last++;
		used += snprintf(text + used, bytes - used, "%s%u", used ? "," : "", first);
		if (last > first && used < bytes)
			used += snprintf(text + used, bytes - used, "-%u", last);
		first = noise_cpus_next(cpus, last + 1);
	}
	return text;
}

char *noise_cpus_mask(const struct noise_cpus *cpus, char *text, size_t bytes)
{
	u32 word = NOISE_CPUS_MAX / 32;
	size_t used = 0;

	while (word-- && used < bytes) {
		const u32 value = cpus->bits[word / 2] >> word % 2 * 32;

		if (used)
			used += snprintf(text + used, bytes - used, ",%08x", value);
		else if (value || !word)
			used += snprintf(text + used, bytes - used, "%x", value);
	}
	return text;
}

bool noise_cpus_file(struct noise_cpus *cpus, const char *path)
{
	FILE *from = fopen(path, "re");
	char text[NOISE_CPUS_TEXT];
	bool there = from && fgets(text, sizeof(text), from);

	if (from)
		fclose(from);
	return there && noise_cpus_read_list(cpus, text);
}

bool noise_cpus_siblings(struct noise_cpus *siblings, const char *root)
{
	struct noise_cpus online, core;
	char path[200];
	u32 cpu;

	*siblings = (struct noise_cpus){ { 0 } };
	snprintf(path, sizeof(path), "%s/online", root);
	if (!noise_cpus_file(&online, path))
		return false;
	for (cpu = noise_cpus_next(&online, 0); cpu < NOISE_CPUS_MAX;
	     cpu = noise_cpus_next(&online, cpu + 1)) {
		snprintf(path, sizeof(path), "%s/cpu%u/topology/thread_siblings_list", root, cpu);
		if (!noise_cpus_file(&core, path))
			continue;
		noise_cpus_keep(&core, &online);
		if (noise_cpus_next(&core, 0) != cpu)
			noise_cpus_add(siblings, cpu);
	}
	return noise_cpus_count(siblings) > 0;
}

/* ---- tasks ---------------------------------------------------------------- */

int noise_cpus_affinity(int task, struct noise_cpus *cpus)
{
	*cpus = (struct noise_cpus){ 0 };
	return sched_getaffinity(task, sizeof(*cpus), (cpu_set_t *)cpus) ? -errno : 0;
}

int noise_cpus_set_affinity(int task, const struct noise_cpus *cpus)
{
	return sched_setaffinity(task, sizeof(*cpus), (const cpu_set_t *)cpus) ? -errno : 0;
}
