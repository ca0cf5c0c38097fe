/* SPDX-License-Identifier: BSD-3-Clause */
/* A host of up to 3 lanes for the tests of the room of Spots: a clock that stands still until it is
 * moved, buffers from malloc (so that a sanitizer sees a use after release), everything that
 * leaves a lane in lists, rings between lanes that hold what they are told to.
 */
#ifndef SPL_TEST_SPOT_FAKE_H
#define SPL_TEST_SPOT_FAKE_H

#include "dataplane/spot/lane.h"
#include "tests/lib/t_main.h"

#include <CUnit/CUnit.h>
#include <spotlane/stats.h>

#define FAKE_LANES	 3
#define FAKE_HZ		 1000000000u /* a cycle is a nanosecond */
#define FAKE_MS		 1000000u
#define FAKE_LIST	 65536
#define FAKE_WALL_NS	 (1700000000000000000u) /* CLOCK_REALTIME when the clock was 0 */
#define FAKE_STAGES	 32

#define FAKE_ASKED	 16 /* works, and creations, that it takes */

#define FAKE_CAST_RETURN 221u /* kind of what gives a cast back to its lane */

/* A reply, or a message for another lane, that left. */
struct fake_out {
	uint8_t to, kind, error;
	uint16_t content;
	uint64_t flow, correlation, deadline, packet, source;
	struct spl_key key;
	struct spl_name id, type; /* with Instance intent */
	uint32_t bytes;
	char payload[64]; /* the first bytes */
	struct spl_flow_id trace;
	void *whole; /* for another lane: all of them */
	struct spot_cast cast;
};

struct fake_lane {
	struct fake *f;
	uint32_t index;
	struct spot_lane *l;
	struct spot_plan plan;
	void *mem[SPOT_MEM_COUNT];
	uint64_t counters[SPL_C_COUNT], fails[SPL_FAIL_COUNT];
	struct spl_stage_stats stage_stats[FAKE_STAGES];
	struct spl_trace_ring *trace;
	struct spl_measures measures;
	struct fake_out *ring; /* messages for this lane */
	unsigned ring_head, ring_count, ring_max;
};

struct fake {
	struct spot_conf conf;
	uint64_t now;
	uint64_t lease;
	bool pool_low;
	uint32_t permits;
	unsigned lanes;
	struct fake_lane lane[FAKE_LANES];
	long buffers;	   /* not released */
	uint64_t charged;  /* credit not given back */
	int send_error;	   /* what send() answers, 0 = it sends */
	int missing_error; /* what missing() answers */
	int close_error;
	enum spl_closing close_reason; /* of the last wish */
	uint64_t close_generation;
	struct spl_name close_id;
	int activate_error;
	struct spl_stage_info infos[FAKE_STAGES]; /* of types that are to be known by name */
	unsigned missing, close_wanted, casts, failures, activates;
	struct spl_name activate_id, activate_type; /* of the last question */
	struct spl_key activate_key;
	uint64_t activate_serial;
	unsigned overruns;
	char overrun[96]; /* the last: "timer|in NAME (TYPE): CYCLES" */
	char failure[96]; /* the last: "timer|packet NAME of SPOT (TYPE): KIND" */
	_Atomic uint32_t *topic_lanes;
	struct spot_work work[FAKE_ASKED]; /* handed over; of `input` the bytes below */
	char work_input[FAKE_ASKED][64];
	uint32_t work_lane[FAKE_ASKED];
	unsigned works;
	int work_error;
	struct fake_creation { /* asked for; texts cut */
		char type[32], id[32], request[64];
		uint64_t correlation, deadline;
		uint32_t lane;
	} creation[FAKE_ASKED];
	unsigned creations;
	int create_error;
	struct spl_key missing_key;
	uint64_t missing_correlation;
	uint8_t missing_origin;
	struct fake_out *out;
	unsigned outs;
	struct spot_answer *answer;
	unsigned answers;
	char answer_reply[64];
	uint64_t next_correlation, next_op, next_generation;
};

/* Small defaults in f->conf; change them before fake_start(). */
void fake_init(struct fake *f, unsigned lanes);
void fake_start(struct fake *f);

