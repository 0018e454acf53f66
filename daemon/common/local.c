// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "local.h"
#include "log.h"

enum { BACKLOG = 1024 };

/* Linux 6.16; connections inherit it. */
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

/* 0 or -errno. */
static int make_folder(const char *path)
{
	char folder[sizeof(((struct sockaddr_un *)0)->sun_path)], *slash;

	strcpy(folder, path);
	slash = strrchr(folder, '/');
	if (!slash || slash == folder)
		return 0;
	*slash = 0;
	return mkdir(folder, 0755) && errno != EEXIST ? -errno : 0;
}

static void refuse_descriptors(int fd)
{
	setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &(int){ 0 }, sizeof(int));
}

static int listen_at(const struct sockaddr_un *address)
{
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int error = 0;

	/*
	 * A socket without a listener is left over from a colld that was killed. EAGAIN: one that does not
	 * accept has as many as may wait.
	 */
	if (!connect(probe, (const struct sockaddr *)address, sizeof(*address)) || errno == EAGAIN)
		error = -EADDRINUSE;
	else
		unlink(address->sun_path);
	close(probe);
	refuse_descriptors(fd);
	if (!error && (bind(fd, (const struct sockaddr *)address, sizeof(*address)) ||
		       chmod(address->sun_path, 0666) || listen(fd, BACKLOG)))
		error = -errno;
	if (!error)
		return fd;
	close(fd);
	return error;
}

int colld_local_listen(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = -ENAMETOOLONG, error = 0;

	if (strlen(path) < sizeof(address.sun_path)) {
		strcpy(address.sun_path, path);
		error = make_folder(path);
		fd = error ? error : listen_at(&address);
	}
	if (error)
		colld_log(LOG_ERR, "socket %s: its folder cannot be made: %s; valid: a folder that this user may write to",
			  path, strerror(-error));
	else if (fd < 0)
		colld_log(LOG_ERR, "socket %s: %s", path, strerror(-fd));
	return fd;
}

uid_t colld_local_user(int fd)
{
	struct ucred who = { .uid = (uid_t)-1 };
	socklen_t bytes = sizeof(who);

	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes);
	return who.uid;
}
