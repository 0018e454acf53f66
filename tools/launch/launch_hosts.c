// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launch_hosts.h"

#define ORDER "coll-run-order-1"

enum { ORDER_MAX = 1 << 20, RANKS_MAX = 65536, WORDS_MAX = 64 };

extern char **environ;

/* ---- the list -------------------------------------------------------------- */

static int parse_one(char *text, struct launch_host *host)
{
	char *bracket = strrchr(text, ']'), *colon = strrchr(text, ':'), *end;

	host->ranks = 1;
	if (colon && colon > bracket) {
		*colon = '\0';
		host->ranks = strtol(colon + 1, &end, 10);
		if (colon[1] < '0' || colon[1] > '9' || *end || host->ranks < 1 ||
		    host->ranks > RANKS_MAX)
			return -EINVAL;
	}
	if (*text == '[' && bracket && !bracket[1]) {
		*bracket = '\0';
		text++;
	}
	/* A name that begins with - would be an option of the remote shell. */
	if (!*text || *text == '-' || strpbrk(text, " \t'\"\\$`;&|<>()"))
		return -EINVAL;
	host->name = text;
	return 0;
}

int hosts_parse(const char *list, struct launch_host **hosts, int *count, int *ranks)
{
	char *copy = strdup(list), *text;
	size_t most = 1;
	const char *at;
	int err = 0;

	for (at = list; *at; at++)
		most += *at == ',';
	*hosts = calloc(most, sizeof(**hosts));
	*count = *ranks = 0;
	if (!copy || !*hosts)
		return -ENOMEM;
	while (!err && (text = strsep(&copy, ","))) {
		err = parse_one(text, &(*hosts)[*count]);
		(*hosts)[*count].first = *ranks;
		*ranks += (*hosts)[*count].ranks;
		++*count;
	}
	return err || *ranks > RANKS_MAX ? -EINVAL : 0;
}

int hosts_limit(struct launch_host *hosts, int count, int ranks)
{
	int i;

	for (i = 0; i < count && hosts[i].first < ranks; i++)
		if (hosts[i].first + hosts[i].ranks > ranks)
			hosts[i].ranks = ranks - hosts[i].first;
	return i;
}

/* ---- the order --------------------------------------------------------------- */

/* Strings, each with its NUL; an empty string ends them. */
static void launch_hosts_put(FILE *to, const char *key, const char *value)
{
	fprintf(to, "%s=%s", key, value);
	fputc(0, to);
}

static void put_number(FILE *to, const char *key, uint64_t number)
{
	fprintf(to, "%s=%llu", key, (unsigned long long)number);
	fputc(0, to);
}

/* The user's options of the library, but not the variables that identify this process. */
static bool is_option(const char *variable)
{
	static const char *const own[] = { "COLL_RANK=", "COLL_RANKS=", "COLL_LOCAL_", "COLL_STORE",
					   "COLL_SECRET=", "COLL_JOB=" };
	size_t i;

	if (strncmp(variable, "COLL_", 5))
		return false;
	for (i = 0; i < sizeof(own) / sizeof(*own); i++)
		if (!strncmp(variable, own[i], strlen(own[i])))
			return false;
	return true;
}

static void put_all(FILE *to, const struct launch *launch, const struct launch_host *host)
{
	char **text, *directory = getcwd(NULL, 0);

	put_number(to, "ranks", host->ranks);
	put_number(to, "first", host->first);
	put_number(to, "all", launch->ranks);
	put_number(to, "grace", launch->grace);
	put_number(to, "keep_going", launch->keep_going);
	put_number(to, "prefix", launch->prefix);
	put_number(to, "quiet", launch->quiet);
	put_number(to, "bind", launch->bind);
	if (directory)
		launch_hosts_put(to, "directory", directory);
	free(directory);
	for (text = environ; *text; text++)
		if (is_option(*text))
			launch_hosts_put(to, "env", *text);
	for (text = launch->environment; text && *text; text++)
		launch_hosts_put(to, "env", *text);
	for (text = launch->argv; *text; text++)
		launch_hosts_put(to, "arg", *text);
}

