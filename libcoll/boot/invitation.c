// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * What rank 0 has the launcher carry to the others: where it serves the store, and the
 * secret: "place,place,.../hexadecimal digits". No blank, '=' or ';': PMI's wire has those.
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

int coll_invitation_write(struct coll_boot *boot, const struct boot_job *job,
			  char words[INVITATION_MAX], const struct boot_why *why)
{
	int fd, err, i, length;

	if (getrandom(boot->secret, COLL_SECRET_BYTES, 0) != COLL_SECRET_BYTES)
		return -EIO;
	err = coll_store_listen(job->one_node ? "127.0.0.1:0" : "0.0.0.0:0", &fd);
	if (err)
		return coll_boot_fail(why, err, "cannot serve the store: %s", strerror(-err));
	if (job->one_node)
		err = coll_store_address(fd, words, COLL_STORE_ADDRESS_MAX);
	else if (!coll_node_places(words, INVITATION_MAX - 2 * COLL_SECRET_BYTES - 2, port_of(fd)))
		err = -EADDRNOTAVAIL;
	if (err) {
		close(fd);
		return coll_boot_fail(why, err, "this node has no address that others can reach");
	}
	length = strlen(words);
	words[length++] = '/';
	for (i = 0; i < COLL_SECRET_BYTES; i++)
		length += sprintf(words + length, "%02x", boot->secret[i]);
	return coll_boot_host(fd, boot, NULL);
}

static bool invitation_take(struct coll_boot *boot, struct boot_job *job, char *words)
{
	char *hex = strchr(words, '/');
	int i;

	if (!hex)
		return false;
	*hex++ = '\0';
	for (i = 0; i < COLL_SECRET_BYTES; i++)
		if (sscanf(hex + 2 * i, "%2hhx", &boot->secret[i]) != 1)
			return false;
	return !coll_boot_job_places(job, words);
}

int coll_invitation_read(struct coll_boot *boot, struct boot_job *job, char *words,
			 const struct boot_why *why)
{
	job->served = true;
	return invitation_take(boot, job, words)
		       ? 0
		       : coll_boot_fail(
				 why, -EPROTO,
				 "what rank 0 told through the launcher is not the address of "
				 "a store");
}
