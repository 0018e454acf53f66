// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Loaded and idle, coll.ko costs nothing: no timer, no thread, no interrupt more. */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vm.h"

static char text[1 << 20];

/* Lines of the file that have the word in them. */
static int lines_with(const char *path, const char *word)
{
	int count = 0;

	if (vm_read(path, text, sizeof(text)))
		return -1;
	for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
		count += strstr(line, word) != NULL;
	return count;
}

/*
 * How many threads there are, of those with the word in their names. A worker is named after
 * the queue whose work it did last, also when the queue is gone.
 */
static int threads_with(const char *word)
{
	struct dirent *entry;
	DIR *proc = opendir("/proc");
	char path[300];
	int count = 0;

	while (proc && (entry = readdir(proc))) {
		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		if (isdigit((unsigned char)entry->d_name[0]) && !vm_read(path, text, sizeof(text)))
			count += strstr(text, word) && strncmp(text, "kworker/", 8);
	}
	if (proc)
		closedir(proc);
	return count;
}

/* Interrupts of all CPUs within half a second, at the quietest of some. */
static long quietest(void)
{
	long least = -1, before, now;

	for (int i = 0; i < 4; i++) {
		vm_read("/proc/stat", text, sizeof(text));
		before = atol(strstr(text, "intr ") + 5);
		vm_sleep_ms(500);
		vm_read("/proc/stat", text, sizeof(text));
		now = atol(strstr(text, "intr ") + 5);
		if (least < 0 || now - before < least)
			least = now - before;
	}
	return least;
}

static long most(long without)
{
	return without + without / 2 + 20;
}

int main(void)
{
	long with, without;

	vm_ok(lines_with("/proc/modules", "coll ") == 1, "coll.ko is loaded");
	vm_ok(lines_with("/proc/timer_list", "hrtimer") > 0, "the list of timers can be read");
	vm_is(lines_with("/proc/timer_list", "[coll]"), 0, "none is coll.ko's");
	vm_ok(threads_with("kthreadd") == 1, "the threads can be read");
	vm_is(threads_with("coll"), 0, "none is coll.ko's");
	vm_is(lines_with("/proc/interrupts", "coll"), 0, "nor is an interrupt");

	with = quietest();
	vm_is(vm_unload(), 0, "unloaded");
	without = quietest();
	vm_is(vm_load(""), 0, "loaded again");
	if (with > most(without)) {	/* what a test before left may have come to rest only now */
		vm_note("%ld interrupts in half a second with it, and again:", with);
		with = quietest();
	}
	vm_note("%ld interrupts in half a second with it, %ld without", with, without);
	vm_ok(with <= most(without), "no more interrupts than without it");
	return vm_end();
}
