// SPDX-License-Identifier: GPL-2.0
/*
 * A link: bytes between two ranks over a TCP socket that the process lent us.
 *
 * The socket keeps its callbacks: we hear of it through its wait queue, as
 * epoll does, and never block on it. What is sent is copied into the socket, so
 * a message that is gone holds no page of the application's. The receive state
 * is not stored but follows from what is missing.
 */
#include <linux/bvec.h>
#include <linux/file.h>
#include <linux/ktime.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include <net/inet_connection_sock.h>
#include <net/sock.h>

#include "kmod/exec/device.h"

/* ---- waking ------------------------------------------------------------------- */

void kcoll_link_wake(struct kcoll_link *link)
{
	if (test_and_set_bit(0, &link->woken))
		return;
	llist_add(&link->ready, &link->group->device->ready);
	kcoll_runner_kick(link->group->device);
}

/* In softirq, with the socket's wait queue locked. */
static int socket_woke(wait_queue_entry_t *wait, unsigned int mode, int sync, void *key)
{
	kcoll_link_wake(container_of(wait, struct kcoll_link, wait));
	return 0;
}

struct wait_install {
	poll_table table;
	struct kcoll_link *link;
};

static void install_wait(struct file *file, wait_queue_head_t *head, poll_table *table)
{
	struct kcoll_link *link = container_of(table, struct wait_install, table)->link;

	if (link->wait_head)	/* a TCP socket has one queue */
		return;
	link->wait_head = head;
	add_wait_queue(head, &link->wait);
}

/* ---- life ---------------------------------------------------------------------- */

struct kcoll_link *kcoll_link_get(struct kcoll_group *group, u32 rank)
{
	struct kcoll_link *link = xa_load(&group->links, rank);

	if (link || rank >= group->ranks || rank == group->rank)
		return link;
	link = kzalloc(sizeof(*link), COLL_GFP);
	if (!link)
		return NULL;
	link->group = group;
	link->rank = rank;
	link->queue_end = &link->queue;
	if (xa_err(xa_store(&group->links, rank, link, COLL_GFP))) {
		kfree(link);
		return NULL;
	}
	return link;
}

/* Nothing but a connected TCP socket of no other protocol's layering on top. */
static int suitable(struct socket *socket)
{
	struct sock *sk = socket->sk;

	if (socket->type != SOCK_STREAM || sk->sk_protocol != IPPROTO_TCP ||
	    (sk->sk_family != AF_INET && sk->sk_family != AF_INET6))
		return -EPROTONOSUPPORT;
	if (inet_csk(sk)->icsk_ulp_ops)
		return -EPROTONOSUPPORT;
	if (sk->sk_state != TCP_ESTABLISHED && sk->sk_state != TCP_CLOSE_WAIT)
		return -ENOTCONN;
	return 0;
}

/* Hears of the socket no more, and lets it go. */
static void let_socket_go(struct kcoll_link *link)
{
	if (link->wait_head)
		remove_wait_queue(link->wait_head, &link->wait);
	link->wait_head = NULL;
	if (link->socket)
		sockfd_put(link->socket);
	link->socket = NULL;
	kfree(link->stage);
	link->stage = NULL;
	kcoll_runner_forget(link);
}

static int lend_socket(struct kcoll_link *link, int fd)
{
	struct wait_install install = { .link = link };
	int error;

	link->socket = sockfd_lookup(fd, &error);
	if (!link->socket)
		return error;
	error = suitable(link->socket);
	link->stage = error ? NULL : kmalloc(COLL_STAGE_BYTES, COLL_GFP);
	if (!error && !link->stage)
		error = -ENOMEM;
	if (error) {
		let_socket_go(link);
		return error;
	}
	link->state = COLL_LINK_UP;
	init_waitqueue_func_entry(&link->wait, socket_woke);
	init_poll_funcptr(&install.table, install_wait);
	vfs_poll(link->socket->file, &install.table);
	return 0;
}

/* ---- sending -------------------------------------------------------------------- */

void kcoll_link_send(struct kcoll_link *link, struct kcoll_sending *sending)
{
	sending->next = NULL;
	*link->queue_end = sending;
	link->queue_end = &sending->next;
	if (link->socket && link->state != COLL_LINK_LOST)
		kcoll_link_wake(link);
}

