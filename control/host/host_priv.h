/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of the host. host.c: life, effects of the authority. dataplane.c: what comes from the
 * dataplane. lifecycle.c, commands.c: what goes there. life.c: which lifecycles have ended. mesh.c:
 * control messages of clients and handlers. methods.c, calls.c, show.c, stages.c,
 * trace.c, metrics.c, status.c: the management methods. activations.c: what metrics.c shows of
 * them. dpconf.c: the configuration as the dataplane gets it.
 */
#ifndef SPL_CONTROL_HOST_PRIV_H
#define SPL_CONTROL_HOST_PRIV_H

#include "common/clock.h"
#include "common/log.h"
#include "control/authority/authority.h"
#include "control/dplink/dplink.h"
#include "control/dplink/statseg.h"
#include "control/host/host.h"
#include "control/host/observe.h"
#include "control/host/worker.h"

#include <spotlane/packets.h>
#include <sys/queue.h>

#define HOST_MODULE	  "host"
#define HOST_CONFIG_NS	  (120 * CLOCK_NS_PER_S) /* EAL, hugepages and ports may take long */
#define HOST_CONTROL_NS	  (30 * CLOCK_NS_PER_S) /* other requests without a deadline of their own */
#define HOST_EXIT_NS	  (10 * CLOCK_NS_PER_S) /* from EXIT to the end of the process */
#define HOST_KILL_NS	  (5 * CLOCK_NS_PER_S)	/* from a forced EXIT to SIGKILL */
#define HOST_CALLS_MAX	  4096			/* SPOT_CALLs under way */
#define HOST_PORT_UPS_MAX SPL_PORTS_MAX

/* Who waits for a reply of the authority, or of the dataplane to a SPOT_CALL. */
enum host_wait_kind { HOST_WAIT_METHOD, HOST_WAIT_MESH, HOST_WAIT_SELF };

struct host_wait {
	TAILQ_ENTRY(host_wait) link;
	struct host *h;
	enum host_wait_kind kind;
	bool is_call; /* of an operator to a Spot: resolved first, then with the dataplane */
	/* METHOD */
	struct mgmt_call *call;
	enum spl_mgmt_method method;
	char object[300];  /* what it is about, for errors */
	json_t *params;	   /* of a call to a Spot; owned */
	uint64_t deadline; /* of that call, ns */
	/* MESH */
	uint64_t connection, corr;
	uint8_t op;
	uint64_t since; /* of a start of an Instance Spot; of which type, and 1 */
	size_t type;
};
TAILQ_HEAD(host_waits, host_wait);

enum host_stop { HOST_RUNS, HOST_DRAINS, HOST_ENDS_DATAPLANE, HOST_FINISHED };

struct host_port_up {
	char name[256], driver[256];
	uint64_t mac;
};

struct host {
	struct host_options o;
	const struct config *cfg;
	struct auth *auth;
	struct worker *worker;
	struct dplink *link;
	struct statseg stats;
	uv_timer_t tick, deadline; /* of the authority; of the end of the dataplane */
	uv_timer_t life_retry;	   /* of life.c, after the store failed it */
	char store_name[4200];
	char control_rid[64]; /* source of the operations of this process */
	uint64_t control_life, op_serial;
	struct host_waits waits;
	unsigned n_calls;
	uint64_t started_ns;
	time_t started;

	/* the authority's turn */
	bool pumping, pump_again;

	/* configuration as the dataplane gets it, encoded once */
	uint8_t *config;
	size_t config_bytes;
	uint64_t config_hash;

	/* the dataplane */
	bool up;		     /* the link stands */
	uint64_t connection;	     /* number of it */
	uint64_t epoch;		     /* process last seen; 0 = none alive */
	uint8_t hello_state;	     /* enum dp_state */
	struct auth_host_id resumed; /* identity in its HELLO */
	bool configured;	     /* CONFIGURED came on this connection */
	bool refused;		     /* it refused its configuration */
	char refusal[256];
	uint64_t life_epoch;	       /* the process whose lifecycle the authority has; 0 = none */
	struct host_measured measured; /* for the metrics that are control's own */
	struct host_status status;
	bool store_fails;     /* the last batch did */
	uint8_t trace_level;  /* enum spl_trace_level */
	uint64_t trace_share; /* of SPL_TRACE_ALL */
	uint32_t lanes;
	struct auth_type types[AUTH_TYPES_MAX];
	size_t n_types;
	struct host_activations *activations; /* [n_types]; of this process: */
	uint64_t activations_epoch;
	struct host_port_up ports[HOST_PORT_UPS_MAX];
	unsigned n_ports;

	/* the lifecycle */
	bool has_id;
	struct auth_host_id id;
	uint64_t lease_deadline, lease_sequence;
	bool has_state;
	struct dp_host_state state;
	bool life_written, life_writing; /* its row says which process it is */
	bool life_write_again, life_scan_again;
	struct { /* inventory under way */
		bool on;
		uint64_t run; /* tells its pages from those of one that was given up */
		uint32_t lane;
		uint64_t cursor;
	} inv;

