/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
#ifndef TESTS_CHAOS_CUT_H
#define TESTS_CHAOS_CUT_H

#include "board.h"

/*
 * SIGUSR1 ends one of the connections that rank `self` has made to other ranks, and the board's
 * cut_from says to which. If there is none nothing happens.
 */
void cut_on_signal(struct board *board, int self);

#endif
