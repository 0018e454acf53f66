/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
#ifndef COLL_DAEMON_NOTIFY_H
#define COLL_DAEMON_NOTIFY_H

/* Sends systemd a state such as "READY=1"; does nothing without NOTIFY_SOCKET. */
void colld_notify(const char *text);

#endif
