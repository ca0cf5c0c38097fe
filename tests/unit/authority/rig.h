/* SPDX-License-Identifier: BSD-3-Clause */
/* An authority with everything around it: a store with faults, a clock, a dataplane that answers
 * at once or when told to, and the replies by tag. One thread; nothing happens by itself. */
#ifndef SPL_TESTS_AUTHORITY_RIG_H
#define SPL_TESTS_AUTHORITY_RIG_H

#include "control/authority/authority.h"
#include "control/authority/rows.h"
#include "control/store/store_fault.h"
#include "control/store/store_memory.h"
#include "tests/lib/t_main.h"

#include <CUnit/CUnit.h>

#define MS	     1000000LL
#define RIG_REPLIES  4096
#define RIG_OBJECTS  4096
#define RIG_CMDS     4096
#define RIG_ATTEMPTS 65536

/* A copy of a reply; names as C strings. */
struct rig_reply {
	bool there;
	unsigned times; /* must be 1 */
	struct auth_reply r;
	char id[256], type[256], rid[256], text[256];
	char reply[64];
	uint32_t reply_n;
	char next[AUTH_TOKEN_MAX + 1];
	char ids[64][24]; /* LIST: the first ids */
};

/* An object in the fake dataplane. */
struct rig_object {
	bool there;
	char id[256];
	uint64_t obj_gen, own_gen, attempt, ver;
	int64_t lease_gen;
	enum auth_inventory_state state;
};

struct rig_cmd {
	bool open;
	enum auth_fx_kind kind;
	struct auth_command c;
	char id[256];
	char request[64];
};

enum rig_policy { RIG_ACCEPT, RIG_DECLINE, RIG_FAIL };

struct rig {
	struct auth *a;
	struct store *st;	/* the memory store behind faults */
	struct store *mem;	/* that memory store */
	int64_t now;		/* ns */
	struct auth_config cfg; /* of the newest authority */
	uint64_t seed;		/* of rnd and of the store; 0: the program's */
	struct t_rand rnd;
	bool fixed_random;	/* every byte of randomness is the same */
	enum store_fault fault; /* of the next store call of `fault_op` */
	enum store_op fault_op;
	int fault_times;	  /* -1: for ever */
	unsigned chaos;		  /* percent of store calls that fail or lose their answer */
	struct store_batch *held; /* with hold_store: the batch that is out */
	bool hold_store;
	/* dataplane */
	bool hold_dp; /* commands wait for rig_answer() */
	bool dead_dp; /* nobody there: commands are lost */
	struct {
		bool hold, fails; /* its commands are lost; its callbacks fail */
		unsigned lapses;  /* so many times the lease has run out over there */
		unsigned discarded;
		bool is_there;
		uint64_t obj_gen;
		unsigned asked, made, closed, others; /* others: objects when it was closed */
	} entry; /* the Entry Spot, which is in no other count */
	enum rig_policy policy;
	bool late_close;	/* RIG_FAIL of a close: the deadline passed */
	const char *reply_text; /* of on_create */
	struct rig_cmd cmds[RIG_CMDS];
	unsigned n_cmds;
	struct rig_object objects[RIG_OBJECTS];
	uint64_t *attempts; /* of every PREPARE, to see none twice */
	unsigned n_attempts;
	unsigned factories;	       /* PREPAREs that ran one */
	unsigned closings;	       /* on_closing runs */
	enum auth_close_reason reason; /* of the last */
	/* what was told */
	struct rig_reply *replies;
	unsigned n_replies;
	unsigned host_ready, lease_told, lease_lost, inventories, stopped, forced, checks, errors;
	char log[16384]; /* every line, each with a newline behind it */
	size_t log_n;
	unsigned gone; /* lifecycles that the host was told to forget */
	struct auth_host_id id;
	int64_t deadline;
	enum auth_host_state state;
	char stop_text[256];
	enum auth_outcome outcome; /* of the last HOST_STOPPED */
	enum auth_stop_reason stop_reason;
	struct spl_name check_rid;
	enum { RIG_UNKNOWN, RIG_HELD, RIG_ENDED, RIG_SILENT, RIG_TRUE } life; /* answer to checks */
	uint64_t next_op;
	uint32_t spots_max, room_limit, pending_max, group_max, ops_max;
	bool on_restart;
};

