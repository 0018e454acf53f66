/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Between the files of the circuit manager's client; circuit.h is for all others. Calls go
 * down:
 *
 *	circuit.c	connect and release ops, persistent runs
 *	manager.c	the connection: met, read, lost and met again; notifications
 *	request.c	the list of requests, and the messages about them
 */
#ifndef COLL_LIBCOLL_CIRCUIT_CLIENT_H
#define COLL_LIBCOLL_CIRCUIT_CLIENT_H

#include "uapi/coll_circuit.h"
#include "circuit.h"

#define COMPLETED_NS	5000000000ull	/* so long after a restart the other end is waited for */
#define UNCONFIRMED	UINT64_MAX

/* A connect op's, or, ahead of its start, a run's. Listed until released; see `confirmed`. */
struct coll_circuit_request {
	struct coll_circuit_request *next;
	uint64_t cookie;
	struct coll_exec *exec;		/* or NULL: */
	const struct coll_run *run;	/* or NULL: it is completed, and released */
	const struct coll_planned *planned;
	const char *node;		/* the peer's */
	uint32_t op, peer;
	uint64_t session;		/* 0: for none in particular */
	bool done;			/* the op is: the circuit has been up */
	/*
	 * A manager that was killed may have notified this end and not the other, which then
	 * requests a use from the next manager that this end has completed. So a request stays
	 * listed, past its release, until both ends are known to be notified. A manager sends
	 * all notifications that are due before it reads on: its message about a later cookie is
	 * the proof. Here: the latest cookie when this end was notified; 0: both ends are known
	 * to be, or none was; UNCONFIRMED: this manager has not notified this end.
	 */
	uint64_t confirmed;
};

struct coll_circuit_client {
	struct coll_context *context;
	char path[108], node[COLL_CIRCUIT_NAME];
	char (*peer)[COLL_CIRCUIT_NAME];	/* per rank of the job; "": not known yet */
	struct coll_watch watch, timer;		/* the socket; when to connect again */
	struct coll_circuit_request *requests;	/* the latest first */
	uint64_t cookie;			/* the latest request's */
	uint64_t synced;			/* of the latest COLL_CIRCUIT_MSG_SYNC */
	size_t got;
	struct coll_circuit_message message;	/* `got` bytes of the next one */
};

/* False: the manager has gone or stands still; the socket's reader comes to its end. */
bool coll_circuits_send(int fd, struct coll_circuit_message *message);
bool coll_circuits_hello(struct coll_circuit_client *circuits, int fd);
/* Without a connection: nothing; the next manager gets all requests. */
void coll_circuits_tell(const struct coll_circuit_client *circuits,
			struct coll_circuit_message *message);

bool coll_circuits_is_completed(const struct coll_circuit_request *request);
struct coll_circuit_request *coll_circuits_find(const struct coll_circuit_client *circuits,
						uint64_t cookie);
/* Lists the request and sends it. */
void coll_circuits_add(struct coll_circuit_client *circuits, struct coll_circuit_request *request);
/* Sends all requests of the list, the oldest first, to a new manager. */
void coll_circuits_ask_all(const struct coll_circuit_client *circuits,
			   struct coll_circuit_request *request);
/* Sends a release; the request stays listed. */
void coll_circuits_tell_release(const struct coll_circuit_client *circuits,
				const struct coll_circuit_request *request);
/* Releases the request; drops it, unless it is to be kept until it is confirmed. */
void coll_circuits_give_back(struct coll_circuit_client *circuits,
			     struct coll_circuit_request **slot);
void coll_circuits_drop(struct coll_circuit_request **slot);
/* The manager has sent a message about `cookie`: earlier notifications have been sent too. */
void coll_circuits_confirm(struct coll_circuit_client *circuits, uint64_t cookie);
/* Whether there are completed requests. *notified: of one of them since the latest SYNC. */
bool coll_circuits_has_completed(const struct coll_circuit_client *circuits, bool *notified);

#endif
