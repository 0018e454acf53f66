/* SPDX-License-Identifier: GPL-2.0 */
#ifndef COLL_KMOD_RECEIVE_H
#define COLL_KMOD_RECEIVE_H

#include "kmod/link/link.h"

/* What groups do with messages from their links. */
extern const struct kcoll_link_ops kcoll_receive_ops;

#endif