int kcoll_link_send_control(struct kcoll_link *link, const struct coll_header *header)
{
	struct kcoll_sending *sending = kzalloc(sizeof(*sending), COLL_GFP);

	if (!sending)
		return -ENOMEM;
	sending->header = *header;
	kcoll_link_send(link, sending);
	return 0;
}

static u64 message_bytes(const struct kcoll_sending *sending)
{
	return sizeof(sending->header) + sending->header.bytes;
}

static void sending_release(struct kcoll_sending *sending)
{
	if (sending->run)
		kcoll_run_sent(sending->run, sending);
	else
		kfree(sending);
}

static struct kcoll_sending *queue_pop(struct kcoll_link *link)
{
	struct kcoll_sending *sending = link->queue;

	link->queue = sending->next;
	if (!link->queue)
		link->queue_end = &link->queue;
	link->sent = 0;
	return sending;
}

void kcoll_link_drop(struct kcoll_link *link, bool all)
{
	struct kcoll_sending **keep = &link->queue, *sending;
	struct kcoll_running *run = link->run;

	if (run) {
		link->run = NULL;
		run->in_flight--;
		kcoll_run_maybe_home(run);
	}
	while ((sending = *keep)) {
		bool begun = sending == link->queue && link->sent;

		if (!sending->run || (begun && !all)) {
			keep = &sending->next;
			continue;
		}
		if (begun)	/* the peer would take what follows for the rest of it */
			link->broken = true;
		*keep = sending->next;
		sending_release(sending);
	}
	link->queue_end = keep;
	if (!link->queue)
		link->sent = 0;
}

/* Nothing can go out any more. */
static void link_discard(struct kcoll_link *link)
{
	kcoll_link_drop(link, true);
	while (link->queue)
		sending_release(queue_pop(link));
}

static void header_bvec(struct kcoll_sending *sending, u64 skip, struct bio_vec *bvec)
{
	void *address = &sending->header;

	bvec->bv_page = is_vmalloc_addr(address) ? vmalloc_to_page(address) :
						   virt_to_page(address);
	bvec->bv_offset = offset_in_page(address) + skip;
	bvec->bv_len = sizeof(sending->header) - skip;
}

/* Pieces of what is queued, from byte link->sent on. Returns their number. */
static int send_bvecs(struct kcoll_link *link, struct bio_vec *bvec, u64 *bytes)
{
	struct kcoll_sending *sending;
	u64 skip = link->sent;
	int n = 0;

	*bytes = 0;
	for (sending = link->queue; sending && n < COLL_BVECS; sending = sending->next) {
		struct kcoll_running *run = sending->run;
		u64 header = sizeof(sending->header), left, got;
		const struct coll_op *op;

		if (skip < header) {
			header_bvec(sending, skip, &bvec[n++]);
			*bytes += header - skip;
			skip = header;
		}
		left = message_bytes(sending) - skip;
		if (left) {
			u32 buffer;

			op = &coll_ops(run->loaded->schedule)[sending->op];
			buffer = COLL_PLACE_BUFFER(op->left);
			got = left;
			n += kcoll_memory_bvecs(run->buffer[buffer],
						run->offset[buffer] + COLL_PLACE_OFFSET(op->left) +
						       skip - header,
						&got, bvec + n, COLL_BVECS - n);
			*bytes += got;
			if (got < left)
				break;
		}
		skip = 0;
	}
	return n;
}

static void link_sent(struct kcoll_link *link, u64 bytes)
{
	link->group->device->counters.sent_bytes += bytes;
	link->sent += bytes;
	while (link->queue && link->sent >= message_bytes(link->queue)) {
		u64 rest = link->sent - message_bytes(link->queue);
		struct kcoll_sending *sending = queue_pop(link);

		link->sent = rest;
		sending_release(sending);
	}
}

