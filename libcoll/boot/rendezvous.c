// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The rendezvous file. It is where nobody else can write, if this user has such a place. Else it
 * is in /tmp: so owner and mode are checked on the opened descriptor, and symbolic links are not
 * followed.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <nettle/base16.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "job.h"

static int check_ours(int fd, const char *path, const struct coll_boot_reason *why)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (st.st_uid != geteuid() || st.st_mode & 077)
		return coll_boot_fail(why, -EPERM,
				      "%s must belong to this user and be closed to all "
				      "others (it has owner %u, mode %03o): remove it, or set "
				      "XDG_RUNTIME_DIR",
				      path, st.st_uid, st.st_mode & 0777);
	return 0;
}

static int open_ours(const char *path, int flags, const struct coll_boot_reason *why)
{
	int fd, err;

	fd = open(path, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return errno == ELOOP || errno == ENOTDIR || errno == EACCES ?
		       coll_boot_fail(why, -EPERM, "%s is not a file of this user: %s", path,
				      strerror(errno)) :
		       -errno;
	err = check_ours(fd, path, why);
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

static int make_directory(const char *path, const struct coll_boot_reason *why)
{
	int fd;

	if (mkdir(path, 0700) && errno != EEXIST)
		return coll_boot_fail(why, -EPERM, "cannot make %s: %s", path, strerror(errno));
	fd = open_ours(path, O_RDONLY | O_DIRECTORY, why);
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

/* Different names stay different: a character that a file name cannot have becomes %XX. */
static void rendezvous_escape(char *to, const char *from)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789._-";

	for (; *from; from++)
		to += sprintf(to, strchr(plain, *from) ? "%c" : "%%%02X", (unsigned char)*from);
	*to = '\0';
}

/* ---- its folder ---------------------------------------------------------- */

enum { FOLDER_MAX = 256 };

/* Only this user can have put something there. */
static bool is_private(const char *folder)
{
	struct stat st;

	return !stat(folder, &st) && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	       !(st.st_mode & 022) && !access(folder, W_OK);
}

/* ~/.cache of the user's entry: HOME may differ between the ranks. */
static bool find_cache(char folder[FOLDER_MAX])
{
	struct passwd user, *found = NULL;
	char text[4096];

	return !getpwuid_r(geteuid(), &user, text, sizeof(text), &found) && found &&
	       is_private(user.pw_dir) &&
	       snprintf(folder, FOLDER_MAX, "%s/.cache", user.pw_dir) < FOLDER_MAX &&
	       (!mkdir(folder, 0700) || errno == EEXIST) && is_private(folder);
}

/*
 * The first folder in which no other user can take a name before. All ranks find the same: they
 * are of one user, on one node. A home may be that of many nodes: so the file's name ends in
 * `node`.
 */
static int find_folder(char folder[FOLDER_MAX], char node[HOST_NAME_MAX + 2],
		       const struct coll_boot_reason *why)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	char parent[FOLDER_MAX];
	int n;

	*node = '\0';
	snprintf(parent, sizeof(parent), "/run/user/%u", geteuid());
	if (runtime && *runtime == '/' && is_private(runtime)) {
		n = snprintf(folder, FOLDER_MAX, "%s/coll", runtime);
	} else if (is_private(parent)) {
		n = snprintf(folder, FOLDER_MAX, "%s/coll", parent);
	} else if (find_cache(parent)) {
		n = snprintf(folder, FOLDER_MAX, "%s/coll", parent);
		*node = '@';
		gethostname(node + 1, HOST_NAME_MAX);
		node[HOST_NAME_MAX + 1] = '\0';
	} else {
		n = snprintf(folder, FOLDER_MAX, "/tmp/coll-%u", geteuid());
	}
	return n < FOLDER_MAX ? 0 :
	       coll_boot_fail(why, -EINVAL, "the folder of the rendezvous file has a name of %d "
			      "characters; valid: up to %d; set XDG_RUNTIME_DIR to a shorter one",
			      n, FOLDER_MAX - 1);
}

int coll_rendezvous_name(struct coll_rendezvous *file, const char *job,
			 const struct coll_boot_reason *why)
{
	char folder[FOLDER_MAX], name[3 * 64], node[HOST_NAME_MAX + 2];
	int err = find_folder(folder, node, why);

	if (!err)
		err = make_directory(folder, why);
	if (err)
		return err;
	rendezvous_escape(name, job);
	if (snprintf(file->path, sizeof(file->path), "%s/job-%s%s", folder, name, node) >=
	    (int)sizeof(file->path))
		return coll_boot_fail(why, -EINVAL, "the name of job '%s' is too long", job);
	return 0;
}

/* ---- the file -------------------------------------------------------------- */

static int rendezvous_parse(char *text, char *address, uint8_t *secret)
{
	struct base16_decode_ctx decode;
	size_t bytes = COLL_SECRET_BYTES;
	char *space = strchr(text, ' ');

	if (!space || space - text >= COLL_STORE_ADDRESS_MAX ||
	    strspn(space + 1, "0123456789abcdef") != 2 * COLL_SECRET_BYTES)
		return -ENOENT;	/* incomplete: as if it did not exist */
	*space = '\0';
	strcpy(address, text);
	base16_decode_init(&decode);
	return base16_decode_update(&decode, &bytes, secret, 2 * COLL_SECRET_BYTES, space + 1) ?
	       0 : -ENOENT;
}

int coll_rendezvous_read(const struct coll_rendezvous *file, char address[COLL_STORE_ADDRESS_MAX],
			 uint8_t secret[COLL_SECRET_BYTES], const struct coll_boot_reason *why)
{
	char text[COLL_STORE_ADDRESS_MAX + 2 * COLL_SECRET_BYTES + 8];
	ssize_t n;
	int fd;

	fd = open_ours(file->path, O_RDONLY, why);
	if (fd < 0)
		return fd;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	return rendezvous_parse(text, address, secret);
}

static int write_text(int fd, const char *text)
{
	ssize_t n = write(fd, text, strlen(text));

	if (n < 0)
		return -errno;
	return n == (ssize_t)strlen(text) ? 0 : -ENOSPC;
}

int coll_rendezvous_write(const struct coll_rendezvous *file, const char *address,
			  const uint8_t secret[COLL_SECRET_BYTES],
			  const struct coll_boot_reason *why)
{
	char text[COLL_STORE_ADDRESS_MAX + 2 * COLL_SECRET_BYTES + 8];
	char hex[2 * COLL_SECRET_BYTES + 1] = "";
	char fresh[sizeof(file->path) + 8];
	int fd, err;

	base16_encode_update(hex, COLL_SECRET_BYTES, secret);
	snprintf(text, sizeof(text), "%s %s\n", address, hex);
	snprintf(fresh, sizeof(fresh), "%s.XXXXXX", file->path);
	fd = mkostemp(fresh, O_CLOEXEC);
	if (fd < 0)
		return coll_boot_fail(why, -EPERM, "cannot make %s: %s", fresh, strerror(errno));
	err = write_text(fd, text);
	close(fd);
	if (!err && rename(fresh, file->path))
		err = -errno;
	if (err)
		unlink(fresh);
	return err;
}

/* Only if it still has this address: a later job may have replaced it. */
void coll_rendezvous_remove(const struct coll_rendezvous *file, const char *address)
{
	const struct coll_boot_reason silent = { NULL, 0 };
	char now[COLL_STORE_ADDRESS_MAX];
	uint8_t secret[COLL_SECRET_BYTES];

	if (!coll_rendezvous_read(file, now, secret, &silent) && !strcmp(now, address))
		unlink(file->path);
}
