// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The ports of nodes: free, taken, suspect. */
#include "manager.h"

static u32 port_count_bits(u64 bits)
{
	u32 count = 0;

	for (; bits; bits &= bits - 1)
		count++;
	return count;
}

u32 coll_circuit_free_ports(const struct coll_circuit_node *node)
{
	return node->unbounded ? NONE : port_count_bits(node->ports & ~node->taken);
}

bool coll_circuit_has_unreserved(const struct coll_circuit_node *node)
{
	return node->unbounded || port_count_bits(node->ports) > node->reserved;
}

static u8 port_take(struct coll_circuit_node *node)
{
	u64 free = node->ports & ~node->taken;
	u8 port = 0;

	if (node->unbounded)
		return COLL_CIRCUIT_NO_PORT;
	if (free & ~node->suspect)
		free &= ~node->suspect;
	coll_assert(free);
	while (port < COLL_CIRCUIT_PORTS_MAX - 1 && !(free >> port & 1))
		port++;
	node->taken |= 1ull << port;
	return port;
}

void coll_circuit_take_ports(struct coll_circuit_manager *c, struct coll_circuit *circuit)
{
	u32 end;

	for (end = 0; end < 2; end++) {
		coll_assert(circuit->port[end] == COLL_CIRCUIT_NO_PORT);
		circuit->port[end] = port_take(&c->node[circuit->node[end]]);
	}
	c->with_ports++;
}

void coll_circuit_give_ports(struct coll_circuit_manager *c, struct coll_circuit *circuit)
{
	u32 end;

	for (end = 0; end < 2; end++) {
		if (circuit->port[end] < COLL_CIRCUIT_PORTS_MAX)
			c->node[circuit->node[end]].taken &= ~(1ull << circuit->port[end]);
		circuit->port[end] = COLL_CIRCUIT_NO_PORT;
	}
	coll_assert(c->with_ports);
	c->with_ports--;
}

/* It is not known which of the two ends has failed: both ports are suspect. */
void coll_circuit_suspect_ports(struct coll_circuit_manager *c, const struct coll_circuit *circuit,
				bool failed)
{
	u32 end;

	for (end = 0; end < 2; end++) {
		struct coll_circuit_node *node = &c->node[circuit->node[end]];
		const u64 bit = circuit->port[end] < COLL_CIRCUIT_PORTS_MAX ?
				1ull << circuit->port[end] : 0;

		node->suspect = failed ? node->suspect | bit : node->suspect & ~bit;
	}
}
