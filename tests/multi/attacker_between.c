// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * attacker_between plain IFACE: frames of this interface have their checksums and fit the wire.
 * attacker_between forward IFACE IFACE HOW FIRST EVERY: passes all frames between the two, and does
 *	something to each EVERY-th frame with TCP payload from the FIRST on: "flip" a bit and mend
 *	the checksum, "repeat" it, "swap" it with the next one, or "cut" all that follow.
 * attacker_between rank ROUNDS: a rank that calls allreduce as often and checks each result.
 *	Prints "unharmed", "lost: why", or "WRONG".
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/rank.h"

enum { FRAME_MAX = 65536 + 64, COUNT = 5000 };

/* ---- the attacker ------------------------------------------------------------- */

static int plain(const char *name)
{
	static const uint32_t off[] = { ETHTOOL_STXCSUM, ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO };
	const int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct ethtool_value value;
	struct ifreq request = { .ifr_data = (char *)&value };
	size_t i;

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	for (i = 0; i < sizeof(off) / sizeof(*off); i++) {
		value = (struct ethtool_value){ .cmd = off[i], .data = 0 };
		if (ioctl(fd, SIOCETHTOOL, &request))
			perror("ethtool");
	}
	return 0;
}

static int open_interface(const char *name)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL),
				  .sll_ifindex = if_nametoindex(name) };
	const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at))) {
		perror(name);
		exit(2);
	}
	return fd;
}

static uint32_t sum_of(const uint8_t *data, size_t bytes, uint32_t sum)
{
	for (; bytes > 1; data += 2, bytes -= 2)
		sum += data[0] << 8 | data[1];
	return bytes ? sum + (data[0] << 8) : sum;
}

/* The TCP segment of an IPv4 frame with payload: NULL if it is none. */
static uint8_t *segment_of(uint8_t *frame, size_t bytes, size_t *segment_bytes, size_t *header_bytes)
{
	uint8_t *ip = frame + ETH_HLEN, *tcp;
	size_t ip_header, all;

	if (bytes < ETH_HLEN + 40 || frame[12] != 8 || frame[13] || ip[0] >> 4 != 4 || ip[9] != 6)
		return NULL;
	ip_header = (ip[0] & 15) * 4;
	all = ip[2] << 8 | ip[3];
	tcp = ip + ip_header;
	*header_bytes = (tcp[12] >> 4) * 4;
	*segment_bytes = all - ip_header;
	return ETH_HLEN + all <= bytes && *segment_bytes > *header_bytes ? tcp : NULL;
}

static void flip(uint8_t *frame, uint8_t *tcp, size_t segment, size_t header)
{
	const uint8_t *ip = frame + ETH_HLEN;
	uint32_t sum;

	tcp[header + rand() % (segment - header)] ^= 1 << rand() % 8;
	tcp[16] = tcp[17] = 0;
	sum = sum_of(tcp, segment, sum_of(ip + 12, 8, 6 + segment));
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	tcp[16] = ~sum >> 8;
	tcp[17] = ~sum;
}

static void pass(int to, const void *frame, size_t bytes)
{
	if (send(to, frame, bytes, 0) < 0 && errno != ENOBUFS && errno != EMSGSIZE)
		perror("send");
}

/* What it does to frames; one for both directions. */
struct attack {
	const char *how;
	long first, every, seen, done;
	uint8_t held[FRAME_MAX];
	size_t held_bytes;
	int held_to;
};

static void attack_frame(struct attack *a, int to, uint8_t *frame, size_t bytes)
{
	size_t segment, header;
	uint8_t *tcp = segment_of(frame, bytes, &segment, &header);
	bool due = tcp && ++a->seen >= a->first && (a->seen - a->first) % a->every == 0;

	if (!strcmp(a->how, "cut") && a->seen >= a->first)
		return;
	a->done += due;
	if (due && !strcmp(a->how, "swap")) {
		memcpy(a->held, frame, bytes);
		a->held_bytes = bytes;
		a->held_to = to;
		return;
	}
	if (due && !strcmp(a->how, "flip"))
		flip(frame, tcp, segment, header);
	pass(to, frame, bytes);
	if (due && !strcmp(a->how, "repeat"))
		pass(to, frame, bytes);
	if (a->held_bytes)
		pass(a->held_to, a->held, a->held_bytes);
	a->held_bytes = 0;
}

static int forward(char **arguments)
{
	static struct attack a;
	static uint8_t frame[FRAME_MAX];
	struct pollfd fds[2];
	int i;

	srand(7);
	for (i = 0; i < 2; i++)
		fds[i] = (struct pollfd){ .fd = open_interface(arguments[i]), .events = POLLIN };
	a.how = arguments[2];
	a.first = atol(arguments[3]);
	a.every = atol(arguments[4]);
	while (poll(fds, 2, 30000) > 0) {
		for (i = 0; i < 2; i++) {
			struct sockaddr_ll from;
			socklen_t from_bytes = sizeof(from);
			ssize_t bytes;

			if (!fds[i].revents)
				continue;
			bytes = recvfrom(fds[i].fd, frame, sizeof(frame), MSG_DONTWAIT,
					 (struct sockaddr *)&from, &from_bytes);
			if (bytes > 0 && from.sll_pkttype != PACKET_OUTGOING)
				attack_frame(&a, fds[!i].fd, frame, bytes);
		}
	}
	return 0;
}

/* ---- a rank -------------------------------------------------------------------- */

static int rank(int rounds)
{
	static int64_t in[COUNT], out[COUNT];
	struct coll_context *context;
	struct coll_group *world;
	int round, i, error = 0;

	setlinebuf(stdout);
	if (coll_open("deadline=5s", &context)) {
		printf("lost: no job: %s\n", coll_context_error(NULL));
		return 0;
	}
	world = coll_world(context);
	for (round = 0; !error && round < rounds; round++) {
		for (i = 0; i < COUNT; i++)
			in[i] = coll_rank(world) + 7 * i + round;
		error = coll_allreduce(in, out, round % 2 ? COUNT : 10, COLL_INT64, COLL_SUM, world);
		for (i = 0; !error && i < (round % 2 ? COUNT : 10); i++)
			if (out[i] != 1 + 2 * (7 * i + round)) {
				printf("WRONG: round %d, element %d\n", round, i);
				return 3;
			}
	}
	if (error)
		printf("lost: %s\n", coll_last_error(world));
	else
		printf("unharmed after %d rounds\n", round);
	coll_close(context);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "plain"))
		return plain(argv[2]);
	if (argc == 7 && !strcmp(argv[1], "forward"))
		return forward(argv + 2);
	if (argc == 3 && !strcmp(argv[1], "rank"))
		return rank(atoi(argv[2]));
	return 2;
}
