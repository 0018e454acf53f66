// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * What launchers and environments tell a rank: PMI-1's lines, rank 0's bootstrap address, the
 * rendezvous file, endpoints and the job's variables. Refused with a reason, or a job whose rank
 * is one of its ranks.
 */
#include "libcoll/boot/pmi.c"
#include "libcoll/boot/rendezvous.c"
#include "libcoll/boot/store_wire.h"
#include "fuzz.h"
#include "sockets.h"

enum { WHY = 400, VARIABLES_MAX = 12 };

/* ---- PMI: the launcher answers each line ---------------------------------------------- */

static struct fuzz_input launcher;

/* Right answers but for the changes that the input's bytes say, or its own lines. */
static void answer_line(int fd, const void *data, size_t bytes)
{
	static const char *const right[][2] = {
		{ "cmd=init", "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n" },
		{ "cmd=get_my_kvsname", "cmd=my_kvsname kvsname=kvs_0\n" },
		{ "cmd=put", "cmd=put_result rc=0 msg=success\n" },
		{ "cmd=barrier_in", "cmd=barrier_out\n" },
		{ "cmd=get ", "cmd=get_result rc=0 msg=success value=" },
	};
	const uint8_t how = fuzz_byte(&launcher);
	const uint8_t *text;
	size_t i, length;

	for (i = 0; how % 4 && i < sizeof(right) / sizeof(*right); i++) {
		length = strlen(right[i][0]);
		if (bytes < length || memcmp(data, right[i][0], length))
			continue;
		sockets_feed(fd, right[i][1], strlen(right[i][1]));
		if (strchr(right[i][1], '\n'))
			return;
	}
	length = fuzz_some(&launcher, &text, 8 * (size_t)fuzz_byte(&launcher));
	sockets_feed(fd, text, length);
	if (how & 0x80)
		sockets_end(fd);
	else
		sockets_feed(fd, "\n", 1);
}

static void try_pmi(struct fuzz_input *in)
{
	char text[WHY] = "", number[16];
	const struct coll_boot_reason why = { text, sizeof(text) };
	struct coll_boot boot = { .rank = 1, .ranks = 2 };
	struct coll_boot_job job = { .rank = 1, .ranks = 2 };
	int error;

	memset(&pmi, 0, sizeof(pmi));
	launcher = *in;
	snprintf(number, sizeof(number), "%d", sockets_make());
	sockets_sent = answer_line;
	setenv("PMI_FD", number, 1);
	error = coll_boot_pmi_meet(&boot, &job, coll_now() + 20000, &why);
	unsetenv("PMI_FD");
	pmi.process = 0;	/* no goodbye at the end */
	fuzz_must(error <= 0 && (!error || text[0]), "refused without a reason");
	fuzz_must(error || job.store[0][0], "no address of the store");
}

/* ---- texts --------------------------------------------------------------------------------- */

static char *text_of(struct fuzz_input *in)
{
	char *text = malloc(in->bytes + 1);	/* of exactly this size: no byte beyond is read */

	fuzz_must(text != NULL, "out of memory");
	memcpy(text, in->data, in->bytes);
	text[in->bytes] = 0;
	return text;
}

static void try_address(struct fuzz_input *in)
{
	char text[WHY] = "", *words = text_of(in), host[COLL_STORE_ADDRESS_MAX];
	const struct coll_boot_reason why = { text, sizeof(text) };
	struct coll_boot boot = { .rank = 1, .ranks = 2 };
	struct coll_boot_job job = { .rank = 1, .ranks = 2 };
	const char *port, *hex = strchr(words, '/');
	const size_t digits = hex ? strspn(hex + 1, "0123456789abcdefABCDEF") : 0;
	int i;

	if (coll_bootstrap_address_read(&boot, &job, words, &why))
		fuzz_must(text[0], "refused without a reason");
	else
		fuzz_must(digits >= 2 * COLL_SECRET_BYTES, "a secret that is too short");
	for (i = 0; !text[0] && i < ENDPOINTS_MAX && job.store[i][0]; i++)
		fuzz_must(!coll_store_split(job.store[i], host, sizeof(host), &port),
			  "an endpoint that is none");
	free(words);
}

