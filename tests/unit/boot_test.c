// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The job that an environment describes, and the errors of a wrong one. */
#include <errno.h>
#include <pwd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "libcoll/boot/job.h"
#include "libcoll/boot/store_wire.h"
#include "libcoll/base/clock.h"

#define SECRET "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

static struct coll_boot_job job;
static char why_text[512];
static const struct coll_boot_reason why = { why_text, sizeof(why_text) };

static void set(const char *assignments)
{
	char *copy = strdup(assignments), *rest = NULL, *word, *equals;

	for (word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		equals = strchr(word, '=');
		*equals = '\0';
		setenv(word, equals + 1, 1);
	}
	free(copy);
}

/* Empties the environment, but for what tells cmocka how to report. */
static void forget(void)
{
	const char *output = getenv("CMOCKA_MESSAGE_OUTPUT");
	char *kept = output ? strdup(output) : NULL;

	clearenv();
	if (kept)
		setenv("CMOCKA_MESSAGE_OUTPUT", kept, 1);
	free(kept);
}

static int read_from(const char *assignments)
{
	forget();
	set(assignments);
	*why_text = '\0';
	return coll_boot_job_read(&job, &why);
}

static void assert_job(const char *assignments, int rank, int ranks, int local_rank,
		       int local_ranks, const char *name)
{
	assert_int_equal(read_from(assignments), 0);
	assert_int_equal(job.rank, rank);
	assert_int_equal(job.ranks, ranks);
	assert_int_equal(job.local_rank, local_rank);
	assert_int_equal(job.local_ranks, local_ranks);
	if (name)
		assert_string_equal(job.job, name);
}

/* The words name the variable and say what would be valid. */
static void assert_refused(const char *assignments, const char *variable, const char *valid)
{
	assert_int_equal(read_from(assignments), -EINVAL);
	assert_ptr_equal(strstr(why_text, variable), why_text);
	assert_non_null(strstr(why_text, valid));
}

static void each_launcher_is_recognised(void **state)
{
	(void)state;
	assert_job("", 0, 1, 0, 1, "alone");
	assert_string_equal(job.from, "none");
	assert_job("COLL_RANK=2 COLL_RANKS=4 COLL_LOCAL_RANK=2 COLL_LOCAL_RANKS=4 COLL_JOB=j "
		   "COLL_STORE=127.0.0.1:99 COLL_STORE_SERVED=1 COLL_SECRET=" SECRET,
		   2, 4, 2, 4, "j");
	assert_string_equal(job.store[0], "127.0.0.1:99");
	assert_true(job.served);
	assert_int_equal(job.secret[31], 0x1f);
	assert_job("RANK=5 WORLD_SIZE=8 LOCAL_RANK=5 LOCAL_WORLD_SIZE=8 MASTER_ADDR=h "
		   "MASTER_PORT=29500 TORCHELASTIC_RUN_ID=none TORCHELASTIC_RESTART_COUNT=1",
		   5, 8, 5, 8, "none.1.29500");
	assert_string_equal(job.store[0], "");
	assert_job("OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_LOCAL_RANK=1 "
		   "OMPI_COMM_WORLD_LOCAL_SIZE=3 PMIX_RANK=1 PMIX_NAMESPACE=prte-7@1",
		   1, 3, 1, 3, "prte-7@1");
	assert_job("PMI_RANK=1 PMI_SIZE=2 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2", 1, 2, 1, 2, NULL);
	assert_non_null(strstr(job.job, "parent-"));
	assert_job("SLURM_PROCID=3 SLURM_NTASKS=4 SLURM_LOCALID=3 SLURM_JOB_ID=77 SLURM_STEP_ID=0 "
		   "SLURM_STEP_NUM_NODES=1", 3, 4, 3, 4, "77.0");
	assert_job("PMIX_RANK=1 PMIX_NAMESPACE=n COLL_RANKS=2", 1, 2, 1, 2, "n");
}

