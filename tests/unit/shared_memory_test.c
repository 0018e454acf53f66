// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Memory that a peer hands over (libcoll/transport/shared_memory.h): what make() makes is taken, and
 * nothing else. What is refused is closed, and nothing of it stays mapped.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "libcoll/base/descriptors.h"
#include "libcoll/engine/memory.h"
#include "libcoll/transport/shared_memory.h"

enum { TIMES = 1000, RING = 16 << 10, RING_MOST = 256 << 10, OURS = F_SEAL_SHRINK | F_SEAL_GROW,
       BIG = 1 << 30 };

static struct coll_context context;
static struct coll_boot boot = { .ranks = 2, .local_ranks = 2 };
static int fds[2];			/* from the peer, to this process */
static int files, mappings;		/* before the test */

/* ---- what this process has -------------------------------------------------------------- */

static int files_open(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int count = 0;

	assert_non_null(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

/* Of any memfd: they have no other name. */
static int files_mapped(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	int count = 0;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		count += !!strstr(line, "/memfd:");
	fclose(maps);
	return count;
}

static int begin(void **state)
{
	(void)state;
	context.boot = &boot;
	files = files_open();
	mappings = files_mapped();
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(files_open(), files);
	assert_int_equal(files_mapped(), mappings);
	return 0;
}

/* ---- a peer ------------------------------------------------------------------------------ */

static int memfd_of(uint64_t bytes, int seals)
{
	const int fd = memfd_create("peer", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, bytes), 0);
	assert_true(bytes > BIG || coll_file_fill(fd, bytes));
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

/* With these descriptors, which are closed here. */
static void peer_sends(int *given, int count)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(4 * sizeof(int))];
	} control = { .header = { .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
				  .cmsg_len = CMSG_LEN(count * sizeof(int)) } };
	struct iovec byte = { "x", 1 };
	struct msghdr message = { .msg_iov = &byte, .msg_iovlen = 1, .msg_control = &control,
				  .msg_controllen = CMSG_SPACE(count * sizeof(int)) };

	memcpy(CMSG_DATA(&control.header), given, count * sizeof(int));
	assert_int_equal(sendmsg(fds[0], &message, MSG_NOSIGNAL), 1);
	while (count)
		close(given[--count]);
}

static void peer_sends_one(int fd)
{
	peer_sends(&fd, 1);
}

/* What came, by as many calls as it took the peer. */
static int received(int messages)
{
	int fd = -1;
	char byte;

	while (messages--)
		assert_int_equal(coll_recv_with_descriptor(fds[1], &byte, 1, &fd), 1);
	return fd;
}

static void assert_taken(int fd)
{
	struct coll_memory *memory = coll_shared_memory_take(fd);

	assert_non_null(memory);
	assert_int_equal(files_mapped(), mappings + 1);
	coll_memory_free(memory);
}

/* Both know it: the bytes go over the socket. */
static void assert_refused(int fd)
{
	assert_null(coll_shared_memory_take(fd));
}

/* ---- tests -------------------------------------------------------------------------------- */

static void what_make_makes_is_taken(void **state)
{
	struct coll_memory *memory;
	int fd;

	(void)state;
	for (boot.local_ranks = 2; boot.local_ranks <= 1024; boot.local_ranks *= 4) {
		memory = coll_shared_memory_make(&context, &fd);
		assert_non_null(memory);
		assert_int_equal(coll_send_with_descriptor(fds[0], "x", 1, fd), 1);
		close(fd);
		coll_memory_free(memory);
		assert_taken(received(1));
	}
	boot.local_ranks = 2;
}

static void tick(int signal)
{
	(void)signal;
}

