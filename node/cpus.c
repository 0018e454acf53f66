// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <ctype.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpus.h"

enum { WORDS = NODE_CPUS_MAX / 64 };

void node_cpus_add(struct node_cpus *cpus, u32 cpu)
{
	cpus->bits[cpu / 64] |= 1ull << cpu % 64;
}

void node_cpus_remove(struct node_cpus *cpus, const struct node_cpus *out)
{
	u32 i;

	for (i = 0; i < WORDS; i++)
		cpus->bits[i] &= ~out->bits[i];
}

void node_cpus_keep(struct node_cpus *cpus, const struct node_cpus *in)
{
	u32 i;

	for (i = 0; i < WORDS; i++)
		cpus->bits[i] &= in->bits[i];
}

bool node_cpus_has(const struct node_cpus *cpus, u32 cpu)
{
	return cpu < NODE_CPUS_MAX && cpus->bits[cpu / 64] >> cpu % 64 & 1;
}

bool node_cpus_same(const struct node_cpus *a, const struct node_cpus *b)
{
	return !memcmp(a, b, sizeof(*a));
}

u32 node_cpus_count(const struct node_cpus *cpus)
{
	u32 i, count = 0;

	for (i = 0; i < WORDS; i++)
		count += __builtin_popcountll(cpus->bits[i]);
	return count;
}

u32 node_cpus_next(const struct node_cpus *cpus, u32 from)
{
	u32 word = from / 64;
	u64 bits;

	if (from >= NODE_CPUS_MAX)
		return NODE_CPUS_MAX;
	bits = cpus->bits[word] & ~0ull << from % 64;
	while (!bits && ++word < WORDS)
		bits = cpus->bits[word];
	return bits ? word * 64 + __builtin_ctzll(bits) : NODE_CPUS_MAX;
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
	return value < NODE_CPUS_MAX;
}

static bool read_span(const char **text, struct node_cpus *cpus)
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
		node_cpus_add(cpus, first++);
	return true;
}

bool node_cpus_read_list(struct node_cpus *cpus, const char *text)
{
	*cpus = (struct node_cpus){ 0 };
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
bool node_cpus_read_mask(struct node_cpus *cpus, const char *text)
{
	size_t length = strcspn(text, "\n"), i = length;
	u32 digit = 0;

	*cpus = (struct node_cpus){ 0 };
	if (!length || (text[length] && text[length + 1]))
		return false;
	while (i--) {
		const char c = tolower((unsigned char)text[i]);
		const u64 value = isdigit((unsigned char)c) ? c - '0' : c - 'a' + 10;

		if (c == ',')
			continue;
		if (!isxdigit((unsigned char)c) || (digit >= NODE_CPUS_MAX / 4 && value))
			return false;
		if (value)
			cpus->bits[digit / 16] |= value << digit % 16 * 4;
		digit++;
	}
	return digit > 0;
}

char *node_cpus_list(const struct node_cpus *cpus, char *text, size_t bytes)
{
	u32 first = node_cpus_next(cpus, 0);
	size_t used = 0;

	*text = 0;
	while (first < NODE_CPUS_MAX && used < bytes) {
		u32 last = first;

		while (node_cpus_has(cpus, last + 1))
			last++;
		used += snprintf(text + used, bytes - used, "%s%u", used ? "," : "", first);
		if (last > first && used < bytes)
			used += snprintf(text + used, bytes - used, "-%u", last);
		first = node_cpus_next(cpus, last + 1);
	}
	return text;
}

char *node_cpus_mask(const struct node_cpus *cpus, char *text, size_t bytes)
{
	u32 word = NODE_CPUS_MAX / 32;
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

bool node_cpus_file(struct node_cpus *cpus, const char *path)
{
	FILE *from = fopen(path, "re");
	char text[NODE_CPUS_TEXT];
	bool there = from && fgets(text, sizeof(text), from);

	if (from)
		fclose(from);
	return there && node_cpus_read_list(cpus, text);
}

bool node_cpus_siblings(struct node_cpus *siblings, const char *root)
{
	struct node_cpus online, core;
	char path[200];
	u32 cpu;

	*siblings = (struct node_cpus){ { 0 } };
	snprintf(path, sizeof(path), "%s/online", root);
	if (!node_cpus_file(&online, path))
		return false;
	for (cpu = node_cpus_next(&online, 0); cpu < NODE_CPUS_MAX;
	     cpu = node_cpus_next(&online, cpu + 1)) {
		snprintf(path, sizeof(path), "%s/cpu%u/topology/thread_siblings_list", root, cpu);
		if (!node_cpus_file(&core, path))
			continue;
		node_cpus_keep(&core, &online);
		if (node_cpus_next(&core, 0) != cpu)
			node_cpus_add(siblings, cpu);
	}
	return node_cpus_count(siblings) > 0;
}

/* ---- tasks ---------------------------------------------------------------- */

int node_cpus_affinity(int task, struct node_cpus *cpus)
{
	*cpus = (struct node_cpus){ 0 };
	return sched_getaffinity(task, sizeof(*cpus), (cpu_set_t *)cpus) ? -errno : 0;
}

int node_cpus_set_affinity(int task, const struct node_cpus *cpus)
{
	return sched_setaffinity(task, sizeof(*cpus), (const cpu_set_t *)cpus) ? -errno : 0;
}