static void pmix_supplies_missing_variables(void **state)
{
	(void)state;
	assert_int_equal(read_from("PMIX_RANK=1 PMIX_NAMESPACE=n"), 0);
	assert_int_equal(job.by, BOOT_PMIX);
	assert_string_equal(job.job, "n");
	assert_int_equal(read_from("SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_STEP_ID=0 "
				   "SLURM_STEP_NUM_NODES=2 PMIX_RANK=0 PMIX_NAMESPACE=n"), 0);
	assert_int_equal(job.by, BOOT_PMIX);
	assert_int_equal(read_from("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 "
				   "OMPI_COMM_WORLD_LOCAL_SIZE=4 PMIX_RANK=0 PMIX_NAMESPACE=n"), 0);
	assert_int_equal(job.by, BOOT_STORE);
	assert_int_equal(read_from("COLL_BOOT=pmix OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 "
				   "OMPI_COMM_WORLD_LOCAL_SIZE=4 PMIX_RANK=0 PMIX_NAMESPACE=n"), 0);
	assert_int_equal(job.by, BOOT_PMIX);
	assert_int_equal(read_from("PMIX_RANK=1 PMIX_NAMESPACE=n COLL_RANKS=2 COLL_STORE=h:1 "
				   "COLL_SECRET=" SECRET), 0);
	assert_int_equal(job.by, BOOT_STORE);
	assert_refused("COLL_RANK=0 COLL_RANKS=2 COLL_BOOT=pmix", "COLL_BOOT", "srun --mpi=pmix");
	assert_refused("COLL_RANK=0 COLL_RANKS=2 COLL_BOOT=x", "COLL_BOOT='x'",
		       "auto, pmix, pmi or store");
}

static void pmi_is_asked_where_nodes_differ(void **state)
{
	(void)state;
	assert_int_equal(read_from("PMI_RANK=1 PMI_SIZE=4 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2 "
				   "PMI_FD=9"), 0);
	assert_int_equal(job.by, BOOT_PMI);
	assert_int_equal(read_from("PMI_RANK=1 PMI_SIZE=4 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=4 "
				   "PMI_FD=9"), 0);
	assert_int_equal(job.by, BOOT_STORE);
	assert_int_equal(read_from("PMI_RANK=1 PMI_SIZE=4 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2 "
				   "PMI_FD=9 COLL_STORE=h:1 COLL_SECRET=" SECRET), 0);
	assert_int_equal(job.by, BOOT_STORE);
	/* srun --mpi=pmi2 is Slurm, which tells how many nodes there are. */
	assert_int_equal(read_from("PMI_RANK=3 PMI_SIZE=4 PMI_FD=9 PMI_JOBID=7.0 SLURM_PROCID=3 "
				   "SLURM_NTASKS=4 SLURM_STEP_ID=0 SLURM_STEP_NUM_NODES=2"), 0);
	assert_int_equal(job.by, BOOT_PMI);
	assert_int_equal(read_from("SLURM_PROCID=3 SLURM_NTASKS=4 SLURM_STEP_ID=0 "
				   "SLURM_STEP_NUM_NODES=2"), 0);
	assert_int_equal(job.by, BOOT_PMI);
	/* Some other launcher: the nodes are unknown. */
	assert_int_equal(read_from("PMI_RANK=1 PMI_SIZE=4 PMI_FD=9"), 0);
	assert_int_equal(job.by, BOOT_PMI);
	assert_int_equal(read_from("PMI_RANK=1 PMI_SIZE=4"), 0);
	assert_int_equal(job.by, BOOT_STORE);
	assert_refused("COLL_RANK=0 COLL_RANKS=2 COLL_BOOT=pmi", "COLL_BOOT", "as mpirun of MPICH");
}

static void a_store_may_have_several_endpoints(void **state)
{
	(void)state;
	assert_int_equal(read_from("COLL_RANK=0 COLL_RANKS=2 COLL_STORE=10.0.0.1:7,[fe::1]:7,h:7 "
				   "COLL_SECRET=" SECRET), 0);
	assert_string_equal(job.store[0], "10.0.0.1:7");
	assert_string_equal(job.store[1], "[fe::1]:7");
	assert_string_equal(job.store[2], "h:7");
	assert_string_equal(job.store[3], "");
	assert_refused("COLL_RANK=0 COLL_RANKS=2 COLL_STORE=h:1, COLL_SECRET=" SECRET, "COLL_STORE",
		       "with commas between");
	assert_refused(
		"COLL_RANK=0 COLL_RANKS=2 COLL_STORE=h:1,h:2,h:3,h:4,h:5 COLL_SECRET=" SECRET,
		"COLL_STORE", "up to 4");
}

static void own_variables_take_precedence(void **state)
{
	(void)state;
	assert_job("COLL_RANK=0 COLL_RANKS=1 RANK=1 WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=2 "
		   "OMPI_COMM_WORLD_SIZE=4 SLURM_PROCID=3 SLURM_NTASKS=9 SLURM_STEP_ID=0",
		   0, 1, 0, 1, NULL);
	assert_job("RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=1 "
		   "OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4", 1, 2, 1, 2, "1");
	assert_job("COLL_RANK=1 COLL_RANKS=2 COLL_STORE=h:1 COLL_SECRET=" SECRET, 1, 2, -1, -1,
		   NULL);
}