/* What io_uring has to tell a thread interrupts its system calls as well. */
static void signals_do_not_stop_it(void **state)
{
	static const struct sigaction ticks = { .sa_handler = tick, .sa_flags = SA_RESTART },
				      as_before = { .sa_handler = SIG_DFL };
	static const struct itimerval often = { { 0, 400 }, { 0, 400 } }, never;
	int i, fd, made = 0;

	(void)state;
	sigaction(SIGALRM, &ticks, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (i = 0; i < TIMES; i++) {
		struct coll_memory *memory = coll_shared_memory_make(&context, &fd);

		made += !!memory;
		close(fd);
		coll_memory_free(memory);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	sigaction(SIGALRM, &as_before, NULL);
	assert_int_equal(made, TIMES);
}

static void none(void **state)
{
	(void)state;
	assert_int_equal(coll_send_with_descriptor(fds[0], "x", 1, -1), 1);
	assert_refused(received(1));
}

/* It is mapped as far as a ring goes: to read it beyond its end would kill this process. */
static void one_that_is_short(void **state)
{
	static const uint64_t missing[] = { 1, 4096, RING, 2 * RING };
	const uint64_t all = coll_memory_bytes(RING);
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(missing) / sizeof(*missing); i++) {
		peer_sends_one(memfd_of(all - missing[i], OURS));
		assert_refused(received(1));
	}
	peer_sends_one(memfd_of(0, OURS));
	assert_refused(received(1));
}

static void one_of_another_size(void **state)
{
	static const uint64_t rings[] = { RING / 2, RING + 128, 2 * RING_MOST, 1ull << 40 };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rings) / sizeof(*rings); i++) {
		peer_sends_one(memfd_of(coll_memory_bytes(rings[i]), OURS));
		assert_refused(received(1));
	}
}

/* What can shrink later is as bad as what is short now; and so is what cannot be sealed. */
static void one_without_a_seal(void **state)
{
	static const int seals[] = { 0, OURS & ~F_SEAL_SHRINK, OURS & ~F_SEAL_GROW,
				     OURS | F_SEAL_SEAL, F_SEAL_SEAL };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(seals) / sizeof(*seals); i++) {
		peer_sends_one(memfd_of(coll_memory_bytes(RING), seals[i]));
		assert_refused(received(1));
	}
}

/* A page of it may be missing: who touches it would have to find one. */
static void one_with_a_hole(void **state)
{
	const uint64_t all = coll_memory_bytes(RING), page = sysconf(_SC_PAGESIZE);
	uint64_t at;
	int fd;

	(void)state;
	for (at = 0; at < all; at += page) {
		fd = memfd_of(all, 0);
		assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, page), 0);
		/* Behind its end, which counts for nothing. */
		assert_int_equal(fallocate(fd, FALLOC_FL_KEEP_SIZE, all + 2 * page, 2 * page), 0);
		assert_int_equal(fcntl(fd, F_ADD_SEALS, OURS), 0);
		peer_sends_one(fd);
		assert_refused(received(1));
	}
}

/* Neither side can take out pages that both have mapped. */
static void both_keep_their_pages(void **state)
{
	struct coll_memory *memory, *taken;
	const size_t page = sysconf(_SC_PAGESIZE);
	void *map;
	int fd;

	(void)state;
	memory = coll_shared_memory_make(&context, &fd);
	assert_non_null(memory);
	map = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	assert_false(coll_shared_memory_is_kept(fd));
	taken = coll_shared_memory_take(dup(fd));
	assert_non_null(taken);
	assert_true(coll_shared_memory_is_kept(fd));
	assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, page), -1);
	assert_int_equal(madvise(map, page, MADV_REMOVE), -1);
	assert_int_equal(errno, EPERM);
	assert_ptr_equal(mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
	munmap(map, page);
	close(fd);
	coll_memory_free(memory);
	coll_memory_free(taken);
}

