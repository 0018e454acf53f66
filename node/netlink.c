// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>

#include "netlink.h"
#include "netlink_names.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define MESSAGE_BYTES (256 * 1024)	/* 1024 rules of pinning */
#define ANSWER_BYTES (MESSAGE_BYTES + 64 * 1024)	/* a refusal has the whole message in it */

enum { ATTRIBUTES_MAX = 64, DEADLINE_SECONDS = 10 };

struct netlink {
	struct nl_sock *socket;
	int family;
	enum coll_command asked;
	bool done;
	int error;
	netlink_answer answer;
	void *data;
	char reason[512];
};

/* ---- refusals in words ---------------------------------------------------- */

const char *netlink_attribute_name(enum coll_command command, int attribute)
{
	const char *const *names = noise_attributes;
	size_t count = LENGTH(noise_attributes);

	if (command >= COLL_CMD_CIRCUIT_DOMAIN) {
		names = circuit_attributes;
		count = LENGTH(circuit_attributes);
	} else if (command >= COLL_CMD_PIN_SET) {
		names = pin_attributes;
		count = LENGTH(pin_attributes);
	} else if (command >= COLL_CMD_WATCH_START) {
		names = watch_attributes;
		count = LENGTH(watch_attributes);
	}
	if (command == COLL_CMD_EVENT) {
		names = event_attributes;
		count = LENGTH(event_attributes);
	}
	return attribute > 0 && (size_t)attribute < count ? names[attribute] : "?";
}

int netlink_fail(struct netlink *netlink, int error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(netlink->reason, sizeof(netlink->reason), format, arguments);
	va_end(arguments);
	return error;
}

static int fail_nl(struct netlink *netlink, int nl_error, const char *what)
{
	int error = nl_error == -NLE_NOMEM ? -ENOMEM : nl_error == -NLE_AGAIN ? -ETIMEDOUT : -EIO;

	return netlink_fail(netlink, error, "%s: %s", what, nl_geterror(nl_error));
}

/* Attributes of another type or length than these are not read. */
static const struct nla_policy refusal_policy[NLMSGERR_ATTR_MAX + 1] = {
	[NLMSGERR_ATTR_MSG] = { .type = NLA_STRING },
	[NLMSGERR_ATTR_OFFS] = { .type = NLA_U32 },
	[NLMSGERR_ATTR_POLICY] = { .type = NLA_NESTED },
	[NLMSGERR_ATTR_MISS_TYPE] = { .type = NLA_U32 },
};

static const struct nla_policy range_policy[NL_POLICY_TYPE_ATTR_MAX + 1] = {
	[NL_POLICY_TYPE_ATTR_MIN_VALUE_U] = { .type = NLA_U64 },
	[NL_POLICY_TYPE_ATTR_MAX_VALUE_U] = { .type = NLA_U64 },
	[NL_POLICY_TYPE_ATTR_MIN_LENGTH] = { .type = NLA_U32 },
	[NL_POLICY_TYPE_ATTR_MAX_LENGTH] = { .type = NLA_U32 },
};

/* The reason, or else the error's text. A string of the kernel ends with a zero. */
static const char *refusal_text(struct nlattr **member, int error)
{
	const struct nlattr *said = member[NLMSGERR_ATTR_MSG];
	const char *text = said ? nla_data(said) : NULL;

	return text && *text && memchr(text, 0, nla_len(said)) ? text :
	       strerror(error < 0 && error != INT_MIN ? -error : EPROTO);
}

/* What the kernel's policy allows: " (valid: 1 to 9000)", or nothing. */
static void print_range(char *to, size_t bytes, struct nlattr *policy)
{
	struct nlattr *member[NL_POLICY_TYPE_ATTR_MAX + 1];

	to[0] = '\0';
	if (!policy || nla_parse_nested(member, NL_POLICY_TYPE_ATTR_MAX, policy,
					(struct nla_policy *)range_policy))
		return;
	if (member[NL_POLICY_TYPE_ATTR_MIN_VALUE_U] && member[NL_POLICY_TYPE_ATTR_MAX_VALUE_U])
		snprintf(to, bytes, " (valid: %" PRIu64 " to %" PRIu64 ")",
			 nla_get_u64(member[NL_POLICY_TYPE_ATTR_MIN_VALUE_U]),
			 nla_get_u64(member[NL_POLICY_TYPE_ATTR_MAX_VALUE_U]));
	else if (member[NL_POLICY_TYPE_ATTR_MIN_LENGTH] && member[NL_POLICY_TYPE_ATTR_MAX_LENGTH])
		snprintf(to, bytes, " (valid: %u to %u bytes)",
			 nla_get_u32(member[NL_POLICY_TYPE_ATTR_MIN_LENGTH]),
			 nla_get_u32(member[NL_POLICY_TYPE_ATTR_MAX_LENGTH]));
	else if (member[NL_POLICY_TYPE_ATTR_MAX_LENGTH])
		snprintf(to, bytes, " (valid: up to %u bytes)",
			 nla_get_u32(member[NL_POLICY_TYPE_ATTR_MAX_LENGTH]));
}