/* sbatch gives its script a rank, but the script is not a rank. */
static void a_batch_script_is_no_rank(void **state)
{
	(void)state;
	assert_job("SLURM_PROCID=0 SLURM_NTASKS=8 SLURM_JOB_ID=77", 0, 1, 0, 1, "alone");
}

static void wrong_variables_are_named(void **state)
{
	(void)state;
	assert_refused("COLL_RANK=0", "COLL_RANKS", "is not set");
	assert_refused("COLL_RANK=x COLL_RANKS=2", "COLL_RANK='x'", "from 0 to 1");
	assert_refused("COLL_RANK=2 COLL_RANKS=2", "COLL_RANK='2'", "from 0 to 1");
	assert_refused("COLL_RANK=-1 COLL_RANKS=2", "COLL_RANK='-1'", "from 0 to 1");
	assert_refused("COLL_RANK=0 COLL_RANKS=0", "COLL_RANKS='0'", "from 1 to");
	assert_refused("COLL_RANK=0 COLL_RANKS=99999999999999999999", "COLL_RANKS", "from 1 to");
	assert_refused("COLL_RANK=0 COLL_RANKS=2 COLL_LOCAL_RANK=2", "COLL_LOCAL_RANK='2'",
		       "from 0 to 1");
	assert_refused("COLL_RANK=0 COLL_RANKS=2 COLL_SECRET=12", "COLL_SECRET", "64 hexadecimal");
	assert_refused("COLL_RANK=0 COLL_RANKS=2 COLL_STORE=h:1", "COLL_SECRET", "is not set");
	assert_refused("COLL_RANK=0 COLL_RANKS=2 COLL_STORE=h COLL_SECRET=" SECRET,
		       "COLL_STORE='h'", "host:port");
	assert_refused("COLL_RANK=0 COLL_RANKS=2 COLL_STORE=h:0 COLL_SECRET=" SECRET,
		       "COLL_STORE='h:0'", "port from 1");
	assert_refused("RANK=0 WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=x COLL_SECRET=" SECRET,
		       "MASTER_PORT='x'", "from 1 to");
	assert_refused("RANK=0 WORLD_SIZE=2 COLL_SECRET=" SECRET, "MASTER_ADDR", "is not set");
	assert_refused("RANK=0 WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=5", "COLL_SECRET",
		       "is not set");
	assert_refused("OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE", "is not set");
	assert_refused("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 "
		       "OMPI_COMM_WORLD_LOCAL_SIZE=2", "COLL_STORE", "several nodes");
	assert_refused("COLL_BOOT=store SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_STEP_ID=0 "
		       "SLURM_STEP_NUM_NODES=2",
		       "COLL_STORE", "several nodes");
	assert_refused("PMIX_RANK=0", "COLL_RANKS", "is not set");
}

static void torchrun_says_where_the_store_is(void **state)
{
	(void)state;
	assert_int_equal(read_from("RANK=0 WORLD_SIZE=2 MASTER_ADDR=::1 MASTER_PORT=29500 "
				   "COLL_SECRET=" SECRET), 0);
	assert_string_equal(job.store[0], "[::1]:29500");
	assert_string_equal(job.store[1], "[::1]:29501");
	assert_int_equal(read_from("RANK=0 WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=29500 "
				   "TORCHELASTIC_USE_AGENT_STORE=True COLL_SECRET=" SECRET), 0);
	assert_string_equal(job.store[0], "h:29501");
	assert_string_equal(job.store[1], "");
}