static void try_rendezvous(struct fuzz_input *in)
{
	char *text = text_of(in), address[COLL_STORE_ADDRESS_MAX];
	uint8_t secret[COLL_SECRET_BYTES];

	if (!rendezvous_parse(text, address, secret))
		fuzz_must(strlen(address) < sizeof(address), "an address without an end");
	free(text);
}

/* ---- variables --------------------------------------------------------------------------- */

/* Each: which variable, then its value up to a zero. */
static void try_environment(struct fuzz_input *in)
{
	static const char *const names[] = {
		"COLL_RANK", "COLL_RANKS", "COLL_LOCAL_RANK", "COLL_LOCAL_RANKS", "COLL_STORE",
		"COLL_SECRET", "COLL_JOB", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
		"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_USE_AGENT_STORE",
		"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE",
		"MPI_LOCALNRANKS", "PMI_JOBID", "SLURM_PROCID", "SLURM_STEP_ID", "SLURM_NTASKS",
		"SLURM_JOB_ID", "SLURM_STEP_NUM_NODES", "PMIX_RANK", "COLL_STORE_SERVED",
	};
	enum { NAMES = sizeof(names) / sizeof(*names) };
	char text[WHY] = "", value[600];
	const struct coll_boot_reason why = { text, sizeof(text) };
	struct coll_boot_job job;
	const uint8_t *data;
	int count, i;

	for (count = 0; in->bytes && count < VARIABLES_MAX; count++) {
		const char *name = names[fuzz_byte(in) % NAMES];
		const size_t bytes = strnlen((const char *)in->data, in->bytes);
		const size_t part = fuzz_some(in, &data, bytes < sizeof(value) - 1 ? bytes :
					      sizeof(value) - 1);

		memcpy(value, data, part);
		value[part] = 0;
		setenv(name, value, 1);
		fuzz_byte(in);
	}
	if (coll_boot_job_read(&job, &why))
		fuzz_must(text[0], "refused without a reason");
	else
		fuzz_must(job.ranks > 0 && job.rank >= 0 && job.rank < job.ranks &&
			  strlen(job.job) < sizeof(job.job), "a rank that is none");
	for (i = 0; i < NAMES; i++)
		unsetenv(names[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct fuzz_input in = { data, bytes };

	sockets_begin();
	switch (fuzz_byte(&in) % 4) {
	case 0:
		try_pmi(&in);
		break;
	case 1:
		try_address(&in);
		break;
	case 2:
		try_rendezvous(&in);
		break;
	default:
		try_environment(&in);
	}
	return 0;
}

#define HEX "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

void fuzz_seeds(take_seed *take, void *argument)
{
	static const char
		right[] = "\4\1\1\1\1\14" "127.0.0.1:4711,[fe80::1]:4711,host:99/" HEX,
		wrong[] = "\4\1\0\5" "cmd=my_kvsname rc=-1 kvsname=x",
		address[] = "\1" "127.0.0.1:4711,[::1]:4712,host:1/" HEX,
		file[] = "\2" "127.0.0.1:4711 " HEX "\n",
		own[] = "\3\0" "1\0\1" "4\0\2" "0\0\3" "2\0\4" "a:5,[::1]:6\0\5" HEX "\0\6" "job\0\33" "1",
		torch[] = "\3\7" "3\0\10" "8\0\11" "1\0\12" "2\0\13" "10.0.0.1\0\14" "29500\0\15none\0\16True",
		slurm[] = "\3\25" "3\0\26" "0\0\27" "8\0\30" "99\0\31" "2";

	take(right, sizeof(right) - 1, argument);
	take(wrong, sizeof(wrong) - 1, argument);
	take(address, sizeof(address) - 1, argument);
	take(file, sizeof(file) - 1, argument);
	take(own, sizeof(own) - 1, argument);
	take(torch, sizeof(torch) - 1, argument);
	take(slurm, sizeof(slurm) - 1, argument);
}
