// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The bootstrap address, which the launcher carries from rank 0 to the others: the
 * endpoints of the store and the job's secret, as "endpoint,endpoint,.../hexadecimal digits".
 * No digits: all ranks have COLL_SECRET. No blank, '=' or ';': PMI's wire uses those.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "job.h"

/* The port of a listening socket. */
static int port_of(int fd)
{
	char address[COLL_STORE_ADDRESS_MAX];

	return coll_store_address(fd, address, sizeof(address)) ? -1 :
	       atoi(strrchr(address, ':') + 1);
}

int coll_bootstrap_address_write(struct coll_boot *boot, const struct coll_boot_job *job,
				 char words[BOOTSTRAP_ADDRESS_MAX],
				 const struct coll_boot_reason *why)
{
	int fd, err, i, length;

	if (!job->has_secret &&
	    getrandom(boot->secret, COLL_SECRET_BYTES, 0) != COLL_SECRET_BYTES)
		return -EIO;
	err = coll_store_listen_anywhere(job->one_node, &fd);
	if (err)
		return coll_boot_fail(why, err, "cannot serve the store: %s", strerror(-err));
	if (job->one_node)
		err = coll_store_address(fd, words, COLL_STORE_ADDRESS_MAX);
	else if (!coll_node_endpoints(words, BOOTSTRAP_ADDRESS_MAX - 2 * COLL_SECRET_BYTES - 2,
				      port_of(fd)))
		err = -EADDRNOTAVAIL;
	if (err) {
		close(fd);
		return coll_boot_fail(why, err, "this node has no address that others can reach");
	}
	length = strlen(words);
	words[length++] = '/';
	words[length] = '\0';
	for (i = 0; !job->has_secret && i < COLL_SECRET_BYTES; i++)
		length += sprintf(words + length, "%02x", boot->secret[i]);
	return coll_boot_host(fd, boot, NULL, why);
}

static bool secret_take(struct coll_boot *boot, const struct coll_boot_job *job, const char *hex)
{
	int i;

	if (job->has_secret)
		return true;
	if (strspn(hex, "0123456789abcdef") != 2 * COLL_SECRET_BYTES)
		return false;
	for (i = 0; i < COLL_SECRET_BYTES; i++)
		sscanf(hex + 2 * i, "%2hhx", &boot->secret[i]);
	boot->secret_carried = !job->one_node;
	return true;
}

int coll_bootstrap_address_read(struct coll_boot *boot, struct coll_boot_job *job, char *words,
				const struct coll_boot_reason *why)
{
	char *hex = strchr(words, '/');

	job->served = true;
	if (hex && job->has_secret == !!hex[1])
		return coll_boot_secret_differs(why, job->rank, job->has_secret);
	if (hex)
		*hex++ = '\0';
	if (hex && secret_take(boot, job, hex) && !coll_boot_job_endpoints(job, words))
		return 0;
	return coll_boot_fail(why, -EPROTO, "rank 0's bootstrap address, from the launcher, is "
			      "malformed");
}