/* A peer that says that it has taken it, and has done nothing but to take out a page before. */
static void what_is_not_sealed_is_not_kept(void **state)
{
	struct coll_memory *memory;
	int fd;

	(void)state;
	memory = coll_shared_memory_make(&context, &fd);
	assert_non_null(memory);
	assert_false(coll_shared_memory_is_kept(fd));
	assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, sysconf(_SC_PAGESIZE)), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, COLL_FILE_SEALS), 0);
	assert_false(coll_shared_memory_is_kept(fd));
	close(fd);
	coll_memory_free(memory);
}

static void one_that_cannot_be_written(void **state)
{
	char path[64];
	int fd;

	(void)state;
	peer_sends_one(memfd_of(coll_memory_bytes(RING), OURS | F_SEAL_WRITE));
	assert_refused(received(1));
	fd = memfd_of(coll_memory_bytes(RING), OURS);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	peer_sends_one(open(path, O_RDONLY | O_CLOEXEC));
	close(fd);
	assert_refused(received(1));
}

/* A file of the right size, which its owner may cut, and what has no size. */
static void what_is_no_memfd(void **state)
{
	FILE *file = tmpfile();
	int pipes[2];

	(void)state;
	assert_non_null(file);
	assert_int_equal(ftruncate(fileno(file), coll_memory_bytes(RING)), 0);
	peer_sends_one(dup(fileno(file)));
	fclose(file);
	assert_refused(received(1));
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	peer_sends(pipes, 1);
	close(pipes[1]);
	assert_refused(received(1));
	peer_sends_one(open("/dev/zero", O_RDWR | O_CLOEXEC));
	assert_refused(received(1));
	peer_sends_one(open("/", O_PATH | O_CLOEXEC));
	assert_refused(received(1));
	peer_sends_one(dup(fds[0]));
	assert_refused(received(1));
}

/* A peer of this library sends one. */
static void several_in_one_message(void **state)
{
	int given[4], count, i;

	(void)state;
	for (count = 2; count <= 4; count++) {
		for (i = 0; i < count; i++)
			given[i] = memfd_of(coll_memory_bytes(RING), OURS);
		peer_sends(given, count);
		assert_refused(received(1));
	}
}

/* The proof may come in pieces, and a descriptor with each. */
static void one_after_another(void **state)
{
	(void)state;
	peer_sends_one(open("/dev/null", O_RDONLY | O_CLOEXEC));
	peer_sends_one(memfd_of(coll_memory_bytes(RING), OURS));
	assert_taken(received(2));
	peer_sends_one(memfd_of(coll_memory_bytes(RING), OURS));
	peer_sends_one(memfd_of(RING, OURS));
	assert_refused(received(2));
}

/* One that cannot be received: the bytes come alone. */
static void none_can_be_had(void **state)
{
	struct rlimit limit, few;

	(void)state;
	peer_sends_one(memfd_of(coll_memory_bytes(RING), OURS));
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	few = limit;
	few.rlim_cur = 3;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_refused(received(1));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* What it cannot make is not half made. In a child: the limits stay with it. */
static void what_cannot_be_made(void **state)
{
	static const int limits[] = { RLIMIT_FSIZE, RLIMIT_NOFILE, RLIMIT_AS };
	const struct rlimit small = { 3, 3 };
	int status, fd;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
		const pid_t child = fork();

		if (!child) {
			if (setrlimit(limits[i], &small))
				_exit(2);
			_exit(coll_shared_memory_make(&context, &fd) || fd != -1);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
}

#define memory_test(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		memory_test(what_make_makes_is_taken),
		memory_test(signals_do_not_stop_it),
		memory_test(none),
		memory_test(one_that_is_short),
		memory_test(one_of_another_size),
		memory_test(one_without_a_seal),
		memory_test(one_with_a_hole),
		memory_test(both_keep_their_pages),
		memory_test(what_is_not_sealed_is_not_kept),
		memory_test(one_that_cannot_be_written),
		memory_test(what_is_no_memfd),
		memory_test(several_in_one_message),
		memory_test(one_after_another),
		memory_test(none_can_be_had),
		memory_test(what_cannot_be_made),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