/* Whether it could send more at once. */
static bool link_turn_send(struct kcoll_link *link)
{
	struct bio_vec bvec[COLL_BVECS];
	u64 bytes, done = 0;

	while (link->queue && link->state != COLL_LINK_LOST && !link->broken) {
		struct msghdr message = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };
		int n = send_bvecs(link, bvec, &bytes), sent;

		iov_iter_bvec(&message.msg_iter, ITER_SOURCE, bvec, n, bytes);
		sent = sock_sendmsg(link->socket, &message);
		if (sent == -EAGAIN)
			return false;
		if (sent < 0) {
			/* The peer may have said why before it closed: that is read first. */
			link->broken = true;
			return true;
		}
		link_sent(link, sent);
		done += sent;
		if (sent < bytes)
			return false;	/* full: it wakes us when there is room */
		if (done >= COLL_TURN_BYTES)
			return true;
	}
	return false;
}

/* ---- ends ---------------------------------------------------------------------- */

void kcoll_link_free(struct kcoll_link *link)
{
	if (link->socket && link->state != COLL_LINK_LOST)
		link_turn_send(link);	/* a goodbye, if the socket takes it at once */
	link_discard(link);
	let_socket_go(link);
	kfree(link);
}

void kcoll_link_cut(struct kcoll_link *link)
{
	link->state = COLL_LINK_LOST;
	if (link->socket)
		kernel_sock_shutdown(link->socket, SHUT_RDWR);
	link_discard(link);
}

/* The connection ended, with an errno or at its end. */
static void link_lost(struct kcoll_link *link, int error)
{
	struct kcoll_group *group = link->group;
	bool left = link->state == COLL_LINK_LEFT;

	link->state = COLL_LINK_LOST;
	if (!left)
		kcoll_group_fail(group, error == -ETIMEDOUT ? error : -ECONNRESET, link->rank,
				 COLL_NONE);
	link_discard(link);
}

/* ---- receiving ------------------------------------------------------------------- */

static bool awaited(const struct kcoll_link *link)
{
	struct kcoll_running *run;

	list_for_each_entry(run, &link->group->runs, node)
		if (kcoll_run_needs(run, link))
			return true;
	return false;
}

/* A message for later. False: there is no room, the link is not read for a while. */
static bool receive_early(struct kcoll_link *link)
{
	struct kcoll_group *group = link->group;
	u64 bytes = sizeof(struct kcoll_early) + link->header.bytes;
	struct kcoll_early *early;

	/* What lies behind it in the stream may be what an older run waits for. */
	if ((s64)bytes > group->early_room && !link->handed && !awaited(link))
		return false;
	early = kvmalloc(bytes, COLL_GFP);
	if (early)
		early->accounted = (s64)bytes > group->early_room ? DIV_ROUND_UP(bytes, PAGE_SIZE) :
								   0;
	if (!early || kcoll_account(group->device, early->accounted, true)) {
		kvfree(early);
		kcoll_group_fail(group, -ENOBUFS, group->rank, link->rank);
		return true;
	}
	group->early_room -= bytes;
	early->header = link->header;
	early->rank = link->rank;
	early->complete = false;
	early->got = 0;
	list_add_tail(&early->node, &group->early);
	link->early = early;
	group->device->counters.unexpected++;
	return true;
}

/* The message that this chunk goes on with, if it is kept here. */
static struct kcoll_early *early_begun(const struct kcoll_link *link)
{
	const struct coll_header *header = &link->header;
	struct kcoll_early *early;

	list_for_each_entry(early, &link->group->early, node)
		if (early->rank == link->rank && !early->complete &&
		    early->header.run == header->run && early->header.slot == header->slot &&
		    early->header.bytes == header->bytes && early->got == header->offset)
			return early;
	return NULL;
}