	enum host_stop stop;
	int exit_code;
	bool exit_sent, killed;
	unsigned closing;
	void (*closed)(void *arg);
	void *closed_arg;
};

static inline uint64_t host_now(const struct host *h)
{
	return h->o.now(h->o.now_ctx);
}

/* ---- host.c ---- */
void host_pump(struct host *h);
void host_event(struct host *h, const struct auth_event *e);
/* 0 and the wait is the authority's until its reply; otherwise the error of auth_submit(). */
int host_submit(struct host *h, struct host_wait *w, struct auth_request *r);
struct host_wait *host_wait_new(struct host *h, enum host_wait_kind kind);
void host_wait_free(struct host_wait *w);
/* Ends the process: nothing sensible is left to do. */
void host_fatal(const char *what) __attribute__((noreturn));
/* The dataplane process is gone, or need not be waited for. */
void host_dataplane_ended(struct host *h);

/* ---- dataplane.c ---- */
extern const struct dplink_ops host_link_ops;

/* ---- lifecycle.c ---- */
void host_send_config(struct host *h);
void host_send_identity(struct host *h);
void host_send_state(struct host *h);
void host_send_lease(struct host *h);
void host_send_lease_lost(struct host *h, const char *why);
void host_send_trace(struct host *h);
void host_send_exit(struct host *h, bool forced);
void host_inventory(struct host *h);

/* ---- commands.c ---- */
void host_command(struct host *h, enum auth_fx_kind kind, const struct auth_command *c);

/* ---- life.c ---- */
/* Writes down which process the lifecycle is, before it learns its identity. */
void host_life_write(struct host *h);
/* Answers AUTH_FX_LIFECYCLE_CHECK, later. */
void host_life_check(struct host *h, const struct spl_name *rid, uint64_t lifecycle);
/* At the start: tells the authority which lifecycles ended while no control was here, so that their
 * leases are let go and, with on_restart, their rows freed. */
void host_life_scan(struct host *h);
/* The lifecycle is over, proved: forgets its process. */
void host_life_ended(struct host *h, const struct spl_name *rid);

/* ---- mesh.c ---- */
int host_mesh_op(struct host *h, const struct dplink_msg *m);
void host_mesh_reply(struct host_wait *w, const struct auth_reply *r);

/* ---- activations.c ---- */
/* The types are others, or of another dataplane. */
void host_activations_reset(struct host *h);
void host_activation_begins(struct host *h, struct host_wait *w, struct auth_bytes type);
void host_activation_ended(struct host *h, const struct host_wait *w, const struct auth_reply *r);

/* ---- methods.c ---- */
void host_method_reply(struct host_wait *w, const struct auth_reply *r);
void host_method_fail(struct host_wait *w, int kind, const char *text);

/* Parameters of a method; bytes are views. */
struct auth_bytes host_param_bytes(const json_t *params, const char *name);
uint64_t host_param_deadline(const struct host *h, const json_t *params, uint32_t default_ms);
/* A wait for the answer to `call`, about "what NAME". */
struct host_wait *host_method_wait(struct host *h, struct mgmt_call *call,
				   enum spl_mgmt_method method, const char *what,
				   const json_t *params, const char *name);
/* host_submit() as an operation of this process; answers the call when that fails. */
void host_method_submit(struct host *h, struct host_wait *w, struct auth_request *r);

/* ---- calls.c ---- */
void host_spot_send(struct mgmt_call *call, const json_t *params, void *ctx);
void host_spot_request(struct mgmt_call *call, const json_t *params, void *ctx);
void host_call_resolved(struct host_wait *w, const struct auth_reply *r);

/* ---- show.c ---- */
void host_node_show(struct mgmt_call *call, const json_t *params, void *ctx);
void host_stats_show(struct mgmt_call *call, const json_t *params, void *ctx);
void host_config_show(struct mgmt_call *call, const json_t *params, void *ctx);
void host_log_set_level(struct mgmt_call *call, const json_t *params, void *ctx);

/* ---- dpconf.c ---- */
/* Encodes CONFIG for `cfg` into malloc'ed bytes that the caller frees. 0, -ENOMEM, or -EINVAL with
 * a sentence. */
int host_config_encode(const struct config *cfg, uint8_t **out, size_t *n, uint64_t *hash,
		       char *err, size_t err_size);

static inline struct auth_bytes host_bytes(struct pack_bytes b)
{
	return (struct auth_bytes){b.p, b.len};
}

static inline struct pack_bytes host_pack(struct auth_bytes b)
{
	return (struct pack_bytes){b.p, b.n};
}

static inline struct pack_bytes host_name(const struct spl_name *n)
{
	return (struct pack_bytes){n->b, n->len};
}

#endif
