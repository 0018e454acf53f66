// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The file of what is wanted or was moved, for undoing. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pinning.h"

static const char magic[] = "coll pin 1\n";

static void pinning_path(const char *directory, const char *name, char path[4096])
{
	snprintf(path, 4096, "%s/%s", directory, name);
}

/* A task names itself: what it calls itself is no line of its own. */
static void pinning_name(const struct node_pin *pin, char name[sizeof(pin->name)])
{
	size_t i;

	for (i = 0; pin->name[i]; i++)
		name[i] = iscntrl((unsigned char)pin->name[i]) ? '?' : pin->name[i];
	name[i] = 0;
}

static void pinning_print(const struct node_pin *pin, FILE *to)
{
	char name[sizeof(pin->name)];

	if (pin->state != NODE_PIN_WANTED && pin->state != NODE_PIN_MOVED)
		return;
	pinning_name(pin, name);
	fprintf(to, "%s %u %llu %s %s %s\n", node_pin_kind_name(pin->kind), pin->number,
		(unsigned long long)pin->born, pin->before, pin->after, name);
}

int node_pinning_save(const struct node_pinning *pinning, const char *directory, bool anew)
{
	char path[4096], part[4096];
	FILE *to;
	bool good;
	u32 i;

	pinning_path(directory, "pin.state", path);
	pinning_path(directory, "pin.state.part", part);
	if (!mkdir(directory, 0755))
		chmod(directory, 0755);
	if (!anew && !access(path, F_OK))
		return -EEXIST;
	to = fopen(part, "we");
	if (!to)
		return -errno;
	fputs(magic, to);
	for (i = 0; i < pinning->count; i++)
		pinning_print(&pinning->pin[i], to);
	good = !fflush(to) && !fsync(fileno(to));
	if (fclose(to) || !good || rename(part, path))
		return errno ? -errno : -EIO;
	return 0;
}

int node_pinning_append(const struct node_pinning *pinning, u32 from, const char *directory)
{
	char path[4096];
	FILE *to;
	bool good;

	pinning_path(directory, "pin.state", path);
	to = fopen(path, "r+e");	/* not "a", which makes one */
	if (!to)
		return -errno;
	good = !fseek(to, 0, SEEK_END);
	for (; from < pinning->count; from++)
		pinning_print(&pinning->pin[from], to);
	good = good && !fflush(to) && !fsync(fileno(to));
	return fclose(to) || !good ? -EIO : 0;
}

/* The only files that this ever writes to. */
static bool is_allowed(const struct node_pin *pin)
{
	if (pin->kind == NODE_PIN_FILE)
		return !strcmp(pin->name, node_pin_workqueues) || !strcmp(pin->name, node_pin_default_irq);
	return pin->kind != NODE_PIN_FREEZER || (*pin->name == '/' && !strstr(pin->name, "/.."));
}

static int pinning_parse(struct node_pinning *pinning, const char *line)
{
	struct node_pin pin = { .state = NODE_PIN_MOVED };
	char kind[9], *before = malloc(NODE_CPUS_TEXT), *after = malloc(NODE_CPUS_TEXT);
	unsigned long long born;
	int name = 0, status = -EINVAL;

	if (before && after && strlen(line) < NODE_CPUS_TEXT &&
	    sscanf(line, "%8s %u %llu %s %s %n", kind, &pin.number, &born, before, after, &name) ==
		    5 && name) {
		pin.kind = node_pin_kind_read(kind);
		pin.born = born;
		snprintf(pin.name, sizeof(pin.name), "%.*s", (int)strcspn(line + name, "\n"),
			 line + name);
		if (pin.kind != NODE_PIN_KINDS && is_allowed(&pin))
			status = node_pinning_add(pinning, &pin, before, after) ? 0 : -ENOMEM;
	}
	free(before);
	free(after);
	return status;
}

int node_pinning_load(struct node_pinning *pinning, const char *directory)
{
	char path[4096], *line = NULL;
	size_t room = 0;
	FILE *from;
	int status = 0;

	*pinning = (struct node_pinning){ .count = 0 };
	pinning_path(directory, "pin.state", path);
	from = fopen(path, "re");
	if (!from)
		return -errno;
	if (getline(&line, &room, from) < 0 || strcmp(line, magic))
		status = -EINVAL;
	/* Without its end: nothing was done yet of what it says. */
	while (!status && getline(&line, &room, from) > 0 && strchr(line, '\n'))
		status = pinning_parse(pinning, line);
	if (!status && !feof(from))	/* not its end: no memory, or a line that no text is */
		status = -EIO;
	free(line);
	fclose(from);
	return status;
}

int node_pinning_forget(const char *directory)
{
	char path[4096];

	pinning_path(directory, "pin.state.part", path);
	unlink(path);
	pinning_path(directory, "pin.state", path);
	return unlink(path) ? -errno : 0;
}
