// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <arpa/inet.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "crossbar.h"

enum { DEVICES_MAX = 1024, PRIORITY = 1, HANDLE = 1 };

#define INGRESS TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS)

static int crossbar_bpf(enum bpf_cmd command, union bpf_attr *attribute)
{
	const int result = syscall(SYS_bpf, command, attribute, sizeof(*attribute));

	return result < 0 ? -errno : result;
}

/* ---- the table ------------------------------------------------------------ */

int crossbar_lead(const struct crossbar *crossbar, int in, int out)
{
	const uint32_t key = in, value = out;
	union bpf_attr set = { .map_fd = crossbar->table, .key = (uintptr_t)&key,
			       .value = (uintptr_t)&value };

	return crossbar_bpf(BPF_MAP_UPDATE_ELEM, &set);
}

int crossbar_where(const struct crossbar *crossbar, int in)
{
	const uint32_t key = in;
	uint32_t value = 0;
	union bpf_attr get = { .map_fd = crossbar->table, .key = (uintptr_t)&key,
			       .value = (uintptr_t)&value };

	return crossbar_bpf(BPF_MAP_LOOKUP_ELEM, &get) ? 0 : (int)value;
}

static int make_table(void)
{
	union bpf_attr table = { .map_type = BPF_MAP_TYPE_HASH, .key_size = sizeof(uint32_t),
				 .value_size = sizeof(uint32_t), .max_entries = DEVICES_MAX,
				 .map_name = "crossbar" };

	return crossbar_bpf(BPF_MAP_CREATE, &table);
}

/* ---- the program ---------------------------------------------------------- */

static struct bpf_insn crossbar_insn(int code, int to, int from, int offset, int value)
{
	return (struct bpf_insn){ .code = code, .dst_reg = to, .src_reg = from, .off = offset,
				  .imm = value };
}

/*
 * out = table[skb->ifindex]; return out ? redirect_peer(out) : drop
 * redirect_peer() delivers at the other end of the veth: one queue and one softirq less.
 */
