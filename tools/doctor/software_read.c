// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What of coll is here, for which kernel and which MPI; and what kind of machine it is. */
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "coll_circuit.h"
#include "facts.h"
#include "files.h"
#include "libcoll/base/clock.h"
#include "libcoll/base/stream.h"
#include "libcoll/coll.h"
#include "node/small_file.h"
#include "tools/common/in_path.h"

enum { METRICS_PORT = 9469, ANSWER_NS = 300000000 };

/* ---- the module ------------------------------------------------------------ */

/* The value of "vermagic=" in a module's file, which is not compressed. */
static bool read_magic(const char *path, char *magic)
{
	static const char word[] = "vermagic=";
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const char *at = NULL;
	struct stat st;
	void *map;

	if (fd < 0)
		return false;
	map = fstat(fd, &st) || !st.st_size ? MAP_FAILED :
	      mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (map == MAP_FAILED)
		return false;
	at = memmem(map, st.st_size, word, strlen(word));
	if (at)
		snprintf(magic, DOCTOR_WORD, "%.*s",
			 (int)strnlen(at + strlen(word), (char *)map + st.st_size - at - strlen(word)),
			 at + strlen(word));
	munmap(map, st.st_size);
	magic[strcspn(magic, " ")] = 0;
	return at;
}

/* The file that modprobe would load for a kernel; its magic, or the folder's name. */
static bool find_module(const char *root, const char *kernel, char *magic)
{
	static const char *const folders[] = { "updates/dkms", "updates", "extra", "kernel/extra",
					       "weak-updates" };
	static const char *const ends[] = { "", ".xz", ".zst", ".gz" };
	char path[DOCTOR_PATH];
	size_t i, end;

	for (i = 0; i < sizeof(folders) / sizeof(*folders); i++)
		for (end = 0; end < sizeof(ends) / sizeof(*ends); end++) {
			snprintf(path, sizeof(path), "%s/lib/modules/%s/%s/coll.ko%s", root, kernel,
				 folders[i], ends[end]);
			if (access(path, F_OK))
				continue;
			if (end || !read_magic(path, magic))
				snprintf(magic, DOCTOR_WORD, "%s", kernel);
			return true;
		}
	return false;
}

static void find_elsewhere(struct doctor_software_facts *facts, const char *root)
{
	char path[DOCTOR_PATH], magic[DOCTOR_WORD];
	struct dirent *entry;
	DIR *list;

	snprintf(path, sizeof(path), "%s/lib/modules", root);
	list = opendir(path);
	while (list && (entry = readdir(list)))
		if (*entry->d_name != '.' && find_module(root, entry->d_name, magic))
			snprintf(facts->module_elsewhere, DOCTOR_WORD, "%.70s", entry->d_name);
	if (list)
		closedir(list);
}

static void read_module(struct doctor_software_facts *facts, const char *root)
{
	char device[DOCTOR_PATH];

	snprintf(device, sizeof(device), "%s/dev/coll", root);
	facts->device_opens = !access(device, R_OK | W_OK);
	facts->module_loaded = doctor_file_exists(root, "/sys/module/coll");
	doctor_file_line(root, facts->module_version, DOCTOR_WORD, "/sys/module/coll/version");
	if (!find_module(root, facts->kernel, facts->module_magic))
		find_elsewhere(facts, root);
}

/* ---- colld ------------------------------------------------------------------ */

/* Whether colld's metrics are served; its port is the default. */
static bool metrics_answer(void)
{
	static const char request[] = "GET /metrics HTTP/1.0\r\n\r\n";
	const uint64_t deadline = coll_now() + ANSWER_NS;
	const struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(METRICS_PORT),
					.sin_addr = { htonl(INADDR_LOOPBACK) } };
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	char status[sizeof("HTTP/1.0 200 ")] = "";
	const bool answers = !coll_stream_connect(fd, &to, sizeof(to), deadline) &&
		!coll_stream_send(fd, request, strlen(request), deadline) &&
		!coll_stream_receive(fd, status, sizeof(status) - 1, deadline);

	close(fd);
	return answers && strstr(status, " 200 ");
}

