// SPDX-License-Identifier: GPL-2.0
/*
 * Sockets are attached to links and detached. Bytes that one side has read from the
 * socket and not used go to the other, in the order of the stream.
 */
#include <linux/file.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <net/inet_connection_sock.h>
#include <net/sock.h>

#include "kmod/common/subsystem.h"
#include "link.h"

/* ---- attach -------------------------------------------------------------------- */

/* In softirq, with the socket's wait queue locked. */
static int socket_woke(wait_queue_entry_t *wait, unsigned int mode, int sync, void *key)
{
	kcoll_link_wake(container_of(wait, struct kcoll_link, wait));
	return 0;
}

struct kcoll_wait_table {
	poll_table table;
	struct kcoll_link *link;
};

static void wait_install(struct file *file, wait_queue_head_t *head, poll_table *table)
{
	struct kcoll_link *link = container_of(table, struct kcoll_wait_table, table)->link;

	if (link->wait_head)	/* a TCP socket has one queue */
		return;
	link->wait_head = head;
	add_wait_queue(head, &link->wait);
}

/* Only connected TCP sockets without an upper layer protocol such as TLS. */
static int socket_check(struct socket *socket)
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

static int attach_socket(struct kcoll_link *link, int fd)
{
	struct kcoll_wait_table install = { .link = link };
	int error;

	link->socket = sockfd_lookup(fd, &error);
	if (!link->socket)
		return error;
	error = socket_check(link->socket);
	link->stage = error ? NULL : kmalloc(COLL_STAGE_BYTES, COLL_GFP);
	if (!error && !link->stage)
		error = -ENOMEM;
	if (error) {
		kcoll_link_release(link);
		return error;
	}
	kcoll_link_set_state(link, COLL_LINK_UP);
	init_waitqueue_func_entry(&link->wait, socket_woke);
	init_poll_funcptr(&install.table, wait_install);
	vfs_poll(link->socket->file, &install.table);
	return 0;
}

/* Bytes that the program has read come before those still in the socket. */
static int attach_bytes(struct kcoll_link *link, const struct coll_device_link *asked)
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
			link->set->ops->failed(link, -EFAULT, link->set->rank, link->rank);
			return -EFAULT;
		}
		kcoll_link_consume(link);
		if (fatal_signal_pending(current)) {
			link->set->ops->failed(link, -EINTR, link->set->rank, link->rank);
			return -EINTR;
		}
		cond_resched();	/* the bytes may be terabytes, and nothing else here sleeps */
	}
	link->handed = false;
	return 0;
}

int kcoll_link_attach(struct kcoll_link *link, const struct coll_device_link *asked)
{
	int error;

	lockdep_assert_held(link->set->lock);
	if (link->state != COLL_LINK_ABSENT)
		return -EEXIST;
	error = attach_socket(link, asked->fd);
	link->heard = asked->bytes || asked->flags & COLL_DEVICE_HEARD;
	if (!error && asked->bytes)
		error = attach_bytes(link, asked);
	if (!error && link->state == COLL_LINK_UP && asked->flags & COLL_DEVICE_PAIRS)
		kcoll_pair_join(link);
	kcoll_link_wake(link);
	return error;
}

/* ---- detach -------------------------------------------------------------------- */

/* Where the detached bytes go; beyond its capacity they are only counted. */
struct detached {
	u64 address, capacity, bytes;
	bool fault;
};

static void detach_put(struct detached *out, const void *from, u64 bytes)
{
	if (out->bytes + bytes <= out->capacity &&
	    copy_to_user((void __user *)(unsigned long)(out->address + out->bytes), from,
			 bytes))
		out->fault = true;
	out->bytes += bytes;
}

static bool belongs_to(const struct kcoll_unexpected *message, const struct kcoll_link *link)
{
	return message->rank == link->rank && message != link->unexpected;
}

/* The message in progress. Of a discarded one, only the rest. */
static void detach_begun(struct kcoll_link *link, struct detached *out)
{
	struct coll_header header = link->header;
	const u64 end = header.offset + coll_chunk_bytes(&header);

	if (link->header_got == sizeof(header) && !kcoll_link_stalled(link))
		header = link->unexpected ? coll_chunk_first(&header, end) :
				       coll_chunk_rest(&header, link->payload_left);
	detach_put(out, &header, link->header_got);
	if (link->unexpected)
		detach_put(out, link->unexpected->data, end - link->payload_left);
	detach_put(out, link->stage + link->stage_at, link->stage_end - link->stage_at);
}

/* The stream as if nothing of it had been read from the socket. */
static void detach_stream(struct kcoll_link *link, struct detached *out)
{
	const struct coll_header bye = {
		.kind = COLL_MESSAGE_BYE,
		.version = COLL_WIRE_VERSION,
	};
	const struct kcoll_unexpected *message;
	struct coll_header header;

	list_for_each_entry(message, &link->set->unexpected, node) {
		if (!belongs_to(message, link))
			continue;
		header = coll_chunk_first(&message->header, message->got);
		detach_put(out, &header, sizeof(header));
		detach_put(out, message->data, message->got);
	}
	if (link->left)
		detach_put(out, &bye, sizeof(bye));
	detach_begun(link, out);
}

static void detach_forget(struct kcoll_link *link)
{
	struct kcoll_unexpected *message, *next;

	list_for_each_entry_safe(message, next, &link->set->unexpected, node)
		if (message->rank == link->rank)
			kcoll_unexpected_free(link->set, message);
	link->unexpected = NULL;
	link->header_got = 0;
	link->payload_left = 0;
	link->stage_at = 0;
	link->stage_end = 0;
}

/*
 * For good, also if it is not detached yet: the next to read its stream may be the program. False: the
 * peer is copying a message.
 */
static bool link_unpair(struct kcoll_link *link)
{
	if (!kcoll_link_withdraw(link))
		return false;
	if (link->from_pair)
		kcoll_link_forsake(link);
	kcoll_pair_leave(link);
	kcoll_link_wake(link);
	return true;
}

long kcoll_link_detach(struct kcoll_link *link, const struct coll_device_link *asked)
{
	struct detached out = { .address = asked->address, .capacity = asked->bytes };

	lockdep_assert_held(link->set->lock);
	if (link->run || link->queue)
		return -EBUSY;
	if (!link_unpair(link) || link->queue)
		return -EBUSY;
	detach_stream(link, &out);
	if (out.fault)
		return -EFAULT;
	if (out.bytes > INT_MAX)
		return -EMSGSIZE;
	if (out.bytes > out.capacity)
		return out.bytes;
	detach_forget(link);
	kcoll_link_release(link);
	kcoll_link_set_state(link, COLL_LINK_ABSENT);
	link->answered = 0;
	link->broken = false;
	return out.bytes;
}

/* ---- free, poll ---------------------------------------------------------------- */

void kcoll_link_free(struct kcoll_link *link)
{
	lockdep_assert_held(link->set->lock);
	if (link->socket && link->state != COLL_LINK_LOST)
		kcoll_link_poll_send(link);	/* a goodbye, if the socket takes it at once */
	kcoll_link_discard(link);
	kcoll_link_release(link);
	kfree(link);
}

bool kcoll_link_poll(struct kcoll_link *link)
{
	bool more;

	lockdep_assert_held(link->set->lock);
	if (!link->socket || link->state == COLL_LINK_LOST)
		return false;
	more = kcoll_link_poll_receive(link);
	return kcoll_link_poll_send(link) || more;
}