static int make_program(int table)
{
	static const char license[] = "Dual BSD/GPL";
	const struct bpf_insn program[] = {
		crossbar_insn(BPF_LDX | BPF_MEM | BPF_W, BPF_REG_2, BPF_REG_1,
			      offsetof(struct __sk_buff, ifindex), 0),
		crossbar_insn(BPF_STX | BPF_MEM | BPF_W, BPF_REG_10, BPF_REG_2, -4, 0),
		crossbar_insn(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_2, BPF_REG_10, 0, 0),
		crossbar_insn(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_2, 0, 0, -4),
		crossbar_insn(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, table),
		crossbar_insn(0, 0, 0, 0, 0),
		crossbar_insn(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_lookup_elem),
		crossbar_insn(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, 5, 0),
		crossbar_insn(BPF_LDX | BPF_MEM | BPF_W, BPF_REG_1, BPF_REG_0, 0, 0),
		crossbar_insn(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_1, 0, 3, 0),
		crossbar_insn(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_2, 0, 0, 0),
		crossbar_insn(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_redirect_peer),
		crossbar_insn(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
		crossbar_insn(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, TC_ACT_SHOT),
		crossbar_insn(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	union bpf_attr load = { .prog_type = BPF_PROG_TYPE_SCHED_CLS,
				.insn_cnt = sizeof(program) / sizeof(program[0]),
				.insns = (uintptr_t)program, .license = (uintptr_t)license,
				.prog_name = "crossbar" };

	return crossbar_bpf(BPF_PROG_LOAD, &load);
}

/* ---- devices -------------------------------------------------------------- */

int crossbar_attach(const struct crossbar *crossbar, struct nl_sock *socket, int device)
{
	struct tcmsg tc = { .tcm_family = AF_UNSPEC, .tcm_ifindex = device, .tcm_parent = INGRESS,
			    .tcm_handle = HANDLE,
			    .tcm_info = TC_H_MAKE(PRIORITY << 16, htons(ETH_P_ALL)) };
	struct nl_msg *message = nlmsg_alloc_simple(RTM_NEWTFILTER, NLM_F_CREATE);
	struct nlattr *options;
	int error;

	if (!message)
		return -ENOMEM;
	nlmsg_append(message, &tc, sizeof(tc), NLMSG_ALIGNTO);
	nla_put_string(message, TCA_KIND, "bpf");
	options = nla_nest_start(message, TCA_OPTIONS);
	nla_put_u32(message, TCA_BPF_FD, crossbar->program);
	nla_put_string(message, TCA_BPF_NAME, "crossbar");
	nla_put_u32(message, TCA_BPF_FLAGS, TCA_BPF_FLAG_ACT_DIRECT);
	nla_nest_end(message, options);
	error = nl_send_sync(socket, message);
	return error < 0 ? -EIO : 0;
}

/* The program id of a filter. */
static int take_program(struct nl_msg *message, void *number)
{
	struct nlattr *tc[TCA_MAX + 1], *options[TCA_BPF_MAX + 1];

	if (nlmsg_parse(nlmsg_hdr(message), sizeof(struct tcmsg), tc, TCA_MAX, NULL) ||
	    !tc[TCA_KIND] || strcmp(nla_get_string(tc[TCA_KIND]), "bpf") || !tc[TCA_OPTIONS] ||
	    nla_parse_nested(options, TCA_BPF_MAX, tc[TCA_OPTIONS], NULL))
		return NL_OK;
	if (options[TCA_BPF_ID])
		*(uint32_t *)number = nla_get_u32(options[TCA_BPF_ID]);
	return NL_OK;
}

static uint32_t program_of(struct nl_sock *socket, int device)
{
	struct tcmsg tc = { .tcm_family = AF_UNSPEC, .tcm_ifindex = device, .tcm_parent = INGRESS };
	struct nl_cb *callbacks = nl_cb_alloc(NL_CB_DEFAULT);
	uint32_t number = 0;

	if (!callbacks)
		return 0;
	nl_cb_set(callbacks, NL_CB_VALID, NL_CB_CUSTOM, take_program, &number);
	if (nl_send_simple(socket, RTM_GETTFILTER, NLM_F_DUMP, &tc, sizeof(tc)) >= 0)
		nl_recvmsgs(socket, callbacks);
	nl_cb_put(callbacks);
	return number;
}

/* Opens the program of the device, and its table. */
static int crossbar_find(struct crossbar *crossbar, uint32_t number)
{
	union bpf_attr get = { .prog_id = number };
	struct bpf_prog_info info = { .nr_map_ids = 1 };
	union bpf_attr ask = { .info.info_len = sizeof(info), .info.info = (uintptr_t)&info };
	union bpf_attr table = { .map_id = 0 };
	uint32_t map = 0;

	crossbar->program = crossbar_bpf(BPF_PROG_GET_FD_BY_ID, &get);
	if (crossbar->program < 0)
		return crossbar->program;
	info.map_ids = (uintptr_t)&map;
	ask.info.bpf_fd = crossbar->program;
	/* Another's has another table: its values would not fit the variable that they are read into. */
	if (crossbar_bpf(BPF_OBJ_GET_INFO_BY_FD, &ask) || info.nr_map_ids != 1 ||
	    strcmp(info.name, "crossbar"))
		return -EEXIST;
	table.map_id = map;
	crossbar->table = crossbar_bpf(BPF_MAP_GET_FD_BY_ID, &table);
	return crossbar->table < 0 ? crossbar->table : 0;
}

int crossbar_open(struct crossbar *crossbar, struct nl_sock *socket, int device)
{
	const uint32_t number = program_of(socket, device);

	*crossbar = (struct crossbar){ -1, -1 };
	if (number)
		return crossbar_find(crossbar, number);
	crossbar->table = make_table();
	if (crossbar->table >= 0)
		crossbar->program = make_program(crossbar->table);
	return crossbar->table < 0 ? crossbar->table :
	       crossbar->program < 0 ? crossbar->program : 0;
}

void crossbar_close(struct crossbar *crossbar)
{
	if (crossbar->program >= 0)
		close(crossbar->program);
	if (crossbar->table >= 0)
		close(crossbar->table);
}