static void long_names_stay_different(void **state)
{
	char first[64];

	(void)state;
	assert_job("COLL_RANK=0 COLL_RANKS=1 COLL_JOB=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		   "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1", 0, 1, 0, 1, NULL);
	strcpy(first, job.job);
	assert_job("COLL_RANK=0 COLL_RANKS=1 COLL_JOB=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		   "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa2", 0, 1, 0, 1, NULL);
	assert_string_not_equal(first, job.job);
}

static void a_job_of_one_has_a_store(void **state)
{
	struct coll_boot *boot;
	char value[8];
	size_t bytes = sizeof(value);

	(void)state;
	forget();
	assert_int_equal(coll_boot_open(&boot, coll_now() + COLL_SECOND, NULL, 0), 0);
	assert_int_equal(coll_boot_put(boot, "key", "value", 5), 0);
	assert_int_equal(coll_boot_put(boot, "key", "other", 5), -EEXIST);
	assert_int_equal(coll_boot_get(boot, "key", value, &bytes, coll_now()), 0);
	assert_memory_equal(value, "value", 5);
	assert_int_equal(coll_boot_get(boot, "none", value, &bytes, coll_now()), -ETIMEDOUT);
	coll_boot_close(boot);
}

static void a_rank_alone_fails_in_time_and_in_words(void **state)
{
	struct coll_boot *boot;
	uint64_t start = coll_now();

	(void)state;
	forget();
	set("COLL_RANK=1 COLL_RANKS=2 COLL_JOB=nobody-comes");
	assert_int_equal(coll_boot_open(&boot, start + COLL_SECOND / 2, why_text,
					sizeof(why_text)), -ETIMEDOUT);
	assert_in_range(coll_now() - start, COLL_SECOND / 4, 10 * COLL_SECOND);
	assert_non_null(strstr(why_text, "rank 0 has not joined"));
	assert_null(boot);

	start = coll_now();
	setenv("COLL_RANK", "0", 1);
	assert_int_equal(coll_boot_open(&boot, start + COLL_SECOND / 2, why_text,
					sizeof(why_text)), -ETIMEDOUT);
	assert_in_range(coll_now() - start, COLL_SECOND / 4, 10 * COLL_SECOND);
	assert_non_null(strstr(why_text, "rank 1 of 2"));
}

/* ---- the rendezvous file ------------------------------------------------- */

static char directory[] = "/tmp/boot_test.XXXXXX";

static void the_rendezvous_file_is_private(void **state)
{
	uint8_t secret[COLL_SECRET_BYTES] = { 1, 2, 3 }, got[COLL_SECRET_BYTES];
	char address[COLL_STORE_ADDRESS_MAX], link[600];
	struct coll_rendezvous file;
	struct stat st;

	(void)state;
	setenv("XDG_RUNTIME_DIR", directory, 1);
	assert_int_equal(coll_rendezvous_name(&file, "a/../b 1", &why), 0);
	assert_null(strstr(file.path, ".."  "/"));
	assert_int_equal(coll_rendezvous_read(&file, address, got, &why), -ENOENT);
	assert_int_equal(coll_rendezvous_write(&file, "127.0.0.1:9", secret, &why), 0);
	assert_int_equal(stat(file.path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(coll_rendezvous_read(&file, address, got, &why), 0);
	assert_string_equal(address, "127.0.0.1:9");
	assert_memory_equal(secret, got, sizeof(secret));

	coll_rendezvous_remove(&file, "127.0.0.1:10");
	assert_int_equal(coll_rendezvous_read(&file, address, got, &why), 0);
	assert_int_equal(chmod(file.path, 0644), 0);
	assert_int_equal(coll_rendezvous_read(&file, address, got, &why), -EPERM);
	assert_non_null(strstr(why_text, file.path));
	assert_int_equal(chmod(file.path, 0600), 0);
	snprintf(link, sizeof(link), "%s.link", file.path);
	assert_int_equal(rename(file.path, link), 0);
	assert_int_equal(symlink(link, file.path), 0);
	assert_int_equal(coll_rendezvous_read(&file, address, got, &why), -EPERM);
	unlink(file.path);
	unlink(link);
}

static void a_directory_open_to_others_is_refused(void **state)
{
	struct coll_rendezvous file;
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "%s/coll", directory);
	setenv("XDG_RUNTIME_DIR", directory, 1);
	assert_int_equal(chmod(path, 0770), 0);
	assert_int_equal(coll_rendezvous_name(&file, "job", &why), -EPERM);
	assert_non_null(strstr(why_text, path));
	rmdir(path);
	assert_int_equal(symlink("/tmp", path), 0);
	assert_int_equal(coll_rendezvous_name(&file, "job", &why), -EPERM);
	unlink(path);
	if (!geteuid()) {
		mkdir(path, 0700);
		assert_int_equal(chown(path, 12345, 12345), 0);
		assert_int_equal(coll_rendezvous_name(&file, "job", &why), -EPERM);
		rmdir(path);
	}
}

/* The C library's place is taken: the home of every user is that of this test. */
static char home[64];

int getpwuid_r(uid_t user, struct passwd *entry, char *text, size_t bytes, struct passwd **found)
{
	(void)bytes;
	*entry = (struct passwd){ .pw_uid = user, .pw_name = strcpy(text, "somebody"),
				  .pw_dir = home };
	*found = entry;
	return 0;
}

static void assert_folder(const char *wanted)
{
	struct coll_rendezvous file;

	assert_int_equal(coll_rendezvous_name(&file, "job", &why), 0);
	assert_int_equal(strncmp(file.path, wanted, strlen(wanted)), 0);
	assert_int_equal(strncmp(file.path + strlen(wanted), "/job-job", 8), 0);
}

/* Of a user without a folder in /run/user; another user has taken its name in /tmp. */
static void a_folder_of_the_user_comes_before_tmp(void **state)
{
	enum { USER = 64009 };
	struct coll_rendezvous file;
	char cache[80], tmp[32], open[80];

	(void)state;
	if (geteuid())
		skip();		/* this user may have such a folder */
	snprintf(home, sizeof(home), "%s/home", directory);
	snprintf(cache, sizeof(cache), "%s/.cache/coll", home);
	snprintf(open, sizeof(open), "%s/open", directory);
	snprintf(tmp, sizeof(tmp), "/tmp/coll-%u", USER);
	assert_int_equal(mkdir(home, 0700) | mkdir(open, 0700) | chmod(open, 0777) |
			 chmod(directory, 0755) | chown(home, USER, USER) |
			 chown(open, USER, USER), 0);
	assert_int_equal(mkdir(tmp, 0755), 0);
	assert_int_equal(seteuid(USER), 0);
	unsetenv("XDG_RUNTIME_DIR");
	assert_folder(cache);
	setenv("XDG_RUNTIME_DIR", open, 1);	/* all can write there */
	assert_folder(cache);
	assert_int_equal(chmod(home, 0770), 0);
	assert_int_equal(coll_rendezvous_name(&file, "job", &why), -EPERM);
	assert_non_null(strstr(why_text, tmp));
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(rmdir(tmp), 0);
	assert_int_equal(rmdir(cache), 0);
	*strrchr(cache, '/') = '\0';
	assert_int_equal(rmdir(cache) | rmdir(home) | rmdir(open), 0);
}

static int make_directory(void **state)
{
	(void)state;
	return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "%s/coll", directory);
	rmdir(path);
	return rmdir(directory);
}

static void addresses_of_stores_are_checked(void **state)
{
	static const char *const bad[] = { "", ":", "host", "host:", ":80", "host:http", "[::1]",
					   "[::1:80", "::1:80", "host:65536", "host:-1", "[]:80",
					   "host:80x" };
	static const char *const good[] = { "host:80", "[::1]:80", "127.0.0.1:65535", "a.b:0" };
	char host[64];
	const char *port;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(coll_store_split(bad[i], host, sizeof(host), &port), -EINVAL);
	for (i = 0; i < sizeof(good) / sizeof(*good); i++)
		assert_int_equal(coll_store_split(good[i], host, sizeof(host), &port), 0);
}

/* Over TCP the kernel does not tell the proxy's process: two jobs would have one name, and one store. */
static void a_proxy_that_is_not_known_names_no_job(void **state)
{
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char environment[128], name[64];

	(void)state;
	assert_true(fd >= 0);
	snprintf(environment, sizeof(environment),
		 "PMI_RANK=1 PMI_SIZE=2 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2 PMI_FD=%d", fd);
	snprintf(name, sizeof(name), "parent-%d", getppid());
	assert_job(environment, 1, 2, 1, 2, name);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_launcher_is_recognised),
		cmocka_unit_test(a_proxy_that_is_not_known_names_no_job),
		cmocka_unit_test(pmix_supplies_missing_variables),
		cmocka_unit_test(pmi_is_asked_where_nodes_differ),
		cmocka_unit_test(a_store_may_have_several_endpoints),
		cmocka_unit_test(addresses_of_stores_are_checked),
		cmocka_unit_test(own_variables_take_precedence),
		cmocka_unit_test(a_batch_script_is_no_rank),
		cmocka_unit_test(wrong_variables_are_named),
		cmocka_unit_test(torchrun_says_where_the_store_is),
		cmocka_unit_test(long_names_stay_different),
		cmocka_unit_test(a_job_of_one_has_a_store),
		cmocka_unit_test(a_rank_alone_fails_in_time_and_in_words),
		cmocka_unit_test(the_rendezvous_file_is_private),
		cmocka_unit_test(a_directory_open_to_others_is_refused),
		cmocka_unit_test(a_folder_of_the_user_comes_before_tmp),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
