// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "find.h"
#include "libcoll/base/clock.h"
#include "libcoll/base/descriptors.h"
#include "queues.h"

#define MEMFD	"/memfd:" COLL_FLIGHT_NAME ":"
#define SOCKET	"socket:["
#define DEVICE	"/dev/coll"

enum { DESCRIPTORS_MOST = 4096 };	/* of a process of another user */

/* ---- the set ----------------------------------------------------------------- */

static bool set_room(struct coll_flight_set *set)
{
	const size_t capacity = set->capacity ? 2 * set->capacity : 16;
	struct coll_flight_seen **seen;

	if (set->count < set->capacity)
		return true;
	seen = realloc(set->seen, capacity * sizeof(*seen));
	if (!seen)
		return false;
	set->seen = seen;
	set->capacity = capacity;
	return true;
}

static int set_add(struct coll_flight_set *set, struct coll_flight_seen *seen)
{
	if (!set_room(set)) {
		free(seen);
		return -ENOMEM;
	}
	set->seen[set->count++] = seen;
	return 0;
}

/* Text of another process ends, and has nothing that a terminal obeys. */
static void clean_text(char *text, size_t bytes)
{
	size_t i;

	text[bytes - 1] = 0;
	for (i = 0; text[i]; i++)
		if (text[i] < ' ' || text[i] > '~')
			text[i] = '?';
}

/* Numbers that the page uses as indices. All others are only shown. */
static bool page_valid(const struct coll_flight_page *page)
{
	uint32_t i;

	for (i = 0; i < COLL_FLIGHT_RUNS; i++)
		if (page->run[i].group >= COLL_FLIGHT_GROUPS ||
		    page->run[i].call >= COLL_FLIGHT_CALLS)
			return false;
	for (i = 0; i < COLL_FLIGHT_WAITS; i++)
		if (page->wait[i].run >= COLL_FLIGHT_RUNS)
			return false;
	for (i = 0; i < COLL_FLIGHT_LINKS; i++)
		if (page->link[i].group >= COLL_FLIGHT_GROUPS)
			return false;
	for (i = 0; i < COLL_FLIGHT_TIMED; i++)
		if (page->timed[i].exchanges > COLL_FLIGHT_EXCHANGES)
			return false;
	return page->ranks && page->rank < page->ranks && page->waits <= COLL_FLIGHT_WAITS &&
	       page->links <= COLL_FLIGHT_LINKS;
}

static bool page_clean(struct coll_flight_page *page)
{
	uint32_t i;

	if (page->magic != COLL_FLIGHT_MAGIC || page->version != COLL_FLIGHT_VERSION ||
	    page->bytes != sizeof(*page) || !page_valid(page))
		return false;
	clean_text(page->job, sizeof(page->job));
	clean_text(page->program, sizeof(page->program));
	clean_text(page->host, sizeof(page->host));
	clean_text(page->progress, sizeof(page->progress));
	clean_text(page->engine, sizeof(page->engine));
	for (i = 0; i < COLL_FLIGHT_GROUPS; i++)
		clean_text(page->group[i].text, sizeof(page->group[i].text));
	for (i = 0; i < COLL_FLIGHT_CALLS; i++)
		clean_text(page->call[i].algo, sizeof(page->call[i].algo));
	return true;
}

bool coll_flight_is_time(uint64_t ns)
{
	return ns <= 100 * COLL_DEADLINE_MAX;
}

bool coll_flight_observed_fits(const struct coll_flight_observed *observed)
{
	uint32_t i;

	for (i = 0; i < COLL_FLIGHT_TAKERS; i++)
		if (!coll_flight_is_time(observed->taker[i].ns))
			return false;
	return coll_flight_is_time(observed->until) && observed->since <= observed->until &&
	       coll_flight_is_time(observed->cost) && coll_flight_is_time(observed->ran) &&
	       coll_flight_is_time(observed->waited) && coll_flight_is_time(observed->inside) &&
	       coll_flight_is_time(observed->stolen) && coll_flight_is_time(observed->counted);
}

void coll_flight_observed_clean(struct coll_flight_observed *observed)
{
	uint32_t i;

	if (!coll_flight_observed_fits(observed))
		*observed = (struct coll_flight_observed){ .since = 0 };
	if (observed->source >= COLL_FLIGHT_SOURCES)
		observed->source = COLL_FLIGHT_BY_USER;
	for (i = 0; i < COLL_FLIGHT_TAKERS; i++) {
		if (observed->taker[i].kind >= COLL_FLIGHT_TAKER_KINDS)
			observed->taker[i].kind = COLL_FLIGHT_TAKER_OTHERS;
		clean_text(observed->taker[i].name, sizeof(observed->taker[i].name));
		clean_text(observed->taker[i].cgroup, sizeof(observed->taker[i].cgroup));
	}
}