static bool circuits_answer(const char *root)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool there;

	there = snprintf(to.sun_path, sizeof(to.sun_path), "%s%s", root, COLL_CIRCUIT_SOCKET) <
			(int)sizeof(to.sun_path) &&
		!coll_stream_connect(fd, &to, sizeof(to), coll_now() + ANSWER_NS);
	close(fd);
	return there;
}

static void read_daemon(struct doctor_software_facts *facts, const char *root)
{
	facts->policy = doctor_file_exists(root, "/etc/coll/policy");
	facts->circuits_file = doctor_file_exists(root, "/etc/coll/circuits");
	facts->colld_runs = doctor_task_named(root, "colld");
	facts->circuits_socket = circuits_answer(root);
	facts->colld_answers = facts->colld_runs && (facts->circuits_socket || metrics_answer());
}

/* ---- MPI --------------------------------------------------------------------- */

/* Beside this program as it was built, and where it was installed. */
static bool has_shim(const char *mpi)
{
	static const char *const places[] = { "mpi/%s", "../lib/coll/%s", "../lib/*/coll/%s" };
	char self[DOCTOR_PATH / 2] = "", pattern[DOCTOR_PATH], place[64], *slash;
	glob_t found;
	size_t i;
	bool any = false;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0 || !(slash = strrchr(self, '/')))
		return false;
	*slash = 0;
	for (i = 0; !any && i < sizeof(places) / sizeof(*places); i++) {
		snprintf(place, sizeof(place), places[i], mpi);
		snprintf(pattern, sizeof(pattern), "%s/%s/libcollmpi.so", self, place);
		any = !glob(pattern, 0, NULL, &found);
		if (any)
			globfree(&found);
	}
	return any;
}

static void read_mpi(struct doctor_software_facts *facts)
{
	facts->mpi[0] = (struct doctor_mpi){
		"openmpi", in_path("mpirun.openmpi") || in_path("orterun") || in_path("prterun"),
		has_shim("openmpi"),
	};
	facts->mpi[1] = (struct doctor_mpi){
		"mpich", in_path("mpirun.mpich") || in_path("mpiexec.hydra"), has_shim("mpich"),
	};
}

/* ---- the machine -------------------------------------------------------------- */

/* What made the container tells it in one of these ways. */
static void read_container(struct doctor_software_facts *facts, const char *root)
{
	static const char *const words[] = { "docker", "kubepods", "libpod", "lxc" };
	char path[DOCTOR_PATH], text[DOCTOR_PATH];
	size_t i;

	if (doctor_file_line(root, facts->container, DOCTOR_WORD, "/run/systemd/container"))
		return;
	if (doctor_file_exists(root, "/.dockerenv"))
		strcpy(facts->container, "docker");
	else if (doctor_file_exists(root, "/run/.containerenv"))
		strcpy(facts->container, "podman");
	if (*facts->container)
		return;
	snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
	if (!node_read_small(path, text, sizeof(text)))
		return;
	for (i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (strstr(text, words[i]))
			strcpy(facts->container, words[i]);
}

static bool is_guest(const char *root)
{
	char path[DOCTOR_PATH], text[16384];

	snprintf(path, sizeof(path), "%s/proc/cpuinfo", root);
	return doctor_file_exists(root, "/sys/hypervisor/type") ||
	       (node_read_small(path, text, sizeof(text)) && strstr(text, " hypervisor"));
}

void doctor_read_software(struct doctor_software_facts *facts, const char *root)
{
	struct utsname name;

	*facts = (struct doctor_software_facts){ .guest = is_guest(root) };
	snprintf(facts->version, DOCTOR_WORD, "%s", coll_version());
	if (!doctor_file_line(root, facts->kernel, DOCTOR_WORD, "/proc/sys/kernel/osrelease") &&
	    !uname(&name))
		snprintf(facts->kernel, DOCTOR_WORD, "%.70s", name.release);
	read_module(facts, root);
	read_daemon(facts, root);
	read_mpi(facts);
	read_container(facts, root);
}
