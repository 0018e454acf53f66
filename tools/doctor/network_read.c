// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <dirent.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "facts.h"
#include "files.h"

#define IPV4 "/proc/sys/net/ipv4/"
#define CORE "/proc/sys/net/core/"

/* Of a path that nobody described: an interface that tells no speed, a cluster's network. */
#define ASSUMED_RATE (10e9 / 8)
#define ASSUMED_RTT 0.1e-3

static bool loopback_up(void)
{
	struct ifaddrs *all, *one;
	bool up = false;

	if (getifaddrs(&all))
		return true;
	for (one = all; one; one = one->ifa_next)
		up |= one->ifa_flags & IFF_LOOPBACK && one->ifa_flags & IFF_UP;
	freeifaddrs(all);
	return up;
}

/* The last of three numbers. */
static long long last_of_three(const char *root, const char *path)
{
	long long first, middle, last;
	char text[100];

	if (!doctor_file_line(root, text, sizeof(text), "%s", path) ||
	    sscanf(text, "%lld %lld %lld", &first, &middle, &last) != 3)
		return -1;
	return last;
}

/* Bytes per second of the fastest interface that tells; 0: none does. */
static double fastest_interface(const char *root)
{
	char path[DOCTOR_PATH];
	struct dirent *entry;
	long long speed;
	double rate = 0;
	DIR *list;

	snprintf(path, sizeof(path), "%s/sys/class/net", root);
	list = opendir(path);
	while (list && (entry = readdir(list))) {
		speed = doctor_file_number(root, "/sys/class/net/%s/speed", entry->d_name);
		if (*entry->d_name != '.' && speed > 0 && speed * 1e6 / 8 > rate)
			rate = speed * 1e6 / 8;		/* Mbit/s */
	}
	if (list)
		closedir(list);
	return rate;
}

static void read_path(struct doctor_network_facts *facts, const char *root,
		      const struct doctor_path *path)
{
	facts->path_rate = path->rate ? path->rate : fastest_interface(root);
	facts->path_rtt = path->rtt ? path->rtt / 1e9 : ASSUMED_RTT;
	facts->rate_assumed = !facts->path_rate;
	if (facts->rate_assumed)
		facts->path_rate = ASSUMED_RATE;
}

static void read_ports(struct doctor_network_facts *facts, const char *root)
{
	char text[64];

	facts->port_first = facts->port_last = -1;
	if (doctor_file_line(root, text, sizeof(text), IPV4 "ip_local_port_range"))
		sscanf(text, "%lld %lld", &facts->port_first, &facts->port_last);
}

void doctor_read_network(struct doctor_network_facts *facts, const char *root,
			 const struct doctor_path *path)
{
	*facts = (struct doctor_network_facts){
		.loopback = loopback_up(),
		.idle_restart = doctor_file_number(root, IPV4 "tcp_slow_start_after_idle"),
		.receive_max = last_of_three(root, IPV4 "tcp_rmem"),
		.send_max = last_of_three(root, IPV4 "tcp_wmem"),
		.scaling = doctor_file_number(root, IPV4 "tcp_window_scaling"),
		.moderate = doctor_file_number(root, IPV4 "tcp_moderate_rcvbuf"),
		.receive_set_max = doctor_file_number(root, CORE "rmem_max"),
		.send_set_max = doctor_file_number(root, CORE "wmem_max"),
	};
	doctor_file_line(root, facts->congestion, DOCTOR_WORD, IPV4 "tcp_congestion_control");
	doctor_file_line(root, facts->available, DOCTOR_WORD,
			 IPV4 "tcp_available_congestion_control");
	doctor_file_line(root, facts->allowed, DOCTOR_WORD, IPV4 "tcp_allowed_congestion_control");
	read_ports(facts, root);
	read_path(facts, root, path);
}
