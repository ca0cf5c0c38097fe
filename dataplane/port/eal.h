/* SPDX-License-Identifier: BSD-3-Clause */
/* The EAL: from a plain struct to an argument vector to rte_eal_init(), which only this room calls.
 *
 * eal_args() is pure and keeps no pointer. lcore 0 is the agent, lcore j + 1 is lane j, whatever
 * CPU they run on: arrays are never indexed by a CPU number.
 */
#ifndef SPL_PORT_EAL_H
#define SPL_PORT_EAL_H

#include "dataplane/port/plan.h"

#include <sched.h>

#define EAL_LANES_MAX 127u /* DPDK of Debian knows 128 lcores; one is the agent's */
#define EAL_CPU_ANY   (-1)
#define EAL_ARGS_MAX  128
#define EAL_TEXT_MAX  16384
#define EAL_EXTRA_MAX 32u

enum eal_huge { EAL_HUGE_NO, EAL_HUGE_YES };

struct eal_config {
	unsigned n_lanes;	     /* 1..EAL_LANES_MAX */
	int agent_cpu;		     /* EAL_CPU_ANY: chosen */
	int lane_cpu[EAL_LANES_MAX]; /* may repeat; EAL_CPU_ANY: chosen, one each if possible */
	uint32_t memory_mb;
	enum eal_huge huge;
	const struct port_config *ports; /* their devices */
	unsigned n_ports;
	const char *const *extra; /* passed through behind ours */
	unsigned n_extra;
	const char *log_level; /* as --log-level takes it; NULL: warnings and worse */
};

struct eal_args {
	int argc;
	char *argv[EAL_ARGS_MAX + 1];
	char text[EAL_TEXT_MAX];
};

/* Builds the vector. allowed: the CPUs this process may use; each CPU asked for must be in it.
 * 0, or -EINVAL / -E2BIG and a sentence. */
int eal_args(const struct eal_config *c, const cpu_set_t *allowed, struct eal_args *out,
	     char err[PORT_ERR_BYTES]) __attribute__((warn_unused_result));

/* Decides for "auto": free hugepages of the default size that cover memory_mb. Fills err with the
 * pages needed and free. Reads /proc/meminfo. */
bool eal_huge_fits(uint32_t memory_mb, char err[PORT_ERR_BYTES]);

/* eal_args() for this process, then rte_eal_init(), once a process, then the devices of the ports
 * that are no PCI devices: -ENODEV names the port of one that does not come up. After a failure the
 * process can only end; nothing of it stays behind in the system. -EINVAL (the configuration),
 * -ENOMEM (not enough hugepages or memory), -EALREADY, -EIO. */
int eal_start(const struct eal_config *c, char err[PORT_ERR_BYTES])
	__attribute__((warn_unused_result));

/* Gives back what EAL holds. Ports are closed, lanes have returned. */
void eal_stop(void);

#endif
