/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Many nodes at once: this command starts itself on each, as coll run starts ranks, and what each
 * prints is one line of JSON. Only the remote shell has to work for that. Then the nodes meet in the
 * job's store and try a connection to each other, both ways.
 */
#ifndef COLL_DOCTOR_HOSTS_H
#define COLL_DOCTOR_HOSTS_H

#include "merge.h"
#include "tools/launch/launch.h"

/*
 * Runs the doctor on the hosts of `launch`, whose argv starts it there; fills a row for each host.
 * False: it cannot be started.
 */
bool doctor_hosts_run(const struct launch *launch, struct doctor_row *rows);

/* On a host, with the report: prints it, tries the connections, prints them. An exit code. */
int doctor_hosts_rank(json_t *report, uint64_t timeout);

#endif
