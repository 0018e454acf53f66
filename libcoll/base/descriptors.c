// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "descriptors.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

bool coll_descriptors_raise(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur >= files.rlim_max)
		return false;
	files.rlim_cur = files.rlim_max;
	return !setrlimit(RLIMIT_NOFILE, &files);
}

bool coll_file_may_have(uint64_t bytes)
{
	struct rlimit files;

	return getrlimit(RLIMIT_FSIZE, &files) || files.rlim_cur >= bytes;
}

int coll_memory_file(const char *name)
{
	const int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	return fd < 0 && errno == EINVAL ? memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING) : fd;	/* before 6.3 */
}

/* Before Linux 6.12 a signal ends a step, which begins anew: a periodic one is not to end all of them. */
enum { FILL_STEP = 4 << 20 };

enum { STAT_BLOCK = 512 };

bool coll_file_fill(int fd, uint64_t bytes)
{
	uint64_t filled = 0, step;

	while (filled < bytes) {
		step = bytes - filled < FILL_STEP ? bytes - filled : FILL_STEP;
		if (!fallocate(fd, 0, filled, step))
			filled += step;
		else if (errno != EINTR)
			return false;
	}
	return true;
}

uint64_t coll_file_sealed(int fd, int seals)
{
	const int has = fcntl(fd, F_GET_SEALS);
	struct stat st;

	return has >= 0 && (has & seals) == seals && !fstat(fd, &st) && st.st_size > 0 ? st.st_size : 0;
}

/* Pages behind its end are not counted: they go first. Huge pages have other rules. */
bool coll_file_is_whole(int fd, uint64_t bytes)
{
	struct statfs fs;
	struct stat st;

	return !fstatfs(fd, &fs) && fs.f_type == TMPFS_MAGIC && !ftruncate(fd, bytes) && !fstat(fd, &st) &&
	       (uint64_t)st.st_blocks * STAT_BLOCK >= bytes;
}

bool coll_connection_is_unix(int fd)
{
	int domain = 0;
	socklen_t bytes = sizeof(domain);

	return !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) && domain == AF_UNIX;
}

bool coll_connection_accepts_descriptors(int fd, bool accepts)
{
	const int value = accepts;

	return !setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &value, sizeof(value));
}

union control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(sizeof(int))];
};

ssize_t coll_send_with_descriptor(int socket, const void *data, size_t bytes, int fd)
{
	union control control = { .header = { .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
					      .cmsg_len = CMSG_LEN(sizeof(int)) } };
	struct iovec iov = { (void *)data, bytes };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd >= 0) {
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
		message.msg_control = &control;
		message.msg_controllen = control.header.cmsg_len;
	}
	return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/*
 * With this length of control the kernel gives one descriptor, closes others and says that there were
 * some. Nobody of this library sends several: then there is none.
 */
ssize_t coll_recv_with_descriptor(int socket, void *data, size_t bytes, int *fd)
{
	union control control;
	struct iovec iov = { data, bytes };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
				  .msg_controllen = CMSG_LEN(sizeof(int)) };
	ssize_t got = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *header = got < 0 ? NULL : CMSG_FIRSTHDR(&message);

	if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS ||
	    header->cmsg_len != CMSG_LEN(sizeof(int)))
		return got;
	if (*fd >= 0)
		close(*fd);
	memcpy(fd, CMSG_DATA(header), sizeof(*fd));
	if (message.msg_flags & MSG_CTRUNC) {
		close(*fd);
		*fd = -1;
	}
	return got;
}