/* What was refused: the message without its header, as far as the refusal has it. */
static uint32_t refused_bytes(const struct nlmsghdr *header, const struct nlmsgerr *error)
{
	const uint32_t follows = header->nlmsg_len - NLMSG_HDRLEN - sizeof(*error);
	const uint32_t said = error->msg.nlmsg_len < NLMSG_HDRLEN ? 0 :
			      error->msg.nlmsg_len - NLMSG_HDRLEN;

	if (header->nlmsg_flags & NLM_F_CAPPED)
		return 0;
	return said < follows ? said : follows;
}

/* The type of the attribute at that offset into the message that was refused. */
static int attribute_at(const struct nlmsgerr *error, uint32_t bytes, uint32_t offset)
{
	const struct nlattr *attribute = (const void *)((const char *)&error->msg + offset);

	if (offset < NLMSG_HDRLEN + GENL_HDRLEN || offset % NLA_ALIGNTO ||
	    offset > NLMSG_HDRLEN + bytes || NLMSG_HDRLEN + bytes - offset < NLA_HDRLEN)
		return 0;
	return attribute->nla_type & NLA_TYPE_MASK;
}

/* The module's own texts begin with the attribute; the kernel's policy does not know it. */
static void netlink_explain(struct netlink *netlink, const struct nlmsgerr *error,
			    uint32_t bytes, struct nlattr **member)
{
	const char *text = refusal_text(member, error->error);
	const char *name = "";
	char range[80];

	if (member[NLMSGERR_ATTR_OFFS])
		name = netlink_attribute_name(netlink->asked, attribute_at(error,
				bytes, nla_get_u32(member[NLMSGERR_ATTR_OFFS])));
	if (member[NLMSGERR_ATTR_MISS_TYPE])
		name = netlink_attribute_name(netlink->asked,
					      nla_get_u32(member[NLMSGERR_ATTR_MISS_TYPE]));
	if (!strncmp(text, name, strlen(name)) && text[strlen(name)] == ':')
		name = "";
	print_range(range, sizeof(range), member[NLMSGERR_ATTR_POLICY]);
	netlink_fail(netlink, 0, "%s%s%s%s", name, *name ? ": " : "", text, range);
}

static int netlink_refused(struct sockaddr_nl *from, struct nlmsgerr *error, void *data)
{
	const struct nlmsghdr *header = (void *)((char *)error - NLMSG_HDRLEN);
	struct nlattr *member[NLMSGERR_ATTR_MAX + 1] = { 0 };
	struct netlink *netlink = data;
	const uint32_t bytes = refused_bytes(header, error), offset = sizeof(*error) + bytes;

	(void)from;
	if (header->nlmsg_flags & NLM_F_ACK_TLVS)
		nla_parse(member, NLMSGERR_ATTR_MAX, (void *)((char *)error + offset),
			  header->nlmsg_len - NLMSG_HDRLEN - offset,
			  (struct nla_policy *)refusal_policy);
	netlink_explain(netlink, error, bytes, member);
	if (error->error == -EPERM && !member[NLMSGERR_ATTR_MSG])
		netlink_fail(netlink, 0, "needs CAP_NET_ADMIN: are you root?");
	netlink->error = error->error;
	netlink->done = true;
	return NL_STOP;
}

/* ---- what comes ----------------------------------------------------------- */

static int netlink_answered(struct nl_msg *message, void *data)
{
	struct nlattr *attributes[ATTRIBUTES_MAX + 1] = { 0 };
	struct nlmsghdr *header = nlmsg_hdr(message);
	const struct genlmsghdr *genl = nlmsg_data(header);
	struct netlink *netlink = data;
	int error;

	if (header->nlmsg_type != netlink->family || !netlink->answer)
		return NL_OK;
	error = genlmsg_parse(header, 0, attributes, ATTRIBUTES_MAX, NULL);
	if (!error)
		error = netlink->answer(genl->cmd, attributes, netlink->data);
	if (error < 0 && !netlink->error)
		netlink->error = netlink_fail(netlink, error, "an answer was not understood");
	if (error <= 0)
		return NL_OK;
	netlink->done = true;
	return NL_STOP;
}

/* The end of a dump carries its error, if it has one, and perhaps the reason. */
static int netlink_finished(struct nl_msg *message, void *data)
{
	struct nlmsghdr *header = nlmsg_hdr(message);
	struct nlattr *member[NLMSGERR_ATTR_MAX + 1] = { 0 };
	struct netlink *netlink = data;
	int error = 0;

	if (nlmsg_datalen(header) >= (int)sizeof(error))
		memcpy(&error, nlmsg_data(header), sizeof(error));
	if (header->nlmsg_flags & NLM_F_ACK_TLVS)
		nlmsg_parse(header, sizeof(error), member, NLMSGERR_ATTR_MAX,
			    (struct nla_policy *)refusal_policy);
	if (error < 0 && !netlink->error)
		netlink->error = netlink_fail(netlink, error, "%s", refusal_text(member, error));
	netlink->done = true;
	return NL_STOP;
}