/* Checks that nothing is held any more and that the counters add up, and frees. */
void fake_stop(struct fake *f);

/* On every lane, from now on. fake_start() does it with SPL_TRACE_DEFAULT. */
void fake_trace(struct fake *f, enum spl_trace_level level, uint64_t share);

/* Messages: accepted = finished + failed by name + queued + running; the totals of each stage are
 * what its Spots add up to; lane memory is sound. */
bool fake_law(const struct fake *f);
/* Of the totals alone. */
bool fake_totals_law(const struct fake_lane *fl);

/* The lane of an id. */
struct fake_lane *fake_lane_of(struct fake *f, const char *id);
struct spl_key fake_key(const char *id);

/* Prepares without running anything; the object generation. */
uint64_t fake_prepare(struct fake *f, const char *id, const struct spot_stage *stage,
		      const char *request, uint64_t deadline);
/* Prepares, runs, publishes; the object generation. Asserts that it was accepted. */
uint64_t fake_create(struct fake *f, const char *id, const struct spot_stage *stage);
void fake_close(struct fake *f, const char *id, uint64_t generation, enum spl_closing reason,
		uint64_t deadline);

/* A message of a peer (`source` names it); the correlation of a request, 0 for a send. */
uint64_t fake_message(struct fake *f, const char *id, bool request, const char *packet,
		      const void *payload, uint32_t bytes);
uint64_t fake_request(struct fake *f, const char *id, const char *packet, const char *payload);
void fake_send(struct fake *f, const char *id, const char *packet, const char *payload);

/* The same with every field in the caller's hands: fills a record for `id`; the caller changes it
 * and admits it with fake_admit(). */
struct spot_rec *fake_record(struct fake *f, const char *id, bool request, const char *packet,
			     const void *payload, uint32_t bytes);
/* The same for a lane and a key, as of a publish. */
struct spot_rec *fake_record_on(struct fake *f, struct fake_lane *lane, const struct spl_key *key,
				const char *packet, const void *payload, uint32_t bytes);
void fake_admit(struct fake *f, const char *id, struct spot_rec *r);

/* The same with Instance intent for `type`. */
uint64_t fake_instance(struct fake *f, const char *id, const char *type, bool request,
		       const char *packet, const char *payload);

/* Control's word about the last question for an Instance Spot. */
void fake_activated(struct fake *f, uint8_t kind);

/* Control's word about a request for a Spot that is not there, on whatever lane it waits. */
void fake_missing_says(struct fake *f, uint64_t correlation, uint8_t kind, const char *text);

/* The end of f->work[i]: its result comes back, as the workers would send it. */
void fake_work_ends(struct fake *f, unsigned i, uint8_t kind, const char *text);

/* The end of f->creation[i]: what control says of it, and on_create's reply. */
void fake_creation_ends(struct fake *f, unsigned i, uint8_t kind, int state, const char *id,
			const char *reply);

/* Passes until nothing is ready and no ring holds anything; at most `max` passes. */
void fake_run(struct fake *f);
/* One pass of each lane with at most `turns` turns. */
unsigned fake_pass(struct fake *f, unsigned turns);
void fake_advance(struct fake *f, uint64_t ns);

/* The only reply to `correlation`; NULL when there is none, and a failed assertion when more. */
const struct fake_out *fake_reply(struct fake *f, uint64_t correlation);
bool fake_replied(struct fake *f, uint64_t correlation, uint8_t error, const char *payload);

/* The last answer of the agent's commands with this verb. */
const struct spot_answer *fake_answer(struct fake *f, uint8_t verb);

uint64_t fake_failed(const struct fake *f, enum spl_message_fail why);
uint64_t fake_counter(const struct fake *f, enum spl_lane_counter c);
/* As its lanes tell it in their next pass. */
uint64_t fake_stage_total(struct fake *f, const struct spot_stage *stage, enum spl_stage_counter c);

/* A stage built from a descriptor; never freed. */
const struct spot_stage *fake_stage(const struct spl_stage *desc);

/* An event log of handlers: words with a space between. */
void fake_log(const char *word);
const char *fake_logged(void);
void fake_log_clear(void);

#endif
