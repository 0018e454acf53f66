// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Verdicts on TCP. */
#include <string.h>

#include "check.h"

enum { PORTS_FEW = 64, PORTS_MANY = 2048, UNSCALED = 65535 };

static void judge_loopback(const struct doctor_facts *facts, struct doctor_finding *finding)
{
	const bool up = facts->network.loopback;

	doctor_find(finding, up ? DOCTOR_OK : DOCTOR_FAIL, up ? "up" : "down");
}

static void judge_ports(const struct doctor_facts *facts, struct doctor_finding *finding)
{
	const struct doctor_network_facts *n = &facts->network;
	const long long count = n->port_last - n->port_first + 1;

	if (n->port_first < 0)
		doctor_find(finding, DOCTOR_UNKNOWN, "net.ipv4.ip_local_port_range is not there");
	else
		doctor_find(finding, count < PORTS_FEW ? DOCTOR_FAIL : count < PORTS_MANY ?
			    DOCTOR_NOTE : DOCTOR_OK, "%lld, from %lld to %lld", count,
			    n->port_first, n->port_last);
}

/* The library takes what does not pace by itself, but between clusters. */
static void judge_congestion(const struct doctor_facts *facts, struct doctor_finding *finding)
{
	const struct doctor_network_facts *n = &facts->network;
	const struct doctor_probes *p = &facts->probe;

	if (!*n->congestion) {
		doctor_find(finding, DOCTOR_UNKNOWN, "net.ipv4.tcp_congestion_control is not there");
		return;
	}
	doctor_find(finding, strncmp(n->congestion, "bbr", 3) ? DOCTOR_OK : DOCTOR_NOTE, "%s",
		    n->congestion);
	if (p->tcp_usual_us > 0 && p->tcp_reno_us > 0)
		doctor_cost(finding, "%s paces: 1 MB over loopback takes %.0f us here, with reno "
			    "%.0f. The library takes reno or cubic by itself; MPI, and links between "
			    "clusters, do not", n->congestion, p->tcp_usual_us, p->tcp_reno_us);
	if (!strstr(n->available, "cubic"))
		doctor_advise(finding, "modprobe tcp_cubic; sysctl -w "
				       "net.ipv4.tcp_congestion_control=cubic");
	else if (!strstr(n->allowed, "cubic"))
		doctor_advise(finding, "sysctl -w net.ipv4.tcp_congestion_control=cubic || sysctl -w "
			      "net.ipv4.tcp_congestion_control=reno # cubic is for the first network "
			      "namespace here");
}

static void judge_idle_restart(const struct doctor_facts *facts, struct doctor_finding *finding)
{
	const long long on = facts->network.idle_restart;

	if (on < 0)
		doctor_find(finding, DOCTOR_UNKNOWN, "net.ipv4.tcp_slow_start_after_idle is not "
			    "there");
	else
		doctor_find(finding, !on ? DOCTOR_OK : DOCTOR_SLOW, on ?
			    "idle connections start slowly again" : "idle connections stay fast");
}

static void judge_window(const struct doctor_facts *facts, struct doctor_finding *finding)
{
	const struct doctor_network_facts *n = &facts->network;

	if (n->scaling < 0 || n->moderate < 0)
		doctor_find(finding, DOCTOR_UNKNOWN, "net.ipv4.tcp_window_scaling is not there");
	else if (!n->scaling)
		doctor_find(finding, DOCTOR_SLOW, "windows do not scale: at most 64 KB");
	else if (!n->moderate)
		doctor_find(finding, DOCTOR_SLOW, "receive buffers do not grow");
	else
		doctor_find(finding, DOCTOR_OK, "windows scale and grow");
	if (!n->scaling)
		doctor_cost(finding, "a connection carries %.0f MB/s at most over %.3g ms there and "
			    "back", UNSCALED / n->path_rtt / 1e6, n->path_rtt * 1e3);
	if (n->scaling && !n->moderate)
		doctor_advise(finding, "sysctl -w net.ipv4.tcp_moderate_rcvbuf=1");
}

