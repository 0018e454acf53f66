// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "peer.h"

/* The end of a connection that is at `from`. */
static struct inet_diag_sockid peer_id(const struct sockaddr_in *from, const struct sockaddr_in *to)
{
	struct inet_diag_sockid id = { .idiag_sport = from->sin_port, .idiag_dport = to->sin_port,
				       .idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } };

	id.idiag_src[0] = from->sin_addr.s_addr;
	id.idiag_dst[0] = to->sin_addr.s_addr;
	return id;
}

static bool peer_ask(int netlink, const struct inet_diag_sockid *id)
{
	struct {
		struct nlmsghdr head;
		struct inet_diag_req_v2 of;
	} message = {
		.head = { .nlmsg_len = sizeof(message), .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST },
		.of = { .sdiag_family = AF_INET, .sdiag_protocol = IPPROTO_TCP, .idiag_states = -1, .id = *id },
	};
	const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };

	return sendto(netlink, &message, sizeof(message), 0, (const struct sockaddr *)&kernel, sizeof(kernel)) ==
	       sizeof(message);
}

/* Where there is no such end the kernel answers with a socket that listens at its port. */
static bool peer_is(const struct inet_diag_msg *found, const struct inet_diag_sockid *id)
{
	return found->idiag_family == AF_INET && found->id.idiag_sport == id->idiag_sport && found->id.idiag_dport == id->idiag_dport &&
	       found->id.idiag_src[0] == id->idiag_src[0] && found->id.idiag_dst[0] == id->idiag_dst[0];
}

/* The answer is there when the question was sent. An end that was closed is said to be root's, and has no inode. */
static bool peer_hear(int netlink, const struct inet_diag_sockid *id, u64 *who)
{
	struct {
		struct nlmsghdr head;
		struct inet_diag_msg of;
		char more[4096];
	} message;
	const ssize_t got = recv(netlink, &message, sizeof(message), MSG_DONTWAIT);

	if (got < (ssize_t)offsetof(typeof(message), more) || message.head.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
	    !peer_is(&message.of, id))
		return false;
	if (!message.of.idiag_inode)
		*who = COLLD_PEER_GONE;
	else if (message.of.idiag_uid)
		*who = colld_peer_user(message.of.idiag_uid);
	else
		return false;
	return true;
}

u64 colld_peer_find(int fd)
{
	struct sockaddr_in peer = { .sin_family = AF_UNSPEC }, here = { .sin_family = AF_UNSPEC };
	socklen_t peer_bytes = sizeof(peer), here_bytes = sizeof(here);
	struct inet_diag_sockid id;
	bool found = false;
	u64 who = 0;
	int netlink;

	if (getpeername(fd, (struct sockaddr *)&peer, &peer_bytes) || peer.sin_family != AF_INET ||
	    getsockname(fd, (struct sockaddr *)&here, &here_bytes))
		return colld_peer_address(htonl(INADDR_LOOPBACK));
	netlink = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (netlink >= 0) {
		id = peer_id(&peer, &here);
		found = peer_ask(netlink, &id) && peer_hear(netlink, &id, &who);
		close(netlink);
	}
	if (found)
		return who;
	if (ntohl(peer.sin_addr.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET)
		return colld_peer_address(htonl(INADDR_LOOPBACK));
	return colld_peer_address(peer.sin_addr.s_addr);
}
