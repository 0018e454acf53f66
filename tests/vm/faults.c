// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults.h"
#include "vm.h"

static const char *const kinds[] = { "failslab", "fail_page_alloc", "fail_usercopy" };

enum { MEMORY = 2, KINDS = 3, TIMES = 1000000000 };

static void set(const char *kind, const char *attribute, const char *value)
{
	char path[80];

	snprintf(path, sizeof(path), "/sys/kernel/debug/%s/%s", kind, attribute);
	if (vm_write(path, value))
		vm_note("no %s", path);
}

static void set_number(const char *kind, const char *attribute, int value)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", value);
	set(kind, attribute, text);
}

bool faults_possible(void)
{
	char text[16];

	if (vm_read("/proc/self/make-it-fail", text, sizeof(text)))
		return false;
	for (int i = 0; i < KINDS; i++)
		set(kinds[i], "verbose", "0");
	for (int i = 0; i < MEMORY; i++)
		set(kinds[i], "ignore-gfp-wait", "N");
	set("fail_page_alloc", "min-order", "0");
	return true;
}

/* One of ten is asked, or each, and fails with a probability in per cent. */
void faults_of_marked(unsigned int per_mille, bool copies)
{
	const bool one_of_ten = per_mille < 100;

	for (int i = 0; i < (copies ? KINDS : MEMORY); i++) {
		set_number(kinds[i], "probability", 0);
		set(kinds[i], "task-filter", "Y");
		set_number(kinds[i], "times", TIMES);
		set_number(kinds[i], "interval", one_of_ten ? 10 : 1);
		set_number(kinds[i], "probability", one_of_ten ? per_mille : per_mille / 10);
	}
}

/* What is left of the times that each may fail. */
long faults_count(void)
{
	char path[80], text[32];
	long count = 0;

	for (int i = 0; i < KINDS; i++) {
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s/times", kinds[i]);
		if (!vm_read(path, text, sizeof(text)) && atol(text) > 1)
			count += TIMES - atol(text);
	}
	return count;
}

/* To take the mark away needs memory, which may fail as well. */
int faults_mark_self(bool marked)
{
	int error = -1;

	for (int tries = 0; error && tries < 1000; tries++)
		error = vm_write("/proc/self/make-it-fail", marked ? "1" : "0");
	return error;
}

int faults_mark(const char *name)
{
	enum { MOST = 64 };
	pid_t threads[MOST];
	char path[64];
	int count = vm_threads(name, threads, MOST), marked = 0;

	for (int i = 0; i < count && i < MOST; i++) {
		snprintf(path, sizeof(path), "/proc/%d/make-it-fail", threads[i]);
		marked += !vm_write(path, "1");
	}
	return marked;
}