/* Where does its payload go? False: nowhere yet. */
static bool receive_data(struct kcoll_link *link)
{
	struct kcoll_group *group = link->group;
	const struct coll_header *header = &link->header;
	struct kcoll_running *run = kcoll_run_find(group, header->run);
	int match = COLL_MATCH_LATE;
	u32 op;

	link->payload_left = coll_chunk_bytes(header);
	link->early = header->offset ? early_begun(link) : NULL;
	if (link->early)
		return true;
	if (group->error) {
		match = COLL_MATCH_LATE;
	} else if (run && !run->over) {
		if (header->hash != run->loaded->hash) {
			kcoll_group_fail(group, -EPROTO, link->rank, group->rank);
			return true;
		}
		match = coll_match(&run->step, link->rank, header->slot, header->bytes, &op);
		if (match < 0 || run->arrived[op] ||
		    (match == COLL_MATCH_EARLY && header->offset) ||
		    (match == COLL_MATCH_POSTED && run->got[op] != header->offset)) {
			kcoll_group_fail(group, -EPROTO, link->rank, group->rank);
			return true;
		}
	} else if ((s32)(header->run - group->next_run) >= 0) {
		if (header->offset) {
			kcoll_group_fail(group, -EPROTO, link->rank, group->rank);
			return true;
		}
		match = COLL_MATCH_EARLY;
	}
	if (match == COLL_MATCH_POSTED) {
		link->run = run;
		link->op = op;
		run->in_flight++;
	} else if (match != COLL_MATCH_EARLY) {
		group->device->counters.stale++;
	}
	return match != COLL_MATCH_EARLY || receive_early(link);
}

static void receive_control(struct kcoll_link *link)
{
	struct kcoll_group *group = link->group;
	const struct coll_header *header = &link->header;
	struct coll_header pong = {
		.kind = COLL_MESSAGE_PONG,
		.version = COLL_WIRE_VERSION,
		.run = group->next_run - 1,
		.slot = kcoll_group_suspect(group),
	};

	switch (header->kind) {
	case COLL_MESSAGE_PING:		/* the process need not even run to answer */
		kcoll_link_send_control(link, &pong);
		return;
	case COLL_MESSAGE_PONG:
		link->answered = ktime_get_ns();
		link->pong_suspect = header->slot;
		break;
	case COLL_MESSAGE_FAIL:
		kcoll_group_fail(group, header->hash && header->hash < 4096 ? -(int)header->hash :
			-EPROTO, header->slot, header->run);
		return;
	case COLL_MESSAGE_BYE:
		link->state = COLL_LINK_LEFT;
		if (awaited(link))
			kcoll_group_fail(group, -ECONNRESET, link->rank, COLL_NONE);
		break;
	}
	kcoll_group_control(group, link->rank, header);
}

static bool header_done(struct kcoll_link *link)
{
	const struct coll_header *header = &link->header;

	link->payload_left = 0;
	if (!coll_header_valid(header)) {
		kcoll_group_fail(link->group, -EPROTO, link->rank, link->group->rank);
		kcoll_link_cut(link);
		return true;
	}
	if (header->kind == COLL_MESSAGE_DATA)
		return receive_data(link);
	receive_control(link);
	return true;
}

/* An early message is whole: it waits for its receive, or is not wanted any more. */
static void early_done(struct kcoll_link *link, struct kcoll_early *early)
{
	struct kcoll_group *group = link->group;
	struct kcoll_running *run = kcoll_run_find(group, early->header.run);
	u32 op;

	early->complete = true;
	if (group->error || (run ? run->over : (s32)(early->header.run - group->next_run) < 0)) {
		kcoll_group_early_free(group, early);
		return;
	}
	if (run && coll_match(&run->step, link->rank, early->header.slot, early->header.bytes,
			      &op) == COLL_MATCH_POSTED)
		kcoll_run_take_early(run, op);
}

/* Header and payload are here: a message, or a chunk of one. */
static void chunk_done(struct kcoll_link *link)
{
	struct kcoll_running *run = link->run;
	struct kcoll_early *early = link->early;
	const u64 got = link->header.offset + coll_chunk_bytes(&link->header);
	const bool whole = got == link->header.bytes;

	link->header_got = 0;
	link->run = NULL;
	link->early = NULL;
	if (early) {
		early->got = got;
		if (whole)
			early_done(link, early);
	} else if (run) {
		run->in_flight--;
		run->got[link->op] = got;
		if (whole) {
			run->arrived[link->op] = 1;
			kcoll_run_received(run, link->op);
		} else {
			kcoll_run_maybe_home(run);
		}
	}
}

/* Of the message's payload so much is here. */
static u64 payload_done(const struct kcoll_link *link)
{
	return link->header.offset + coll_chunk_bytes(&link->header) - link->payload_left;
}

