/* SPDX-License-Identifier: BSD-3-Clause */
/* EAL start and stop: see eal.h. The agent's thread, before lanes and after them. */
#include "dataplane/port/eal.h"

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A vector under construction; full stays set once something did not fit. */
struct builder {
	struct eal_args *out;
	size_t used;
	bool full;
};

static void add(struct builder *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void add(struct builder *b, const char *fmt, ...)
{
	size_t room = sizeof(b->out->text) - b->used;
	va_list ap;
	int n;

	if (b->full || b->out->argc == EAL_ARGS_MAX) {
		b->full = true;
		return;
	}
	va_start(ap, fmt);
	n = vsnprintf(b->out->text + b->used, room, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= room) {
		b->full = true;
		return;
	}
	b->out->argv[b->out->argc++] = b->out->text + b->used;
	b->out->argv[b->out->argc] = NULL;
	b->used += (size_t)n + 1;
}

/* The CPU a thread is put on, by lcore id. */
struct placement {
	int cpu[EAL_LANES_MAX + 1];
};

/* The k-th CPU of a set that is not empty, counted round and round. */
static int nth_cpu(const cpu_set_t *set, unsigned k)
{
	int cpu = 0;

	for (k %= (unsigned)CPU_COUNT(set); k > 0 || !CPU_ISSET(cpu, set); cpu++)
		if (CPU_ISSET(cpu, set))
			k--;
	return cpu;
}

/* Lanes first get CPUs of their own; the agent sleeps most of the time and shares if it must. */
static int chosen_cpu(const struct eal_config *c, const cpu_set_t *allowed, unsigned lcore)
{
	unsigned cpus = (unsigned)CPU_COUNT(allowed);

	if (lcore == 0)
		return nth_cpu(allowed, 0);
	return nth_cpu(allowed, cpus > c->n_lanes ? lcore : lcore - 1);
}

static int place(const struct eal_config *c, const cpu_set_t *allowed, struct placement *out,
		 char err[PORT_ERR_BYTES])
{
	if (c->n_lanes == 0 || c->n_lanes > EAL_LANES_MAX)
		return port_say(err, -EINVAL, "%u lanes are asked for, 1 to %u are possible",
				c->n_lanes, EAL_LANES_MAX);
	if (CPU_COUNT(allowed) == 0)
		return port_say(err, -EINVAL, "there is no CPU that this process may use");
	for (unsigned i = 0; i <= c->n_lanes; i++) {
		int cpu = i == 0 ? c->agent_cpu : c->lane_cpu[i - 1];

		if (cpu == EAL_CPU_ANY)
			cpu = chosen_cpu(c, allowed, i);
		if (cpu < 0 || cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, allowed)) {
			char who[24] = "the agent";

			if (i > 0)
				snprintf(who, sizeof(who), "lane %u", i - 1);
			return port_say(err, -EINVAL,
					"CPU %d of %s is not one this process may use", cpu, who);
		}
		out->cpu[i] = cpu;
	}
	return 0;
}

/* "0@CPU,1@CPU,...": one lcore a thread, whatever CPUs they share. */
static void add_lcores(struct builder *b, const struct placement *p, unsigned n_lanes)
{
	char text[EAL_LANES_MAX * 12 + 16];
	int n = 0;

	for (unsigned i = 0; i <= n_lanes; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%u@%d", i ? "," : "", i,
			      p->cpu[i]);
	add(b, "--lcores=%s", text);
	add(b, "--main-lcore=0");
}

/* PCI devices come up with EAL, and only those; the others by probe_vdevs(). */
static void add_devices(struct builder *b, const struct eal_config *c)
{
	bool pci = false;

	for (unsigned i = 0; i < c->n_ports; i++) {
		if (!port_is_pci(c->ports[i].device))
			continue;
		add(b, "--allow=%s", c->ports[i].device);
		pci = true;
	}
	if (!pci)
		add(b, "--no-pci");
}