extern struct rig rig;

/* A rig with a fresh memory store and a serving host that offers the types "room" and "cart", and
 * the Instance type "twin". */
void rig_open(void);
/* The same without a host; fields of rig (spots_max, on_restart, ...) may be set before. */
void rig_open_bare(void);
void rig_reset(void); /* zeroes the fields that rig_open* read */
void rig_close(void);
void rig_start_host(void);
/* One more authority with the rig's settings into *out; the rig's own stays as it is. */
void rig_make(struct auth **out);
/* Control dies and comes back: the store and the dataplane stay. */
void rig_restart_control(void);
void rig_resume_host(void);
/* The dataplane is killed (and its objects with it). */
void rig_kill_dp(void);
void rig_shutdown(int64_t in_ms);

/* The next `times` store calls of this kind (-1: all) end like this. */
void rig_fault(enum store_fault f, enum store_op op, int times);
/* Somebody writes the same bytes again: the version that was read is stale now. */
void rig_touch(const char *id);
void rig_touch_cap(void);

/* Runs until nothing more can happen at this time. */
void rig_run(void);
void rig_advance(int64_t ms);
/* Lets time pass in ticks until the authority has no effect left before `ms` from now. */
void rig_pass(int64_t ms);
void rig_release_store(void);
/* Answers the oldest open command of this kind (id NULL: of any id). False: there is none. */
bool rig_answer(enum auth_fx_kind kind, const char *id, enum rig_policy policy);
unsigned rig_open_cmds(enum auth_fx_kind kind);

/* Requests; each returns the tag. */
uint64_t rig_create(const char *type);
uint64_t rig_goc(const char *id, const char *type);
uint64_t rig_goc_in(const char *id, const char *type, int64_t ms);
uint64_t rig_goc_op(const char *id, const char *type, uint64_t op, int64_t ms);
uint64_t rig_find(const char *id);
uint64_t rig_activate(const char *id, const char *type, int64_t ms);
/* From the Spot's own context. */
uint64_t rig_own_close(const char *id, uint64_t gen, enum auth_close_reason reason);
uint64_t rig_ask(enum auth_verb v, const char *id);
uint64_t rig_closing(const char *id, uint64_t gen);
uint64_t rig_list(const char *type, uint32_t limit, const char *token);
/* auth_submit() itself. */
int rig_submit(struct auth_request *r, uint64_t *tag);
struct auth_request rig_request(enum auth_verb v, const char *id, const char *type);

struct rig_reply *rig_got(uint64_t tag);
int rig_kind(uint64_t tag); /* -1: no reply yet */
bool rig_is_created(uint64_t tag);
bool rig_is_existing(uint64_t tag);
enum auth_host_state rig_state(void);

/* Store, read directly. */
bool rig_row(const char *id, struct row_obj *row, uint64_t *gen); /* false: no row */
uint64_t rig_gen(const char *id);				  /* of its row; 0: no row */
bool rig_cap(struct row_cap *cap);
bool rig_read_key(const char *key, uint32_t n, struct store_item *it);
struct auth_bytes rig_bytes(const struct spl_name *n);
bool rig_node_row(struct row_node *row, struct store_item *it); /* of this host */
bool rig_lease_there(void);
struct rig_object *rig_object(const char *id);
unsigned rig_objects(void);
struct rig_object *rig_object_add(const char *id);
/* G0: capacity equals the rows, every command settled, objects match rows, one reply each. */
void rig_check_rest(void);
/* At any time: the capacity row of this host equals the object rows under its lease. */
void rig_check_capacity(void);

#endif