/* Bytes of payload, from the stage. */
static void payload_from(struct kcoll_link *link, const u8 *from, u32 bytes)
{
	const u64 done = payload_done(link);

	if (link->early)
		memcpy(link->early->data + done, from, bytes);
	else if (link->run)
		kcoll_run_write(link->run, link->op, done, from, bytes);
	link->payload_left -= bytes;
}

/* Uses up the stage as far as there is a place for it. */
static void consume(struct kcoll_link *link)
{
	while (link->state != COLL_LINK_LOST && !link->stalled) {
		u32 have = link->stage_end - link->stage_at, part;
		const u8 *from = link->stage + link->stage_at;
		u32 missing = sizeof(link->header) - link->header_got;

		if (missing) {
			part = min(missing, have);
			memcpy((u8 *)&link->header + link->header_got, from, part);
			link->header_got += part;
			link->stage_at += part;
			if (part < missing)
				return;
			link->stalled = !header_done(link);
			if (link->stalled)
				return;
		} else if (link->payload_left) {
			part = min_t(u64, link->payload_left, have);
			if (!part)
				return;
			payload_from(link, from, part);
			link->stage_at += part;
		}
		if (!link->payload_left)
			chunk_done(link);
	}
}

/* ---- lending and taking back ------------------------------------------------------- */

/* What the program has read from the socket comes before what is still in there. */
static int take_over_bytes(struct kcoll_link *link, const struct coll_device_link *asked)
{
	u64 done;

	link->handed = true;
	for (done = 0; done < asked->bytes && link->state != COLL_LINK_LOST;
	     done += link->stage_end) {
		link->stage_at = 0;
		link->stage_end = min_t(u64, asked->bytes - done, COLL_STAGE_BYTES);
		if (copy_from_user(link->stage,
				   (void __user *)(unsigned long)(asked->address + done),
				   link->stage_end)) {
			link->stage_end = 0;
			kcoll_group_fail(link->group, -EFAULT, link->group->rank, link->rank);
			return -EFAULT;
		}
		consume(link);
	}
	link->handed = false;
	return 0;
}

int kcoll_link_lend(struct kcoll_link *link, const struct coll_device_link *asked)
{
	int error;

	if (link->state != COLL_LINK_ABSENT)
		return -EEXIST;
	error = lend_socket(link, asked->fd);
	if (!error && asked->bytes)
		error = take_over_bytes(link, asked);
	kcoll_link_wake(link);
	return error;
}

/* Where the bytes go that are given back; beyond its room they are only counted. */
struct giving {
	u64 address, room, bytes;
	bool fault;
};

static void give(struct giving *giving, const void *from, u64 bytes)
{
	if (giving->bytes + bytes <= giving->room &&
	    copy_to_user((void __user *)(unsigned long)(giving->address + giving->bytes), from,
			 bytes))
		giving->fault = true;
	giving->bytes += bytes;
}

static bool belongs_to(const struct kcoll_early *early, const struct kcoll_link *link)
{
	return early->rank == link->rank && early != link->early;
}

/* The message that is coming in. Of one that is thrown away only the rest is. */
static void give_begun(struct kcoll_link *link, struct giving *giving)
{
	struct coll_header header = link->header;
	const u64 end = header.offset + coll_chunk_bytes(&header);

	if (link->header_got == sizeof(header) && !link->stalled)
		header = link->early ? coll_chunk_first(&header, end) :
				       coll_chunk_rest(&header, link->payload_left);
	give(giving, &header, link->header_got);
	if (link->early)
		give(giving, link->early->data, end - link->payload_left);
	give(giving, link->stage + link->stage_at, link->stage_end - link->stage_at);
}

/* The stream as if nothing of what is given had left the socket. */
static void give_stream(struct kcoll_link *link, struct giving *giving)
{
	const struct coll_header bye = {
		.kind = COLL_MESSAGE_BYE,
		.version = COLL_WIRE_VERSION,
	};
	const struct kcoll_early *early;
	struct coll_header header;

	list_for_each_entry(early, &link->group->early, node) {
		if (!belongs_to(early, link))
			continue;
		header = coll_chunk_first(&early->header, early->got);
		give(giving, &header, sizeof(header));
		give(giving, early->data, early->got);
	}
	if (link->state == COLL_LINK_LEFT)
		give(giving, &bye, sizeof(bye));
	give_begun(link, giving);
}