int eal_args(const struct eal_config *c, const cpu_set_t *allowed, struct eal_args *out,
	     char err[PORT_ERR_BYTES])
{
	struct builder b = {.out = out};
	struct placement placement;
	int e = place(c, allowed, &placement, err);

	if (!e)
		e = port_configs_check(c->ports, c->n_ports, err);
	if (e)
		return e;
	if (c->memory_mb == 0)
		return port_say(err, -EINVAL, "the packet memory is 0 MB");
	out->argc = 0;
	add(&b, "spotlane-dataplane");
	add_lcores(&b, &placement, c->n_lanes);
	add(&b, "-m");
	add(&b, "%u", c->memory_mb);
	if (c->huge == EAL_HUGE_YES) {
		add(&b, "--in-memory"); /* nothing stays behind in hugetlbfs, however we end */
	} else {
		add(&b, "--no-huge");
		add(&b, "--no-shconf");
	}
	add(&b, "--no-telemetry");
	if (c->log_level) {
		add(&b, "--log-level=%s", c->log_level);
	} else {
		add(&b, "--log-level=*:warning");
		add(&b, "--log-level=lib.eal:error"); /* its notices on page sizes mislead */
	}
	add_devices(&b, c);
	if (c->n_extra > EAL_EXTRA_MAX)
		return port_say(err, -E2BIG, "more than %u extra EAL arguments", EAL_EXTRA_MAX);
	for (unsigned i = 0; i < c->n_extra; i++)
		add(&b, "%s", c->extra[i]);
	if (b.full)
		return port_say(err, -E2BIG, "the EAL arguments are longer than %d bytes",
				EAL_TEXT_MAX);
	return 0;
}

bool eal_huge_fits(uint32_t memory_mb, char err[PORT_ERR_BYTES])
{
	FILE *f = fopen("/proc/meminfo", "re");
	unsigned long free_pages = 0, page_kb = 0, need;
	char line[128];

	while (f && fgets(line, sizeof(line), f)) {
		sscanf(line, "HugePages_Free: %lu", &free_pages);
		sscanf(line, "Hugepagesize: %lu kB", &page_kb);
	}
	if (f)
		fclose(f);
	if (page_kb == 0) {
		port_say(err, 0, "this kernel has no hugepages");
		return false;
	}
	need = (memory_mb * 1024ul + page_kb - 1) / page_kb;
	port_say(err, 0, "%u MB need %lu hugepages of %lu kB, %lu are free", memory_mb, need,
		 page_kb, free_pages);
	return free_pages >= need;
}

static int start_error(const struct eal_config *c, char err[PORT_ERR_BYTES])
{
	int code = rte_errno;
	char pages[PORT_ERR_BYTES];

	if (code == EALREADY)
		return port_say(err, -EALREADY, "EAL has been started before in this process");
	if (c->huge == EAL_HUGE_YES && !eal_huge_fits(c->memory_mb, pages))
		return port_say(err, -ENOMEM, "%s", pages);
	if (code == ENOMEM)
		return port_say(err, -ENOMEM, "EAL cannot get %u MB of memory", c->memory_mb);
	return port_say(err, -EIO, "EAL refuses to start%s%s: see its messages above",
			code ? ": " : "", code ? rte_strerror(code) : "");
}

/* One by one, so that each failure has the name of its port. Given as --vdev, an unknown driver
 * would stop EAL without saying which, and a wrong argument would not stop it at all. */
static int probe_vdevs(const struct eal_config *c, char err[PORT_ERR_BYTES])
{
	char name[PORT_NAME_BYTES];

	for (unsigned i = 0; i < c->n_ports; i++) {
		const struct port_config *p = &c->ports[i];
		const char *comma = strchr(p->device, ',');
		int e;

		if (port_is_pci(p->device) || !port_device_name(p->device, name))
			continue;
		e = rte_eal_hotplug_add("vdev", name, comma ? comma + 1 : "");
		if (e)
			return port_say(err, -ENODEV,
					"port %s: no such device: %s does not come up: %s", p->name,
					p->device, rte_strerror(-e));
	}
	return 0;
}

int eal_start(const struct eal_config *c, char err[PORT_ERR_BYTES])
{
	struct eal_args *args = malloc(sizeof(*args));
	char pages[PORT_ERR_BYTES];
	cpu_set_t allowed;
	int e;

	if (!args)
		return port_say(err, -ENOMEM, "no memory for the EAL arguments");
	if (sched_getaffinity(0, sizeof(allowed), &allowed)) {
		e = port_say(err, -errno, "cannot read the CPUs of this process: %s",
			     strerror(errno));
		goto free_args;
	}
	e = eal_args(c, &allowed, args, err);
	if (e)
		goto free_args;
	if (c->huge == EAL_HUGE_YES && !eal_huge_fits(c->memory_mb, pages)) {
		e = port_say(err, -ENOMEM, "%s", pages);
		goto free_args;
	}
	if (rte_eal_init(args->argc, args->argv) < 0) {
		e = start_error(c, err);
		goto free_args;
	}
	e = probe_vdevs(c, err);
	if (e)
		rte_eal_cleanup();
free_args:
	free(args);
	return e;
}

void eal_stop(void)
{
	rte_eal_cleanup();
}