char *hosts_order(const struct launch *launch, int host, const char *store, const char *secret,
		  const char *job, size_t *bytes)
{
	char *order = NULL;
	FILE *to = open_memstream(&order, bytes);

	if (!to)
		return NULL;
	fputs(ORDER, to);
	fputc(0, to);
	launch_hosts_put(to, "store", store);
	launch_hosts_put(to, "secret", secret);
	launch_hosts_put(to, "job", job);
	put_all(to, launch, &launch->hosts[host]);
	fputc(0, to);
	if (fclose(to) || *bytes > ORDER_MAX) {
		free(order);
		return NULL;
	}
	return order;
}

/* Reads up to the empty string. The bytes after it are signals. */
static char *read_order(int fd, size_t *bytes)
{
	char *order = malloc(ORDER_MAX);
	size_t n = 0;
	ssize_t got;

	while (order && n < ORDER_MAX) {
		got = read(fd, order + n, 1);
		if (got < 0 && errno == EINTR)
			continue;
		if (got != 1)
			break;
		n++;
		if (n > 1 && !order[n - 1] && !order[n - 2]) {
			*bytes = n - 1;
			return order;
		}
	}
	free(order);
	return NULL;
}

static bool take_number(struct launch *launch, const char *key, const char *value)
{
	const uint64_t number = strtoull(value, NULL, 10);

	if (!strcmp(key, "ranks"))
		launch->ranks = number;
	else if (!strcmp(key, "first"))
		launch->first = number;
	else if (!strcmp(key, "all"))
		launch->all = number;
	else if (!strcmp(key, "grace"))
		launch->grace = number;
	else if (!strcmp(key, "keep_going"))
		launch->keep_going = number;
	else if (!strcmp(key, "prefix"))
		launch->prefix = number;
	else if (!strcmp(key, "quiet"))
		launch->quiet = number;
	else if (!strcmp(key, "bind"))
		launch->bind = number;
	else
		return false;
	return true;
}

static bool take_text(struct launch *launch, const char *key, char *value, int *variables,
		      int *words)
{
	if (!strcmp(key, "store"))
		launch->store = value;
	else if (!strcmp(key, "secret"))
		launch->secret = value;
	else if (!strcmp(key, "job"))
		launch->job = value;
	else if (!strcmp(key, "directory"))
		launch->directory = value;
	else if (!strcmp(key, "env"))
		launch->environment[(*variables)++] = value;
	else if (!strcmp(key, "arg"))
		launch->argv[(*words)++] = value;
	else
		return false;
	return true;
}

int hosts_take_order(int fd, struct launch *launch)
{
	int variables = 0, words = 0;
	size_t bytes, capacity;
	char *order = read_order(fd, &bytes), *at, *next, *value;

	if (!order || strcmp(order, ORDER))
		return -EPROTO;
	capacity = bytes / 4 + 2;		/* no string is shorter than its NUL */
	launch->environment = calloc(capacity, sizeof(char *));
	launch->argv = calloc(capacity, sizeof(char *));
	if (!launch->environment || !launch->argv)
		return -ENOMEM;
	for (at = order + sizeof(ORDER); at < order + bytes; at = next) {
		next = at + strlen(at) + 1;
		value = strchr(at, '=');
		if (!value)
			return -EPROTO;
		*value++ = '\0';
		if (!take_text(launch, at, value, &variables, &words) &&
		    !take_number(launch, at, value))
			return -EPROTO;
	}
	return launch->ranks > 0 && launch->ranks <= RANKS_MAX && launch->first >= 0 &&
	       launch->all >= launch->first + launch->ranks && words && launch->store &&
	       launch->secret && launch->job ? 0 : -EPROTO;
}

/* ---- the remote shell ---------------------------------------------------------- */

int hosts_exec(const struct launch *launch, int host, const char *words_of_coll)
{
	char *argv[WORDS_MAX + 3], *words = strdup(launch->ssh), *word, *save, *command;
	int count = 0;

	for (word = strtok_r(words, " ", &save); word && count < WORDS_MAX;
	     word = strtok_r(NULL, " ", &save))
		argv[count++] = word;
	if (!count || asprintf(&command, "exec '%s' %s", launch->coll, words_of_coll) < 0)
		return EINVAL;
	argv[count++] = (char *)launch->hosts[host].name;
	argv[count++] = command;
	argv[count] = NULL;
	execvp(argv[0], argv);
	return errno;
}