static void forget_stream(struct kcoll_link *link)
{
	struct kcoll_early *early, *next;

	list_for_each_entry_safe(early, next, &link->group->early, node)
		if (early->rank == link->rank)
			kcoll_group_early_free(link->group, early);
	link->early = NULL;
	link->header_got = 0;
	link->payload_left = 0;
	link->stalled = false;
	link->stage_at = 0;
	link->stage_end = 0;
}

static bool busy(const struct kcoll_link *link)
{
	const struct kcoll_running *run;

	list_for_each_entry(run, &link->group->runs, node)
		if (!run->over)
			return true;
	return link->queue || link->run;
}

long kcoll_link_unlend(struct kcoll_link *link, const struct coll_device_link *asked)
{
	struct giving giving = { .address = asked->address, .room = asked->bytes };

	if (busy(link))
		return -EBUSY;
	give_stream(link, &giving);
	if (giving.fault)
		return -EFAULT;
	if (giving.bytes > INT_MAX)
		return -EMSGSIZE;
	if (giving.bytes > giving.room)
		return giving.bytes;
	forget_stream(link);
	let_socket_go(link);
	clear_bit(0, &link->woken);
	link->state = COLL_LINK_ABSENT;
	link->answered = 0;
	link->broken = false;
	return giving.bytes;
}

/* ---- the thread's turn --------------------------------------------------------------- */

static int receive_stage(struct kcoll_link *link)
{
	struct msghdr message = { .msg_flags = MSG_DONTWAIT };
	struct kvec piece = { link->stage, COLL_STAGE_BYTES };
	int got = kernel_recvmsg(link->socket, &message, &piece, 1, COLL_STAGE_BYTES,
				 MSG_DONTWAIT);

	if (got > 0) {
		link->stage_at = 0;
		link->stage_end = got;
	}
	return got;
}

/* Straight to where it belongs. */
static int receive_payload(struct kcoll_link *link)
{
	struct msghdr message = { .msg_flags = MSG_DONTWAIT };
	const u64 done = payload_done(link);
	u64 bytes = min_t(u64, link->payload_left, COLL_TURN_BYTES);
	struct bio_vec bvec[COLL_BVECS];
	struct kvec piece;
	int n, got;

	if (link->run) {
		n = kcoll_run_bvecs(link->run, link->op, done, &bytes, bvec, COLL_BVECS);
		iov_iter_bvec(&message.msg_iter, ITER_DEST, bvec, n, bytes);
	} else {
		piece.iov_base = link->early->data + done;
		piece.iov_len = bytes;
		iov_iter_kvec(&message.msg_iter, ITER_DEST, &piece, 1, bytes);
	}
	got = sock_recvmsg(link->socket, &message, MSG_DONTWAIT);
	if (got > 0) {
		link->payload_left -= got;
		if (!link->payload_left)
			chunk_done(link);
	}
	return got;
}

/* Whether there may be more to receive at once. */
static bool link_turn_receive(struct kcoll_link *link)
{
	u64 done = 0;

	if (link->stalled) {
		link->stalled = !header_done(link);
		if (link->stalled)
			return false;
		if (!link->payload_left)
			chunk_done(link);
		consume(link);
	}
	while (link->state != COLL_LINK_LOST && !link->stalled) {
		bool direct = link->header_got == sizeof(link->header) &&
			      link->payload_left >= COLL_STAGE_BYTES &&
			      (link->run || link->early);
		int got = direct ? receive_payload(link) : receive_stage(link);

		if (got == -EAGAIN && !link->broken)
			return false;
		if (got <= 0) {
			link_lost(link, got);
			return false;
		}
		link->group->device->counters.recv_bytes += got;
		if (!direct)
			consume(link);
		done += got;
		if (done >= COLL_TURN_BYTES)
			return true;
	}
	return false;
}

bool kcoll_link_turn(struct kcoll_link *link)
{
	bool more;

	if (!link->socket || link->state == COLL_LINK_LOST)
		return false;
	more = link_turn_receive(link);
	return link_turn_send(link) || more;
}
