// SPDX-License-Identifier: GPL-2.0
/* Packets held while a circuit is down: sent in order once it is up, or refused. */
#include <linux/netdevice.h>
#include <net/dst.h>

#include "domain.h"

bool kcoll_peer_is_up(const struct kcoll_domain *d, const struct kcoll_peer *peer)
{
	const u32 i = coll_circuit_find(&d->c, 0, kcoll_peer_node(d, peer));

	lockdep_assert_held(&d->lock);
	return i != COLL_CIRCUIT_NONE && (d->circuit[i].state == COLL_CIRCUIT_UP ||
		(d->circuit[i].state == COLL_CIRCUIT_DRAINING && !d->circuit[i].down_ordered));
}

void kcoll_held_refuse(struct sk_buff *skb)
{
	if (!skb->dev)
		skb->dev = skb_dst(skb)->dev;
	dst_link_failure(skb);
}

struct sk_buff *kcoll_held_take(struct kcoll_peer *peer)
{
	struct sk_buff *skb = __skb_dequeue(&peer->queue);

	if (skb)
		peer->bytes -= skb->truesize;
	return skb;
}

static void held_send(struct kcoll_domain *d, struct sk_buff *skb)
{
	local_bh_disable();
	dst_output(d->net, skb->sk, skb);
	local_bh_enable();
}

/* In order, because no other function sends; new packets queue behind. */
void kcoll_held_flush(struct kcoll_domain *d, struct kcoll_peer *peer, bool whatever)
{
	struct sk_buff *skb;

	spin_lock_bh(&d->lock);
	peer->flush = false;
	peer->sending = true;
	while ((whatever || kcoll_peer_is_up(d, peer)) && (skb = kcoll_held_take(peer))) {
		peer->sent++;
		spin_unlock_bh(&d->lock);
		held_send(d, skb);
		cond_resched();
		spin_lock_bh(&d->lock);
	}
	peer->sending = false;
	spin_unlock_bh(&d->lock);
}

void kcoll_held_expire(struct kcoll_domain *d, struct kcoll_peer *peer)
{
	struct sk_buff *skb;

	spin_lock_bh(&d->lock);
	if (!peer->refuse) {
		spin_unlock_bh(&d->lock);
		return;
	}
	peer->refuse = false;
	peer->sending = true;	/* it is not evicted while the lock is open */
	while ((skb = kcoll_held_take(peer))) {
		peer->expired++;
		spin_unlock_bh(&d->lock);
		local_bh_disable();
		kcoll_held_refuse(skb);
		local_bh_enable();
		kfree_skb(skb);
		spin_lock_bh(&d->lock);
	}
	peer->sending = false;
	spin_unlock_bh(&d->lock);
}
