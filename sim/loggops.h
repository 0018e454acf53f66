/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * LogGOPSim's rules for messages (T. Hoefler, T. Schneider, A. Lumsdaine: LogGOPSim - Simulating
 * Large-Scale Applications in the LogGOPS Model, HPDC 2010; in detail those of its version
 * 76451de), for model.messages SIM_MESSAGE_GOAL. docs/guide/simulator.md lists them.
 *
 * A rendezvous frees its sender at the moment at which its receiver is ready, without a latency.
 * So there are no windows of time in which ranks cannot reach each other: one queue serves all.
 */
#ifndef COLL_SIM_LOGGOPS_H
#define COLL_SIM_LOGGOPS_H

#include "events_state.h"

/* Runs from the start. 0 or -ENOMEM; then e->running ranks are not done. */
int loggops_run(struct sim_events *e);

#endif
