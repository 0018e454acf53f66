// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * What coll.ko, or another that has its name, may answer: messages of the family, refusals with
 * their attributes, and the ends of dumps. Nothing beyond a message is read, and a refusal has a
 * reason.
 */
#include "node/netlink.c"
#include "fuzz.h"

enum { FAMILY = 30, MESSAGE_MAX = 8192 };

static int take_attributes(enum coll_command command, struct nlattr **attributes, void *data)
{
	uint64_t *sum = data;
	int i;

	for (i = 0; i <= ATTRIBUTES_MAX; i++)
		if (attributes[i])
			*sum += nla_len(attributes[i]) + strlen(netlink_attribute_name(command, i));
	return 0;
}

enum message { MESSAGE_ANSWER, MESSAGE_REFUSAL, MESSAGE_END, MESSAGES };

/*
 * A message has the length that it says, as libnl makes sure: of exactly this size, so no byte
 * beyond is read. Its attributes are as they come.
 */
static struct nl_msg *message_of(struct fuzz_input *in, enum message kind)
{
	const uint8_t flags = fuzz_byte(in);
	const uint8_t *text;
	const size_t bytes = fuzz_some(in, &text, MESSAGE_MAX);
	struct nlmsghdr *header = malloc(NLMSG_HDRLEN + bytes);
	struct nl_msg *message;

	fuzz_must(header != NULL, "out of memory");
	*header = (struct nlmsghdr){
		.nlmsg_len = NLMSG_HDRLEN + bytes,
		.nlmsg_type = kind == MESSAGE_REFUSAL ? NLMSG_ERROR :
			      kind == MESSAGE_END     ? NLMSG_DONE :
							FAMILY,
		.nlmsg_flags = (flags & 1 ? NLM_F_CAPPED : 0) | (flags & 2 ? NLM_F_ACK_TLVS : 0),
	};
	memcpy((char *)header + NLMSG_HDRLEN, text, bytes);
	message = nlmsg_convert(header);
	free(header);
	return message;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct fuzz_input in = { data, bytes };
	struct netlink netlink = { .family = FAMILY, .answer = take_attributes };
	const enum message kind = fuzz_byte(&in) % MESSAGES;
	struct nl_msg *message;
	struct nlmsghdr *header;
	uint64_t sum = 0;

	netlink.data = &sum;
	netlink.asked = fuzz_byte(&in) % (COLL_CMD_EVENT + 1);
	message = message_of(&in, kind);
	header = nlmsg_hdr(message);
	if (kind == MESSAGE_ANSWER && nlmsg_datalen(header) >= (int)sizeof(struct genlmsghdr))
		netlink_answered(message, &netlink);
	if (kind == MESSAGE_END)
		netlink_finished(message, &netlink);
	/* libnl itself looks for the refusal's fixed part. */
	if (kind == MESSAGE_REFUSAL && nlmsg_datalen(header) >= (int)sizeof(struct nlmsgerr)) {
		netlink_refused(NULL, nlmsg_data(header), &netlink);
		fuzz_must(netlink.reason[0], "a refusal without a reason");
	}
	fuzz_must(memchr(netlink.reason, 0, sizeof(netlink.reason)) != NULL,
		  "a reason without an end");
	nlmsg_free(message);
	return 0;
}

static void take_message(enum message kind, enum coll_command asked, uint8_t flags,
			 struct nl_msg *message, take_seed *take, void *argument)
{
	const struct nlmsghdr *header = nlmsg_hdr(message);
	uint8_t seed[1024] = { kind, asked, flags };
	const size_t bytes = header->nlmsg_len - NLMSG_HDRLEN;

	fuzz_must(bytes <= sizeof(seed) - 3, "a seed is too long");
	memcpy(seed + 3, (const char *)header + NLMSG_HDRLEN, bytes);
	take(seed, 3 + bytes, argument);
	nlmsg_free(message);
}

static void take_refusal(take_seed *take, void *argument)
{
	struct nl_msg *message = nlmsg_alloc_simple(NLMSG_ERROR, 0);
	struct nlmsgerr error = { .error = -EINVAL, .msg.nlmsg_len = NLMSG_HDRLEN + GENL_HDRLEN + 8 };
	struct nlattr *nest;

	nlmsg_append(message, &error, sizeof(error), 0);
	nla_put_string(message, NLMSGERR_ATTR_MSG, "share: too large");
	nla_put_u32(message, NLMSGERR_ATTR_OFFS, NLMSG_HDRLEN + GENL_HDRLEN);
	nest = nla_nest_start(message, NLMSGERR_ATTR_POLICY);
	nla_put_u64(message, NL_POLICY_TYPE_ATTR_MIN_VALUE_U, 1);
	nla_put_u64(message, NL_POLICY_TYPE_ATTR_MAX_VALUE_U, 9000);
	nla_nest_end(message, nest);
	take_message(MESSAGE_REFUSAL, COLL_CMD_NOISE_STOP, 3, message, take, argument);
}

void fuzz_seeds(take_seed *take, void *argument)
{
	struct genlmsghdr genl = { .cmd = COLL_CMD_PIN_GET, .version = COLL_GENL_VERSION };
	struct nl_msg *message = nlmsg_alloc_simple(FAMILY, 0);
	int error = -ENOENT;

	nlmsg_append(message, &genl, sizeof(genl), NLMSG_ALIGNTO);
	nla_put_u64(message, COLL_PIN_A_MATCHED, 7);
	nla_put_string(message, COLL_PIN_A_COMM, "kworker");
	take_message(MESSAGE_ANSWER, COLL_CMD_PIN_GET, 0, message, take, argument);
	message = nlmsg_alloc_simple(NLMSG_DONE, 0);
	nlmsg_append(message, &error, sizeof(error), NLMSG_ALIGNTO);
	nla_put_string(message, NLMSGERR_ATTR_MSG, "no such thing");
	take_message(MESSAGE_END, COLL_CMD_PIN_GET, 2, message, take, argument);
	take_refusal(take, argument);
}