static void process_clean(struct coll_flight_seen *seen)
{
	clean_text(seen->wchan, sizeof(seen->wchan));
	clean_text(seen->owner_wchan, sizeof(seen->owner_wchan));
	clean_text(seen->tracer_name, sizeof(seen->tracer_name));
	coll_flight_observed_clean(&seen->observed);
}

int coll_flight_add(struct coll_flight_set *set, const void *bytes, size_t size)
{
	struct coll_flight_seen *seen;

	if (size != sizeof(*seen))
		return -EPROTO;
	seen = malloc(sizeof(*seen));
	if (!seen)
		return -ENOMEM;
	memcpy(seen, bytes, size);
	process_clean(seen);
	if (seen->magic == COLL_FLIGHT_MAGIC && seen->version == COLL_FLIGHT_VERSION &&
	    seen->bytes == sizeof(*seen) && page_clean(&seen->page))
		return set_add(set, seen);
	free(seen);
	return -EPROTO;
}

void coll_flight_free(struct coll_flight_set *set)
{
	while (set->count)
		free(set->seen[--set->count]);
	free(set->seen);
	memset(set, 0, sizeof(*set));
}

static int by_rank(const struct coll_flight_page *a, const struct coll_flight_page *b)
{
	const int job = strcmp(a->job, b->job);

	if (job)
		return job;
	return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* Of the rank's own and a child's of the same page, the rank's comes first. */
static int by_rank_and_age(const void *left, const void *right)
{
	const struct coll_flight_seen *a = *(struct coll_flight_seen *const *)left;
	const struct coll_flight_seen *b = *(struct coll_flight_seen *const *)right;
	const int rank = by_rank(&a->page, &b->page);

	if (rank || a->page.opened == b->page.opened)
		return rank ? rank : (int)(a->flags & COLL_FLIGHT_ENDED) - (int)(b->flags & COLL_FLIGHT_ENDED);
	return a->page.opened > b->page.opened ? -1 : 1;
}

/* A host with two names, a dump that is given twice, a job of an earlier one's name. */
static void forget_twins(struct coll_flight_set *set)
{
	size_t from, to = 0;

	for (from = 0; from < set->count; from++) {
		struct coll_flight_seen *seen = set->seen[from];

		if (to && !by_rank(&seen->page, &set->seen[to - 1]->page))
			free(seen);
		else
			set->seen[to++] = seen;
	}
	set->count = to;
}

void coll_flight_sort(struct coll_flight_set *set)
{
	if (set->count)
		qsort(set->seen, set->count, sizeof(*set->seen), by_rank_and_age);
	forget_twins(set);
}

size_t coll_flight_job_end(const struct coll_flight_set *set, size_t first)
{
	size_t end = first;

	while (end < set->count &&
	       !strcmp(set->seen[end]->page.job, set->seen[first]->page.job))
		end++;
	return end;
}

static void look_at_steady(struct coll_flight_seen *seen)
{
	seen->flags |= COLL_FLIGHT_OWNER_STEADY;
	if (!(seen->flags & COLL_FLIGHT_KERNEL_THREAD) || seen->owner_state != 'R' ||
	    seen->state == 't')		/* the debugger is the cause */
		return;
	coll_flight_who_has_cpu(seen);
	process_clean(seen);
}

void coll_flight_compare(struct coll_flight_set *set, const struct coll_flight_set *before)
{
	size_t i, j;

	for (i = 0; i < set->count; i++)
		for (j = 0; j < before->count; j++) {
			struct coll_flight_seen *now = set->seen[i];
			const struct coll_flight_seen *then = before->seen[j];

			if (now->pid != then->pid || now->page.opened != then->page.opened)
				continue;
			if (now->state == then->state && now->ticks == then->ticks)
				now->flags |= COLL_FLIGHT_STEADY;
			if (now->owner_state == then->owner_state &&
			    now->owner_ticks == then->owner_ticks &&
			    !((now->flags ^ then->flags) & COLL_FLIGHT_KERNEL_THREAD))
				look_at_steady(now);
		}
}

/* ---- a process ------------------------------------------------------------------ */

/* Where the kernel keeps what memfd_create() makes. false: this process may make none. */
static bool memfd_device(dev_t *device)
{
	const int fd = coll_memory_file("coll");
	struct stat stat;
	const bool good = fd >= 0 && !fstat(fd, &stat);

	if (good)
		*device = stat.st_dev;
	if (fd >= 0)
		close(fd);
	return good;
}

/* Nothing is asked of the file's own system for that: a user's (FUSE) may not answer. */
static bool is_memfd_of(int file, uid_t owner)
{
	struct statx stat;
	dev_t device;

	return memfd_device(&device) &&
	       !statx(file, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_UID, &stat) &&
	       makedev(stat.stx_dev_major, stat.stx_dev_minor) == device &&
	       S_ISREG(stat.stx_mode) && stat.stx_uid == owner;
}

/*
 * Another user's process may give any file the name of a page, and to open some files does things:
 * a device, a FIFO. So it is looked at first.
 */
static int open_page(int folder, const char *name, uid_t owner)
{
	const int file = openat(folder, name, O_PATH | O_CLOEXEC);
	char path[32];
	int fd = -1;

	if (file < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	if (is_memfd_of(file, owner))
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	close(file);
	return fd;
}

static void found_link(struct coll_flight_found *found, int folder, uid_t owner, const char *name,
		       const char *link)
{
	if (!strncmp(link, SOCKET, strlen(SOCKET)) && found->sockets < FLIGHT_SOCKETS_MAX)
		found->socket[found->sockets++] = strtoull(link + strlen(SOCKET), NULL, 10);
	if (!strcmp(link, DEVICE))
		found->device = atoi(name);
	if (found->page < 0 && !strncmp(link, MEMFD, strlen(MEMFD)))
		found->page = open_page(folder, name, owner);
}

/* A page is of the user that the process is of. -EACCES: this one may not look into it. */
static int read_descriptors(int process, struct coll_flight_found *found)
{
	const int folder = openat(process, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *entries = folder < 0 ? NULL : fdopendir(folder);
	const int error = errno;
	struct dirent *entry;
	struct stat owner;
	char link[64];
	ssize_t length;
	size_t count = 0;

	found->page = found->device = -1;
	found->sockets = 0;
	if (!entries || fstat(process, &owner)) {
		if (entries)
			closedir(entries);
		else if (folder >= 0)
			close(folder);
		return entries ? -ESRCH : -error;
	}
	while ((!found->most || (found->page < 0 && count++ < found->most)) &&
	       (entry = readdir(entries))) {
		length = readlinkat(folder, entry->d_name, link, sizeof(link) - 1);
		if (length <= 0)
			continue;
		link[length] = 0;
		found_link(found, folder, owner.st_uid, entry->d_name, link);
	}
	closedir(entries);
	return 0;
}

/* The lists are written whole: reading again is enough, unless the rank was stopped meanwhile. */
static bool read_page(int fd, struct coll_flight_page *page)
{
	struct stat file;
	int tries = 10;

	if (fstat(fd, &file) || file.st_size != sizeof(*page))
		return false;
	do {
		if (pread(fd, page, sizeof(*page), 0) != sizeof(*page))
			return false;
	} while (page->sequence & 1 && --tries);
	if (page->sequence & 1)
		page->waits = page->links = 0;
	return true;
}

/* Its pid where the page was made: the last one of NSpid. */
static uint32_t own_pid(int process, uint32_t pid)
{
	const int fd = openat(process, "status", O_RDONLY | O_CLOEXEC);
	char text[4096], *line, *end;
	ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	text[length < 0 ? 0 : length] = 0;
	line = strstr(text, "\nNSpid:");
	if (!line)
		return pid;
	end = strchrnul(line + 1, '\n');
	*end = 0;
	while (end > line && !isspace((unsigned char)end[-1]))
		end--;
	return strtoul(end, NULL, 10);
}

static uint64_t find_clock(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * COLL_SECOND + time.tv_nsec;
}

static struct coll_flight_seen *seen_make(uint32_t pid)
{
	struct coll_flight_seen *seen = calloc(1, sizeof(*seen));

	if (!seen)
		return NULL;
	seen->magic = COLL_FLIGHT_MAGIC;
	seen->version = COLL_FLIGHT_VERSION;
	seen->bytes = sizeof(*seen);
	seen->pid = pid;
	return seen;
}

/*
 * A rank's page is in its children too: the rank's own counts, if it lives. Returns what stands for the
 * rank; NULL: the set has none yet.
 */
struct coll_flight_seen *coll_flight_take_over(struct coll_flight_set *set,
					       const struct coll_flight_seen *seen)
{
	size_t i;

	for (i = 0; i < set->count; i++) {
		struct coll_flight_seen *other = set->seen[i];

		if (other->page.pid != seen->page.pid || other->page.opened != seen->page.opened ||
		    other->page.rank != seen->page.rank || strcmp(other->page.job, seen->page.job))
			continue;
		if (!(seen->flags & COLL_FLIGHT_ENDED))
			memcpy(other, seen, sizeof(*other));
		return other;
	}
	return NULL;
}

/* NULL: no memory, of another version (`foreign` counts it), or of another job. */
static struct coll_flight_seen *seen_read(int process, uint32_t pid, int page, const char *job,
					  uint32_t *foreign, int *error)
{
	struct coll_flight_seen *seen = seen_make(pid);

	*error = seen ? 0 : -ENOMEM;
	if (!seen)
		return NULL;
	if (!read_page(page, &seen->page) || !page_clean(&seen->page))
		++*foreign;
	else if (!job || !strcmp(job, seen->page.job)) {
		if (own_pid(process, pid) != seen->page.pid)
			seen->flags |= COLL_FLIGHT_ENDED;
		return seen;
	}
	free(seen);
	return NULL;
}

/* A look at all processes. */
struct look {
	struct coll_flight_set *set;
	const char *job;		/* or NULL */
	struct coll_flight_found found;	/* in the process it is at */
	struct coll_flight_sockets sockets;
};

static int take_page(struct look *look, int process, uint32_t pid)
{
	struct coll_flight_set *set = look->set;
	int error;
	struct coll_flight_seen *other, *seen =
		seen_read(process, pid, look->found.page, look->job, &set->foreign, &error);
	bool lives;

	if (!seen)
		return error;
	lives = !(seen->flags & COLL_FLIGHT_ENDED);
	seen->time = find_clock(CLOCK_MONOTONIC);
	seen->realtime = find_clock(CLOCK_REALTIME);
	if (lives)
		coll_flight_look(seen, &look->found);
	process_clean(seen);
	other = coll_flight_take_over(set, seen);
	if (other) {
		free(seen);
		seen = other;
	} else {
		error = set_add(set, seen);
	}
	if (lives && !error)
		coll_flight_sockets_add(&look->sockets, seen, &look->found);
	return error;
}

/* A process of the user, open; -1: it is not one, or has ended. */
static int open_process(int proc, const char *name, uid_t uid)
{
	const int process = openat(proc, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat owner;

	if (process < 0 || (!fstat(process, &owner) && (owner.st_uid == uid || uid == COLL_FLIGHT_ANY_USER)))
		return process;
	close(process);
	return -1;
}

static int look_at(struct look *look, int proc, const char *name)
{
	const int process = open_process(proc, name, geteuid());
	int error;

	if (process < 0)
		return 0;
	error = read_descriptors(process, &look->found);
	if (error == -EACCES || error == -EPERM)
		look->set->hidden++;
	error = 0;
	if (look->found.page >= 0) {
		error = take_page(look, process, strtoul(name, NULL, 10));
		close(look->found.page);
	}
	close(process);
	return error;
}

int coll_flight_find(struct coll_flight_set *set, const char *job)
{
	struct look *look = calloc(1, sizeof(*look));
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	int error = look && proc ? 0 : look ? -errno : -ENOMEM;

	if (look) {
		look->set = set;
		look->job = job;
	}
	while (!error && (entry = readdir(proc)))
		if (isdigit((unsigned char)entry->d_name[0]))
			error = look_at(look, dirfd(proc), entry->d_name);
	if (proc)
		closedir(proc);
	if (look)
		coll_flight_sockets_look(&look->sockets);
	free(look);
	coll_flight_sort(set);
	return error;
}

/* ---- a search for pages alone ------------------------------------------------------ */

static int tell_page(struct coll_flight_search *search, int process, uint32_t pid, int page)
{
	uint32_t foreign = 0;
	int error;
	struct coll_flight_seen *seen =
		seen_read(process, pid, page, search->job, &foreign, &error);

	if (!seen || !search->each(seen, page, search->argument))
		close(page);
	free(seen);
	return error;
}

static int search_in_process(struct coll_flight_search *search, int proc, const char *name,
			     struct coll_flight_found *found)
{
	const int process = open_process(proc, name, search->uid);
	int error = 0;

	if (process < 0)
		return 0;
	read_descriptors(process, found);
	if (found->page >= 0)
		error = tell_page(search, process, strtoul(name, NULL, 10), found->page);
	close(process);
	return error;
}

/* The kernel lists processes in the order of their numbers. */
int coll_flight_search(struct coll_flight_search *search)
{
	struct coll_flight_found *found = calloc(1, sizeof(*found));
	DIR *proc = opendir("/proc");
	const uint32_t from = search->from;
	struct dirent *entry;
	int error = found && proc ? 0 : found ? -errno : -ENOMEM;

	if (found)
		found->most = DESCRIPTORS_MOST;
	search->from = 0;
	while (!error && !search->from && (entry = readdir(proc))) {
		const uint32_t pid = strtoul(entry->d_name, NULL, 10);

		if (!pid || pid < from)
			continue;
		error = search_in_process(search, dirfd(proc), entry->d_name, found);
		if (coll_now() >= search->until)
			search->from = pid + 1;
	}
	if (proc)
		closedir(proc);
	free(found);
	return error;
}