/* Half of a buffer is the kernel's own, so a window of W needs buffers of 2 W. */
static void judge_buffers(const struct doctor_facts *facts, struct doctor_finding *finding)
{
	const struct doctor_network_facts *n = &facts->network;
	const double need = 2 * n->path_rate * n->path_rtt;
	const long long least = n->receive_max < n->send_max ? n->receive_max : n->send_max;

	if (least < 0) {
		doctor_find(finding, DOCTOR_UNKNOWN, "net.ipv4.tcp_rmem or tcp_wmem is not there");
		return;
	}
	doctor_find(finding, least < need ? DOCTOR_SLOW : DOCTOR_OK, "up to %lld KB received, %lld "
		    "KB sent; %s%.3g Gbit/s x %.3g ms need %.0f KB", n->receive_max / 1024,
		    n->send_max / 1024, n->rate_assumed ? "an assumed " : "",
		    n->path_rate * 8 / 1e9, n->path_rtt * 1e3, need / 1024);
	doctor_cost(finding, "a connection carries %.0f MB/s at most, of %.0f; wan_streams uses "
		    "several", least / 2 / n->path_rtt / 1e6, n->path_rate / 1e6);
	doctor_advise(finding, "sysctl -w net.ipv4.tcp_rmem='4096 131072 %.0f' "
		      "net.ipv4.tcp_wmem='4096 16384 %.0f'", need, need);
}

const struct doctor_check doctor_network_checks[] = {
	{ "loopback", "the interface lo", judge_loopback,
	  "coll run cannot start: the ranks of a node find each other over loopback",
	  "ip link set lo up",
	  "A new network namespace begins with lo down. The ranks of one node reach the job's store "
	  "at 127.0.0.1.", false },
	{ "ports", "net.ipv4.ip_local_port_range", judge_ports,
	  "each rank listens at a port of its own and each connection takes one: EADDRINUSE or "
	  "EADDRNOTAVAIL when none is left",
	  "sysctl -w net.ipv4.ip_local_port_range='32768 60999'",
	  "The library listens and connects at ports that the kernel chooses in this range; "
	  "firewalls between nodes have to let them through.", false },
	{ "congestion", "net.ipv4.tcp_congestion_control; a probe over loopback", judge_congestion,
	  "bbr paces: an alltoall of 64 KB among 8 ranks takes 2.3 times as long over loopback "
	  "(docs/results/performance.md). The library takes reno within a node by itself; MPI, and "
	  "links between nodes, do not",
	  "sysctl -w net.ipv4.tcp_congestion_control=cubic # for one job: COLL_CONGESTION=cubic",
	  "bbr spreads packets over time by timers. Over paths that lose packets without congestion "
	  "it is faster (docs/results/clusters.md has both), so a WAN may want it: set "
	  "wan_congestion=bbr for links between clusters alone.", true },
	{ "idle-restart", "net.ipv4.tcp_slow_start_after_idle", judge_idle_restart,
	  "after 0.2 s without data a connection restarts with 10 packets: a round trip for each "
	  "doubling. 1 MB after 0.35 s, 20 ms there and back: 52 ms instead of 33 "
	  "(docs/results/doctor.md)",
	  "sysctl -w net.ipv4.tcp_slow_start_after_idle=0",
	  "A job computes for longer than a retransmission timer between its collectives, so each "
	  "collective would begin with cold connections. A program cannot set this for its own "
	  "sockets. It matters where the way there and back takes longer than a message: between "
	  "clusters, and over circuits. For good: a file in /etc/sysctl.d.", false },
	{ "windows", "net.ipv4.tcp_window_scaling, tcp_moderate_rcvbuf", judge_window,
	  "a connection's window stays at its first size",
	  "sysctl -w net.ipv4.tcp_window_scaling=1",
	  "Both are on by default; old tuning guides turn them off.", false },
	{ "buffers", "the greatest of tcp_rmem and tcp_wmem against rate x round trip",
	  judge_buffers, "", "",
	  "A connection has at most a window of bytes under way, and half of a buffer is the "
	  "window. The rate is that of the fastest interface, or --rate; the way there and back is "
	  "0.1 ms, as in a cluster, or --rtt. With --hosts it is measured between them. The "
	  "options buffer_bytes and wan_buffer_bytes are capped by net.core.rmem_max and "
	  "wmem_max, and switch growing off.", false },
	{ NULL },
};
