// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <fcntl.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "observation.h"

enum { OF_NODE_MOST = 4096 };	/* observations of one file */

static bool observed_longer(const struct coll_flight_observed *a,
			    const struct coll_flight_observed *b)
{
	return a->until - a->since >= b->until - b->since;
}

static bool is_of_page(const struct coll_flight_observation *one,
		       const struct coll_flight_page *page)
{
	return page->rank == one->rank && page->opened == one->opened && page->pid == one->pid;
}

void coll_flight_observation_take(struct coll_flight_set *set, struct coll_flight_observation *one)
{
	size_t i;

	coll_flight_observed_clean(&one->observed);
	for (i = 0; i < set->count; i++)
		if (is_of_page(one, &set->seen[i]->page) &&
		    observed_longer(&one->observed, &set->seen[i]->observed))
			set->seen[i]->observed = one->observed;
}

static bool read_one(int fd, struct coll_flight_observation *one)
{
	return read(fd, one, sizeof(*one)) == sizeof(*one) &&
	       one->magic == COLL_FLIGHT_OBSERVED_MAGIC && one->version == COLL_FLIGHT_VERSION;
}

static int open_observations(int folder, const char *name)
{
	return openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
}

/* A file of the system's colld, or of this user's. */
static int open_of_colld(const char *path)
{
	const int fd = open_observations(AT_FDCWD, path);
	struct stat file;

	if (fd < 0 || (!fstat(fd, &file) && S_ISREG(file.st_mode) &&
		       (!file.st_uid || file.st_uid == geteuid())))
		return fd;
	close(fd);
	return -1;
}

void coll_flight_observation_read(struct coll_flight_set *set, int folder, const char *name,
				  const char *job)
{
	const int fd = open_observations(folder, name);
	struct coll_flight_observation one;
	uint32_t count = 0;

	while (fd >= 0 && count++ < OF_NODE_MOST && read_one(fd, &one))
		if (!job || !strncmp(one.job, job, sizeof(one.job)))
			coll_flight_observation_take(set, &one);
	if (fd >= 0)
		close(fd);
}

/* ---- colld's ------------------------------------------------------------------- */

static void path_of(const char *folder, uid_t uid, const char *end, char path[512])
{
	snprintf(path, 512, "%s/%u%s", folder, uid, end);
}

void coll_flight_observation_colld(struct coll_flight_set *set)
{
	char path[512];

	path_of(COLL_FLIGHT_OBSERVED_FOLDER, geteuid(), "", path);
	coll_flight_observation_read(set, AT_FDCWD, path, NULL);
}

bool coll_flight_observation_of(const struct coll_flight_page *page,
				struct coll_flight_observation *one)
{
	uint32_t count = 0;
	bool found = false;
	char path[512];
	int fd;

	path_of(COLL_FLIGHT_OBSERVED_FOLDER, geteuid(), "", path);
	fd = open_of_colld(path);
	while (fd >= 0 && !found && count++ < OF_NODE_MOST && read_one(fd, one))
		found = is_of_page(one, page) && !strncmp(one->job, page->job, sizeof(one->job));
	if (fd >= 0)
		close(fd);
	return found;
}

/* As the kernel takes it, where the machine is little-endian. */
struct read_by_one {
	struct posix_acl_xattr_header header;
	struct posix_acl_xattr_entry entry[5];
};

/*
 * It stays colld's: a file of the user's own, in a file system of memory, could be filled by the user. The
 * mask is what ls shows for the group; the group itself may nothing.
 */
static int let_read(int fd, uid_t uid)
{
	const struct read_by_one rights = {
		.header.a_version = POSIX_ACL_XATTR_VERSION,
		.entry = {
			{ ACL_USER_OBJ, ACL_READ, ACL_UNDEFINED_ID }, { ACL_USER, ACL_READ, uid },
			{ ACL_GROUP_OBJ, 0, ACL_UNDEFINED_ID }, { ACL_MASK, ACL_READ, ACL_UNDEFINED_ID },
			{ ACL_OTHER, 0, ACL_UNDEFINED_ID },
		},
	};

	if (uid == geteuid())
		return 0;
	return fsetxattr(fd, "system.posix_acl_access", &rights, sizeof(rights), 0) ? -errno : 0;
}

/* The user may read it before it has its name. */
static int write_for(const char *beside, uid_t uid, const struct coll_flight_observation *all,
		     uint32_t count)
{
	const ssize_t bytes = count * sizeof(*all);
	int fd, error = 0;

	unlink(beside);
	fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);
	if (fd < 0)
		return -errno;
	if (write(fd, all, bytes) != bytes)
		error = -EIO;
	if (!error)
		error = let_read(fd, uid);
	close(fd);
	return error;
}

int coll_flight_observation_leave(const char *folder, uid_t uid,
				  const struct coll_flight_observation *all, uint32_t count)
{
	char path[512], beside[512];
	int error;

	path_of(folder, uid, "", path);
	path_of(folder, uid, ".part", beside);
	error = write_for(beside, uid, all, count);
	if (!error && rename(beside, path))
		error = -errno;
	if (error)
		unlink(beside);
	return error;
}

void coll_flight_observation_remove(const char *folder, uid_t uid)
{
	char path[512];

	path_of(folder, uid, "", path);
	unlink(path);
}