static int netlink_acknowledged(struct nl_msg *message, void *data)
{
	(void)message;
	((struct netlink *)data)->done = true;
	return NL_STOP;
}

static int any_number(struct nl_msg *message, void *data)
{
	(void)message;
	(void)data;
	return NL_OK;
}

/* ---- sockets -------------------------------------------------------------- */

static int set_up(struct netlink *netlink)
{
	const struct timeval deadline = { .tv_sec = DEADLINE_SECONDS };
	const int on = 1;
	int error, fd;

	error = genl_connect(netlink->socket);
	if (error)
		return fail_nl(netlink, error, "netlink socket");
	fd = nl_socket_get_fd(netlink->socket);
	setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof(deadline));
	nl_socket_set_buffer_size(netlink->socket, 1 << 20, 1 << 20);
	nl_socket_set_msg_buf_size(netlink->socket, ANSWER_BYTES);

	netlink->family = genl_ctrl_resolve(netlink->socket, COLL_GENL_NAME);
	if (netlink->family < 0)
		return netlink_fail(netlink, -ENOENT, "coll.ko is not loaded: insmod it as root");

	nl_socket_modify_cb(netlink->socket, NL_CB_VALID, NL_CB_CUSTOM, netlink_answered, netlink);
	nl_socket_modify_cb(netlink->socket, NL_CB_FINISH, NL_CB_CUSTOM, netlink_finished, netlink);
	nl_socket_modify_cb(netlink->socket, NL_CB_ACK, NL_CB_CUSTOM, netlink_acknowledged,
			    netlink);
	nl_socket_modify_err_cb(netlink->socket, NL_CB_CUSTOM, netlink_refused, netlink);
	return 0;
}

int netlink_open(struct netlink **netlink)
{
	*netlink = calloc(1, sizeof(**netlink));
	if (!*netlink)
		return -ENOMEM;
	(*netlink)->socket = nl_socket_alloc();
	if (!(*netlink)->socket)
		return netlink_fail(*netlink, -ENOMEM, "no memory");
	return set_up(*netlink);
}

void netlink_close(struct netlink *netlink)
{
	if (!netlink)
		return;
	nl_socket_free(netlink->socket);
	free(netlink);
}

const char *netlink_reason(const struct netlink *netlink)
{
	return netlink ? netlink->reason : "no memory";
}

int netlink_fd(const struct netlink *netlink)
{
	return nl_socket_get_fd(netlink->socket);
}

int netlink_family(const struct netlink *netlink)
{
	return netlink->family;
}

/* ---- asking --------------------------------------------------------------- */

struct nl_msg *netlink_message(struct netlink *netlink, enum coll_command command, int flags)
{
	struct nl_msg *message = nlmsg_alloc_size(MESSAGE_BYTES);

	if (message && genlmsg_put(message, NL_AUTO_PORT, NL_AUTO_SEQ, netlink->family, 0, flags,
				   command, COLL_GENL_VERSION))
		return message;
	nlmsg_free(message);
	return NULL;
}

static void netlink_begin(struct netlink *netlink, netlink_answer answer, void *data)
{
	netlink->answer = answer;
	netlink->data = data;
	netlink->done = false;
	netlink->error = 0;
	netlink->reason[0] = '\0';
}

int netlink_ask(struct netlink *netlink, struct nl_msg *message, netlink_answer answer,
		void *data)
{
	int error;

	netlink_begin(netlink, answer, data);
	if (!message)
		return netlink_fail(netlink, -ENOMEM, "no memory");
	netlink->asked = ((struct genlmsghdr *)nlmsg_data(nlmsg_hdr(message)))->cmd;
	error = nl_send_auto(netlink->socket, message);
	nlmsg_free(message);
	if (error < 0)
		return fail_nl(netlink, error, "sending");
	while (!netlink->done) {
		error = nl_recvmsgs_default(netlink->socket);
		if (error < 0 && !netlink->done)
			return fail_nl(netlink, error, "receiving");
	}
	return netlink->error;
}

int netlink_listen(struct netlink *netlink)
{
	const int group = genl_ctrl_resolve_grp(netlink->socket, COLL_GENL_NAME, COLL_GENL_EVENTS);
	const int error = group < 0 ? group : nl_socket_add_membership(netlink->socket, group);

	if (error == -NLE_PERM)
		return netlink_fail(netlink, -EPERM, "listening to events needs CAP_NET_ADMIN");
	if (error)
		return netlink_fail(netlink, -ENOENT,
				    "the group '" COLL_GENL_EVENTS "' is not to be had");
	nl_socket_modify_cb(netlink->socket, NL_CB_SEQ_CHECK, NL_CB_CUSTOM, any_number, NULL);
	return 0;
}

int netlink_events(struct netlink *netlink, netlink_answer answer, void *data)
{
	int error;

	netlink_begin(netlink, answer, data);
	error = nl_recvmsgs_default(netlink->socket);
	if (error < 0 && !netlink->error)
		return fail_nl(netlink, error, "receiving");
	return netlink->error;
}
