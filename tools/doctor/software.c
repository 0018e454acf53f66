// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Verdicts on what of coll is here, and on the machine's kind. */
#include <stdio.h>
#include <string.h>

#include "check.h"

static void judge_version(const struct doctor_facts *facts, struct doctor_finding *finding)
{
	doctor_find(finding, DOCTOR_OK, "coll %s, Linux %s", facts->software.version,
		    facts->software.kernel);
}

static void judge_loaded(const struct doctor_software_facts *s, struct doctor_finding *finding)
{
	if (*s->module_version && strcmp(s->module_version, s->version)) {
		doctor_find(finding, DOCTOR_SLOW, "version %s is loaded, coll is %s",
			    s->module_version, s->version);
		doctor_cost(finding, "it may refuse the library's commands; then progress=kernel "
			    "fails");
		doctor_advise(finding, "rmmod coll; modprobe coll of the same version");
	} else if (!s->device_opens) {
		doctor_find(finding, DOCTOR_NOTE, "loaded, but this user may not open /dev/coll");
		doctor_cost(finding, "progress=kernel fails");
		doctor_advise(finding, "a udev rule that gives the group of the jobs' users 0660");
	} else {
		doctor_find(finding, DOCTOR_OK, "version %s, loaded", s->module_version);
	}
}

static void judge_module(const struct doctor_facts *facts, struct doctor_finding *finding)
{
	const struct doctor_software_facts *s = &facts->software;

	if (s->module_loaded) {
		judge_loaded(s, finding);
	} else if (*s->module_magic && strcmp(s->module_magic, s->kernel)) {
		doctor_find(finding, DOCTOR_NOTE, "not loaded: the file is for Linux %s, here runs %s",
			    s->module_magic, s->kernel);
		doctor_advise(finding, "dkms install coll/%s -k %s", s->version, s->kernel);
	} else if (*s->module_magic) {
		doctor_find(finding, DOCTOR_NOTE, "not loaded, but there is one for this kernel");
		doctor_advise(finding, "modprobe coll; for good: echo coll >/etc/modules-load.d/"
				       "coll.conf");
	} else if (*s->module_elsewhere) {
		doctor_find(finding, DOCTOR_NOTE, "there is one for Linux %s only, here runs %s",
			    s->module_elsewhere, s->kernel);
		doctor_advise(finding, "dkms install coll/%s -k %s", s->version, s->kernel);
	} else {
		doctor_find(finding, DOCTOR_NOTE, "none");
	}
}

static void judge_colld(const struct doctor_facts *facts, struct doctor_finding *finding)
{
	const struct doctor_software_facts *s = &facts->software;
	const bool wanted = s->policy || s->circuits_file;

	if (s->colld_runs && s->colld_answers)
		doctor_find(finding, DOCTOR_OK, "runs and answers");
	else if (s->colld_runs)
		doctor_find(finding, DOCTOR_NOTE, "runs, but answers neither at port 9469 nor at its "
			    "socket");
	else if (wanted)
		doctor_find(finding, DOCTOR_SLOW, "does not run, but /etc/coll/%s is there",
			    s->policy ? "policy" : "circuits");
	else
		doctor_find(finding, DOCTOR_OK, "does not run, and nothing asks for it");
	if (s->colld_runs && !s->colld_answers) {
		doctor_cost(finding, "it may hang, or have --metrics elsewhere; circuits wait five "
			    "seconds for it");
		doctor_advise(finding, "journalctl -u colld; systemctl restart colld");
	}
}

static void judge_mpi(const struct doctor_facts *facts, struct doctor_finding *finding)
{
	const struct doctor_mpi *mpi = facts->software.mpi;
	char with[64] = "", without[64] = "";
	int i;

	for (i = 0; i < 2; i++)
		if (mpi[i].found)
			snprintf(mpi[i].shim ? with + strlen(with) : without + strlen(without), 20,
				 " %s", mpi[i].name);
	if (*without)
		doctor_find(finding, DOCTOR_NOTE, "no shim for%s%s%s", without,
			    *with ? "; one for" : "", with);
	else
		doctor_find(finding, DOCTOR_OK, *with ? "shim for%s" : "no MPI in PATH%s", with);
}

static void judge_container(const struct doctor_facts *facts, struct doctor_finding *finding)
{
	const struct doctor_software_facts *s = &facts->software;
	const bool limits = facts->transport.ring_error || facts->transport.copy_error ||
			    facts->transport.memory_error;

	if (!*s->container)
		doctor_find(finding, DOCTOR_OK, "no container%s",
			    s->guest ? ", a virtual machine" : "");
	else
		doctor_find(finding, limits ? DOCTOR_NOTE : DOCTOR_OK, "%s%s", s->container,
			    limits ? ", which forbids system calls: see above" : "");
}

const struct doctor_check doctor_software_checks[] = {
	{ "version", "coll's version and the kernel's", judge_version, "", "",
	  "With --hosts, nodes that differ are named. All processes of a job need the same version "
	  "of the wire: others are refused in words.", false },
	{ "module", "/sys/module/coll, its version; coll.ko below /lib/modules", judge_module,
	  "no progress=kernel (docs/guide/offload.md), no causes in collnoise measure, no circuits of "
	  "the node's own; not measured",
	  "install coll-dkms, or make module; then modprobe coll",
	  "The module is optional. It is built for one kernel: DKMS builds it again for each that "
	  "is installed.", false },
	{ "colld", "processes named colld, its socket and metrics; /etc/coll", judge_colld,
	  "the policy is not in force: daemons run on the CPUs of jobs; jobs with circuits wait five "
	  "seconds and fail",
	  "systemctl enable --now colld; colld --check reads the files",
	  "colld pins daemons away and manages circuits. It is optional, and wanted where "
	  "/etc/coll/policy or /etc/coll/circuits is there.", false },
	{ "mpi", "mpirun in PATH; libcollmpi.so beside coll", judge_mpi,
	  "MPI programs cannot use these collectives: where ranks share cores, an 8-byte allreduce of "
	  "MPICH took 9,200 us alone and 131 to 313 under the shim (docs/results/mpi.md)",
	  "install libcollmpi-openmpi or libcollmpi-mpich, or make with that MPI's compiler there",
	  "LD_PRELOAD=.../libcollmpi.so mpirun ... makes an unmodified MPI program use libcoll. The "
	  "shim is built for each MPI.", false },
	{ "container", "marks of container runtimes; the hypervisor flag", judge_container,
	  "what it forbids, other lines name",
	  "a profile that allows io_uring and process_vm_readv: --security-opt seccomp=FILE",
	  "Ranks in several containers of a node share memory if they share the network namespace: "
	  "--network host.", false },
	{ NULL },
};
