/* SPDX-License-Identifier: BSD-3-Clause */
/* The effective configuration of one node, and how it is read from a file.
 *
 * One table (config_opts.h) says what every option is called, its type, default and range; it
 * drives the reader, the commented example, the reference page and `--check`. A `struct config`
 * that conf_load() returned is complete and valid: every value is in its range and the relations
 * between values hold. It is never changed afterwards; any thread may read it.
 *
 * Names start with conf_ / CONF_ because libconfig owns config_ / CONFIG_.
 */
#ifndef SPL_CONTROL_CONFIG_H
#define SPL_CONTROL_CONFIG_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define CONF_LANES_MAX	128
#define CONF_CPU_MAX	1023 /* largest CPU number that may be named */
#define CONF_PORTS_MAX	16
#define CONF_STAGES_MAX 64
#define CONF_LIST_MAX	128 /* entries of a list of scalars */
#define CONF_ERRORS_MAX 32  /* errors kept of one file */

/* The values of a choice are its place in the `choices` column of the table. */
enum conf_security { CONF_SECURITY_NONE };
enum conf_role { CONF_ROLE_NONE, CONF_ROLE_CLIENT, CONF_ROLE_SERVER };
enum conf_hugepages { CONF_HUGEPAGES_AUTO, CONF_HUGEPAGES_NO, CONF_HUGEPAGES_YES };
enum conf_reclaim { CONF_RECLAIM_MANUAL, CONF_RECLAIM_ON_RESTART };
enum conf_store { CONF_STORE_MEMORY, CONF_STORE_SQLITE };
enum conf_log { CONF_LOG_ERROR, CONF_LOG_WARN, CONF_LOG_INFO, CONF_LOG_DEBUG };

struct conf_ints {
	int64_t *v;
	unsigned n;
};

struct conf_texts {
	char **v;
	unsigned n;
};

struct conf_port {
	char *name;   /* the operator's name, unique */
	char *device; /* EAL device: a PCI address or "net_x0,key=value"; the part before ',' unique
		       */
	uint32_t ip;  /* IPv4, host byte order */
	uint32_t gateway; /* IPv4, host byte order; 0 = none */
	uint8_t prefix_len;
	uint16_t mtu;	   /* bytes of IP packet */
	uint16_t udp_base; /* first of 257 UDP ports: application class + lane, infra + 128 + lane,
			      agent + 256 */
};

struct conf_stage {
	char *module; /* absolute path of a shared object, or a bare name looked for in stage_dirs
		       */
	char *entry;  /* exported descriptor symbol; "" = the default of the stage API */
};

/* One line of `config show`: a value as a person would write it and where it came from. */
struct conf_shown {
	char *path;   /* "lease.ttl_ms", "ports[0].mtu" */
	char *value;  /* libconfig notation */
	char *origin; /* "default" or "FILE:LINE" */
	bool reloadable;
};

