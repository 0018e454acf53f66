// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * An optical switch in the lab. Each node has ports: veths whose other ends belong to colld's
 * `emul` switch. colld starts and ends with the lab.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/port.h"
#include "tools/circuit/circuit_socket.h"
#include "lab.h"

/*
 * colld finds node i's namespace at its fd "5" i, i from 1. A path by pid would not work: the
 * lab's /proc has other pids.
 */
enum { PATIENCE_MS = 10000, LOOK_MS = 20 };

enum { LEFT_S = 60 };		/* a lab locks its file within this time */

/* ---- the directory of colld's files ----------------------------------------- */

static FILE *setup_file;	/* open, and locked, for as long as the lab lives */

static void remove_files(const char *directory)
{
	static const char *const files[] = { "circuits", "socket" };
	char path[PATH_MAX];
	size_t i;

	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, files[i]);
		unlink(path);
	}
	rmdir(directory);
}

/* A directory of this user's that no lab is in: its lab was killed. */
static bool is_left(const char *directory)
{
	struct stat found;
	char path[PATH_MAX];
	bool left;
	int fd;

	if (lstat(directory, &found) || !S_ISDIR(found.st_mode) || found.st_uid != geteuid() ||
	    time(NULL) - found.st_mtime < LEFT_S)
		return false;
	snprintf(path, sizeof(path), "%s/circuits", directory);
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT;
	left = !flock(fd, LOCK_EX | LOCK_NB);
	close(fd);
	return left;
}

/* After SIGKILL nothing of a lab is alive that could remove its files: the next lab does. */
static void remove_left(void)
{
	glob_t found;
	size_t i;

	if (glob("/tmp/coll-lab-??????", GLOB_NOSORT, NULL, &found))
		return;
	for (i = 0; i < found.gl_pathc; i++)
		if (is_left(found.gl_pathv[i]))
			remove_files(found.gl_pathv[i]);
	globfree(&found);
}

/* ---- colld's setup ----------------------------------------------------------- */

static bool take_namespace(const struct lab *lab, uint32_t node)
{
	char number[16];
	const int fd = lab_namespace(lab, node);
	bool fine;

	if (fd < 0)
		return false;
	snprintf(number, sizeof(number), "5%u", node + 1);
	if (fd == atoi(number))
		return !fcntl(fd, F_SETFD, 0);
	fine = dup2(fd, atoi(number)) >= 0;	/* dup2: stays open in exec */
	if (!fine)
		fprintf(stderr, "coll lab: node %u's namespace: %s\n", node, strerror(errno));
	close(fd);
	return fine;
}

static bool write_setup(const struct lab *lab)
{
	char path[PATH_MAX];
	uint32_t i, k;
	FILE *to;

	snprintf(path, sizeof(path), "%s/circuits", lab->directory);
	to = setup_file = fopen(path, "we");
	if (!to || flock(fileno(to), LOCK_EX | LOCK_NB))
		return false;
	fprintf(to, "socket %s/socket\n"
		"switch emul delta=%.0fns hold=1s netns=/proc/self/fd/5%%u address=10.77.0.%%u\n",
		lab->directory, lab->set_up * 1e9);
	for (i = 0; i < lab->nodes; i++) {
		fprintf(to, "node n%u ", i);
		for (k = 0; k < lab->ports; k++)
			fprintf(to, "%s%u", k ? "," : "", i * lab->ports + k + 1);
		fputc('\n', to);
	}
	return !fflush(to);
}

/* The colld beside this program, else the system's. Never returns. */
static void exec_colld(const struct lab *lab)
{
	char setup[PATH_MAX], path[PATH_MAX];
	const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 8);
	char *slash;
	uint32_t i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (i = 0; i < lab->nodes; i++)
		if (!take_namespace(lab, i))
			_exit(1);
	snprintf(setup, sizeof(setup), "%s/circuits", lab->directory);
	path[length > 0 ? length : 0] = 0;
	slash = strrchr(path, '/');
	strcpy(slash ? slash + 1 : path, "colld");
	execl(path, "colld", "--circuits", setup, "--metrics", "0", "--state", lab->directory,
	      (char *)NULL);
	execlp("colld", "colld", "--circuits", setup, "--metrics", "0", "--state", lab->directory,
	       (char *)NULL);
	fprintf(stderr, "coll lab: cannot run colld: %s\n", strerror(errno));
	_exit(127);
}

bool lab_circuits_prepare(struct lab *lab)
{
	remove_left();
	strcpy(lab->directory, "/tmp/coll-lab-XXXXXX");
	if (mkdtemp(lab->directory) && write_setup(lab))
		return true;
	fprintf(stderr, "coll lab: %s: %s\n", lab->directory, strerror(errno));
	return false;
}

/* The socket's file exists before colld listens. */
static bool colld_answers(const struct lab *lab)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/socket", lab->directory);
	fd = circuit_socket(path);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

bool lab_circuits_start(struct lab *lab)
{
	uint32_t waited;

	coll_assert(!lab->colld && lab->directory[0]);
	lab->colld = fork();
	if (!lab->colld)
		exec_colld(lab);
	for (waited = 0; lab->colld > 0 && waited < PATIENCE_MS; waited += LOOK_MS) {
		if (colld_answers(lab))
			return true;
		if (waitpid(lab->colld, NULL, WNOHANG) == lab->colld)
			lab->colld = 0;
		usleep(LOOK_MS * 1000);
	}
	fprintf(stderr, "coll lab: colld --circuits did not answer on its socket\n");
	return false;
}

void lab_circuits_end(struct lab *lab)
{
	if (lab->colld > 0) {
		kill(lab->colld, SIGTERM);
		waitpid(lab->colld, NULL, 0);
		lab->colld = 0;
	}
	if (setup_file)
		fclose(setup_file);
	setup_file = NULL;
	if (lab->directory[0])
		remove_files(lab->directory);
	lab->directory[0] = 0;
}