struct config {
	int security; /* enum conf_security */
	struct {
		char *name_prefix; /* of the node RID, S-ID-9 */
		char *mesh;	   /* S-NAME-1 */
		int object_role;   /* enum conf_role, S-ROLE-1 */
		uint32_t drain_ms; /* a planned stop finishes accepted turns for this long */
	} node;
	struct {
		uint16_t lanes;
		int hugepages;		 /* enum conf_hugepages */
		struct conf_ints lcores; /* CPU of each lane in order; empty = chosen */
		int32_t agent_cpu;	 /* CPU of the main lcore; -1 = chosen */
		uint32_t memory_mb;
		uint32_t mbufs;		  /* packet buffers of one lane */
		uint32_t data_room_bytes; /* of one packet buffer, headroom included */
		uint8_t pool_low_percent; /* free share below which waiting messages are copied */
		uint32_t lane_memory_mb;  /* of one lane, for payloads */
		uint32_t turn_budget_us;  /* S-FAIR-3 */
		uint32_t turn_overrun_us; /* a longer turn is told; 0: none is */
		uint16_t lifecycle_cap;	  /* lifecycle turns in a row before application work */
		uint16_t idle_nap_us;	  /* longest nap of an idle lane, S-FAIR-5 */
	} dataplane;
	struct {
		struct conf_texts extra_args;
	} eal;
	struct conf_port *ports;
	unsigned n_ports;
	struct conf_stage *stages;
	unsigned n_stages;
	struct conf_texts stage_dirs;
	struct conf_texts channels;
	struct {
		uint32_t spots;		 /* User + Instance Spots of the node, 0 = unlimited */
		uint32_t spots_per_lane; /* table size bound */
		uint32_t records_per_lane;
		uint32_t pending_creates; /* factory + initialise at once, S-ROLE-4 */
		uint32_t spot_queue_count;
		uint64_t spot_queue_bytes;
		uint32_t lifecycle_queue_count;
		uint32_t timers_per_lane;
		uint32_t subscriptions_per_lane;
		uint32_t send_waiters_per_lane; /* S-LIM-9 */
		uint16_t timers_per_spot;
		uint64_t lifecycle_queue_bytes;
		uint32_t message_max_bytes;
		uint64_t credit_pool_bytes; /* 0 = seven eighths of the packet memory */
		uint32_t peers;		    /* associations */
	} limits;
	struct { /* S-WORK-4 */
		uint32_t cpu_threads_min, cpu_threads_max;
		uint32_t cpu_idle_ms;
		uint32_t cpu_queue;
		uint32_t io_operations;
		uint32_t results_mb;
	} workers;
	struct {
		uint32_t send_ms; /* S-LIM-8 */
		uint32_t request_ms;
		uint32_t create_ms;
		uint32_t instance_idle_ms; /* S-IDLE-1; 0 = never */
	} timeouts;
	struct {
		uint32_t renew_ms, timeout_ms, ttl_ms, margin_ms; /* S-LEASE-1 */
	} lease;
	struct {
		uint32_t cache_age_ms; /* 0 = places are not cached */
	} route;
	struct {
		int reclaim; /* enum conf_reclaim */
	} authority;
	struct {
		int backend; /* enum conf_store */
		char *path;  /* SQLite file */
	} store;
	struct {
		char *socket; /* at most 107 bytes */
		mode_t socket_mode;
		char *socket_group;   /* may do everything; "" = the daemon's own group */
		char *readonly_group; /* may only show; "" = none */
		char *private_dir;    /* directory of dataplane.sock, 0750 */
		uint16_t clients_max;
		uint32_t line_max_bytes;
		uint32_t output_max_bytes;
		uint32_t input_timeout_ms; /* a request line must be complete by then */
	} control;
	struct {
		int level; /* enum conf_log */
	} log;

	char *file; /* as given to conf_load() */
	struct conf_shown *shown;
	unsigned n_shown;
	struct conf_source_file *files; /* what was read, for conf_file_changed() */
	unsigned n_files;
};

struct conf_source_file;

struct conf_report {
	unsigned n; /* all errors found; the first CONF_ERRORS_MAX are kept */
	struct {
		char *file;
		unsigned line; /* 0 = the file as a whole */
		char *text;    /* one sentence */
	} item[CONF_ERRORS_MAX];
};

/* Reads and checks `path`. `allowed` is the set of CPUs the dataplane may use; NULL asks the
 * kernel for this process's set. The file and its @include files must not be writable by others.
 * Returns a configuration that the caller frees with conf_free(), or NULL with at least one error
 * in `rep`. `rep` is initialised here and always freed by the caller with conf_report_free(). */
struct config *conf_load(const char *path, const cpu_set_t *allowed, struct conf_report *rep);

/* As conf_load() for text that is not in a file; `name` stands for the file in errors and
 * @include is resolved against the directory of `name`. */
struct config *conf_load_text(const char *name, const char *text, size_t len,
			      const cpu_set_t *allowed, struct conf_report *rep);

/* What bounds the credit of its peers (common/credit.h). */
struct credit_bounds;
void config_credit(const struct config *c, struct credit_bounds *b);

/* True when the file, or one that it includes, is not any more what was read: it was replaced or
 * written. */
bool conf_file_changed(const struct config *cfg);

/* Frees `cfg`; NULL is allowed. */
void conf_free(struct config *cfg);
void conf_report_free(struct conf_report *rep);

/* "FILE:LINE: sentence" a line. */
void conf_report_print(const struct conf_report *rep, FILE *to);

/* `spotlane-control --check FILE`, `spotctl config check FILE`: prints "FILE: ok" to `out` (NULL =
 * nowhere), or the errors to `err`. Returns 0 or 1. */
int conf_check_main(const char *path, FILE *out, FILE *err);

#endif
