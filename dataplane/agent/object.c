/* SPDX-License-Identifier: BSD-3-Clause */
/* not a lane file: Spots by order of control: memory is backed here before the command reaches the
 * lane, so that a lane never allocates. A repeated request has no further effect: the room answers
 * it, and a repeated PREPARE under way takes over the answer.
 */
#include "dataplane/agent/agent.h"

#include "common/dp_io.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define BACK_STEP (256u << 10) /* regions are backed in pieces of this size */

static unsigned lane_of(const struct agent *a, const struct spl_key *key)
{
	return spl_key_lane(key, a->sh.lanes);
}

/* Backs the lane's regions up to what its plan says. */
static int back(struct agent *a, unsigned lane)
{
	static const enum spot_region which[] = {SPOT_MEM_TABLE, SPOT_MEM_OBJECTS};
	struct lane *l = a->lane[lane];

	for (size_t i = 0; i < 2; i++) {
		enum spot_region r = which[i];
		uint64_t have = a->backed[lane][r], want = a->plan[lane].bytes[r];

		if (want <= have)
			continue;
		want = (want + BACK_STEP - 1) & ~(uint64_t)(BACK_STEP - 1);
		if (want > l->region_bytes[r])
			want = l->region_bytes[r];
		if (madvise((uint8_t *)l->region[r] + have, want - have, MADV_POPULATE_WRITE))
			return -errno;
		a->backed[lane][r] = want;
	}
	return 0;
}

/* False when the reply found no memfd: control hears of a failure then, never of an empty reply. */
static bool reply_prepared(struct agent *a, uint64_t corr, const struct dp_prepared *m)
{
	struct pack_writer w = agent_packet(a, DP_PREPARED, DP_F_REP, corr);
	struct dp_prepared out = *m;
	int fd, rc = dp_field_out(&out.reply, &fd);

	if (rc < 0)
		out = (struct dp_prepared){.attempt = m->attempt,
					   .result = DP_PREPARED_FAILED,
					   .kind = SPL_E_INTERNAL_FAILURE,
					   .text = dp_text("no memory file for the reply")};
	dp_put_prepared(&w, &out);
	agent_packet_send(a, &w, fd);
	if (fd >= 0)
		close(fd);
	return rc == 0;
}

static void refuse_prepare(struct agent *a, const struct sock_packet *p, uint64_t attempt,
			   uint8_t kind, const char *text)
{
	struct dp_prepared m = {.attempt = attempt,
				.result = DP_PREPARED_FAILED,
				.kind = kind,
				.text = dp_text(text)};

	reply_prepared(a, p->h.corr, &m);
}

static struct agent_staged *staged_find(struct agent *a, const struct spl_key *key, uint64_t gen)
{
	struct agent_staged *s;

	TAILQ_FOREACH (s, &a->staged, list)
		if (s->object_generation == gen && spl_key_equal(&s->key, key))
			return s;
	return NULL;
}

static void staged_end(struct agent *a, const struct spl_key *key, uint64_t gen)
{
	struct agent_staged *s = staged_find(a, key, gen);

	if (!s)
		return;
	TAILQ_REMOVE(&a->staged, s, list);
	free(s->reply);
	free(s);
}

/* The Spot is gone from its lane: its memory may be planned for another. */
static void gone(struct agent *a, const struct agent_command *cmd)
{
	if (cmd->c.stage)
		spot_plan_remove(&a->plan[cmd->c.lane], cmd->c.stage, cmd->c.id_len);
	staged_end(a, &cmd->c.key, cmd->c.object_generation);
}

/* The lane had no room for the command; the Spot lives on. Asks again. */
static bool asked_again(struct agent *a, const struct agent_command *cmd)
{
	struct agent_command *again;

	if (cmd->c.verdict != SPOT_FAILED || cmd->c.error != SPL_E_CAPACITY_EXCEEDED ||
	    cmd->c.stage)
		return false;
	again = agent_command_new(a, cmd->c.lane, (enum lane_verb)cmd->c.verb, cmd->done);
	if (!again)
		return false;
	again->corr = cmd->corr;
	again->c.key = cmd->c.key;
	again->c.object_generation = cmd->c.object_generation;
	again->c.deadline = cmd->c.deadline;
	again->c.reason = cmd->c.reason;
	agent_send(a, again);
	return true;
}

static void discarded(struct agent *a, struct agent_command *cmd)
{
	if (asked_again(a, cmd))
		return;
	gone(a, cmd);
	if (cmd->corr)
		agent_reply_ok(a, cmd->corr, SPL_OK, "");
}

/* A Spot was made, but its answer cannot be given: it goes again, unseen. */
static void take_back(struct agent *a, unsigned lane, const struct spl_key *key, uint64_t gen)
{
	struct agent_command *undo = agent_command_new(a, lane, LANE_DISCARD, discarded);

	if (!undo) {
		log_error("agent", "no memory to take a Spot back");
		return;
	}
	undo->c.key = *key;
	undo->c.object_generation = gen;
	agent_send(a, undo);
}

/* Keeps the answer for a PREPARE that comes again; false without memory. */
static bool keep_answer(struct agent *a, const struct agent_command *cmd)
{
	struct agent_staged *s = staged_find(a, &cmd->c.key, cmd->c.object_generation);

	if (!s)
		return true;
	s->content = cmd->c.content;
	if (cmd->c.mem_bytes == 0)
		return true;
	s->reply = malloc(cmd->c.mem_bytes);
	if (!s->reply)
		return false;
	s->reply_bytes = cmd->c.mem_bytes;
	memcpy(s->reply, cmd->c.mem, cmd->c.mem_bytes);
	return true;
}

static void prepared(struct agent *a, struct agent_command *cmd)
{
	struct agent_staged *staged = staged_find(a, &cmd->c.key, cmd->c.object_generation);
	struct dp_prepared m = {.attempt = cmd->attempt, .content = cmd->c.content};
	/* UINT32_MAX: it was made, but its reply found no memory. */
	bool made = cmd->c.verdict == SPOT_ACCEPTED || cmd->c.mem_bytes == UINT32_MAX;
	bool is_told;

	if (staged)
		staged->cmd = NULL; /* it is freed after this */
	switch ((enum spot_verdict)cmd->c.verdict) {
	case SPOT_ACCEPTED:
		m.result = DP_PREPARED_ACCEPTED;
		m.kind = SPL_OK;
		break;
	case SPOT_REJECTED:
		m.result = DP_PREPARED_REJECTED;
		m.kind = SPL_OK;
		break;
	case SPOT_FAILED:
	case SPOT_GONE:
	case SPOT_BUSY: /* of a close only */
		m.result = DP_PREPARED_FAILED;
		m.kind = cmd->c.error;
		m.text = dp_text("the stage could not be made");
		break;
	}
	if (!made)
		gone(a, cmd);
	if (cmd->c.mem_bytes != UINT32_MAX)
		m.reply = (struct pack_bytes){cmd->c.mem, cmd->c.mem_bytes};
	if (m.result == DP_PREPARED_ACCEPTED && !keep_answer(a, cmd))
		m = (struct dp_prepared){.attempt = cmd->attempt,
					 .result = DP_PREPARED_FAILED,
					 .kind = SPL_E_CAPACITY_EXCEEDED,
					 .text = dp_text("no memory to keep the answer")};
	is_told = reply_prepared(a, cmd->corr, &m);
	if (made && (!is_told || m.result == DP_PREPARED_FAILED))
		take_back(a, cmd->c.lane, &cmd->c.key, cmd->c.object_generation);
}

/* Fills the command of one PREPARE; NULL when there is no memory. */
static struct agent_command *prepare_command(struct agent *a, const struct dp_obj_prepare *m,
					     const struct spot_stage *stage, unsigned lane,
					     const struct spl_key *key)
{
	struct agent_command *cmd = agent_command_new(a, lane, LANE_PREPARE, prepared);

	if (!cmd)
		return NULL;
	if (m->request.len) {
		cmd->blob = malloc(m->request.len);
		if (!cmd->blob) {
			agent_command_free(cmd);
			return NULL;
		}
		memcpy(cmd->blob, m->request.p, m->request.len);
	}
	cmd->c.data = cmd->blob;
	cmd->c.bytes = m->request.len;
	cmd->c.key = *key;
	cmd->c.stage = stage;
	cmd->c.object_generation = m->obj_gen;
	cmd->c.deadline = m->deadline;
	cmd->c.id.len = (uint8_t)m->id.len;
	memcpy(cmd->c.id.b, m->id.p, m->id.len);
	cmd->attempt = m->attempt;
	return cmd;
}

static bool is_entry(const struct agent *a, const struct spl_key *key)
{
	struct spl_key entry = spl_spot_key(a->entry_id.b, a->entry_id.len);

	return spl_key_equal(&entry, key);
}

/* The generation under which the lanes have the Spot that control means. There is one Entry Spot
 * only (S-ENTRY-1), which a control that has come again, or has a later lease, may know under
 * another generation, be it Ready or prepared. */
static uint64_t generation_of(const struct agent *a, struct pack_bytes id, uint64_t gen)
{
	struct spl_key key = spl_spot_key(id.p, id.len);
	const struct agent_staged *s;

	if (!is_entry(a, &key))
		return gen;
	TAILQ_FOREACH (s, &a->staged, list)
		if (spl_key_equal(&s->key, &key))
			return s->object_generation;
	return a->entry_live ? a->entry_live : gen;
}

void agent_prepare(struct agent *a, const struct sock_packet *p)
{
	struct pack_reader r = p->body;
	const struct spot_stage *stage;
	struct agent_command *cmd;
	struct agent_staged *s;
	struct dp_obj_prepare m;
	struct spl_key key;
	unsigned lane;

	dp_get_obj_prepare(&r, &m);
	if (p->blob.p && m.request.len == 0)
		m.request = p->blob;
	if (!dp_done(&r) || !spl_name_valid(m.id.p, m.id.len) ||
	    m.request.len > SPL_CREATE_REQUEST_BYTES_MAX) {
		refuse_prepare(a, p, m.attempt, SPL_E_PROTOCOL_ERROR, "PREPARE does not decode");
		return;
	}
	stage = m.kind == SPL_KIND_ENTRY /* which has no type */
			? stage_set_entry(a->stages)
			: stage_set_find(a->stages, (enum spl_kind)m.kind, m.type.p, m.type.len);
	if (!stage) {
		refuse_prepare(a, p, m.attempt, SPL_E_NOT_CONFIGURED, "no such stage type here");
		return;
	}
	key = spl_spot_key(m.id.p, m.id.len);
	lane = lane_of(a, &key);
	if (is_entry(a, &key) && a->entry_live) { /* whatever the lanes have room for by now */
		refuse_prepare(a, p, m.attempt, SPL_E_ALREADY_EXISTS, "the Entry Spot is there");
		return;
	}
	m.obj_gen = generation_of(a, m.id, m.obj_gen);
	s = staged_find(a, &key, m.obj_gen);
	if (s) { /* comes again: the first answer was lost with the connection */
		struct dp_prepared again = {.attempt = m.attempt,
					    .result = DP_PREPARED_ACCEPTED,
					    .kind = SPL_OK,
					    .content = s->content,
					    .reply = {s->reply, s->reply_bytes}};

		if (s->attempt == m.attempt && s->cmd)
			s->cmd->corr = p->h.corr; /* takes the answer over */
		else if (s->attempt == m.attempt && !reply_prepared(a, p->h.corr, &again))
			take_back(a, lane, &key, m.obj_gen);
		else if (s->attempt != m.attempt)
			refuse_prepare(a, p, m.attempt, SPL_E_ALREADY_EXISTS, "being made");
		return;
	}
	cmd = prepare_command(a, &m, stage, lane, &key);
	s = calloc(1, sizeof(*s));
	if (!cmd || !s || spot_plan_add(&a->plan[lane], stage, (uint8_t)m.id.len)) {
		agent_command_free(cmd);
		free(s);
		refuse_prepare(a, p, m.attempt, SPL_E_CAPACITY_EXCEEDED, "the lane is full");
		return;
	}
	if (back(a, lane)) {
		spot_plan_remove(&a->plan[lane], stage, (uint8_t)m.id.len);
		agent_command_free(cmd);
		free(s);
		refuse_prepare(a, p, m.attempt, SPL_E_CAPACITY_EXCEEDED, "no memory for the lane");
		return;
	}
	*s = (struct agent_staged){
		.key = key, .object_generation = m.obj_gen, .attempt = m.attempt, .cmd = cmd};
	TAILQ_INSERT_TAIL(&a->staged, s, list);
	cmd->corr = p->h.corr;
	agent_send(a, cmd);
}

static void published(struct agent *a, struct agent_command *cmd)
{
	bool ok = cmd->c.verdict == SPOT_ACCEPTED;

	if (ok)
		staged_end(a, &cmd->c.key, cmd->c.object_generation);
	if (ok && is_entry(a, &cmd->c.key))
		a->entry_live = cmd->c.object_generation;
	agent_reply_ok(a, cmd->corr, ok ? SPL_OK : SPL_E_UNAVAILABLE,
		       ok ? "" : "no such Spot is prepared here");
}

static void send_keyed(struct agent *a, const struct sock_packet *p, enum lane_verb verb,
		       struct pack_bytes id, uint64_t gen,
		       void (*done)(struct agent *, struct agent_command *), uint64_t deadline,
		       uint8_t reason)
{
	struct agent_command *cmd;
	struct spl_key key;

	if (!spl_name_valid(id.p, id.len)) {
		agent_reply_ok(a, p->h.corr, SPL_E_PROTOCOL_ERROR, "no legal id");
		return;
	}
	key = spl_spot_key(id.p, id.len);
	cmd = agent_command_new(a, lane_of(a, &key), verb, done);
	if (!cmd) {
		agent_reply_ok(a, p->h.corr, SPL_E_INTERNAL_FAILURE, "out of memory");
		return;
	}
	cmd->corr = p->h.corr;
	cmd->c.key = key;
	cmd->c.object_generation = gen;
	cmd->c.deadline = deadline;
	cmd->c.reason = reason;
	if (verb == LANE_CLOSE && reason == SPL_CLOSING_HOST_SHUTDOWN &&
	    a->seal_step != AGENT_UNSEALED && a->seal_step != AGENT_SEALED)
		TAILQ_INSERT_TAIL(&a->held_closes, cmd, list);
	else
		agent_send(a, cmd);
}

void agent_publish(struct agent *a, const struct sock_packet *p)
{
	struct pack_reader r = p->body;
	struct dp_obj_publish m;

	dp_get_obj_publish(&r, &m);
	if (dp_done(&r))
		send_keyed(a, p, LANE_PUBLISH, m.id, generation_of(a, m.id, m.obj_gen), published,
			   0, 0);
	else
		agent_reply_ok(a, p->h.corr, SPL_E_PROTOCOL_ERROR, "PUBLISH does not decode");
}

void agent_discard(struct agent *a, const struct sock_packet *p)
{
	struct pack_reader r = p->body;
	struct dp_obj_discard m;

	dp_get_obj_discard(&r, &m);
	if (dp_done(&r))
		send_keyed(a, p, LANE_DISCARD, m.id, generation_of(a, m.id, m.obj_gen), discarded,
			   0, 0);
	else
		agent_reply_ok(a, p->h.corr, SPL_E_PROTOCOL_ERROR, "DISCARD does not decode");
}

static void closed(struct agent *a, struct agent_command *cmd)
{
	struct dp_closed m = {.result = DP_CLOSED_DONE, .kind = cmd->c.error};
	struct pack_writer w;

	if (asked_again(a, cmd))
		return;
	w = agent_packet(a, DP_CLOSED, DP_F_REP, cmd->corr);
	if (cmd->c.verdict == SPOT_GONE) {
		m.result = DP_CLOSED_MISSING;
	} else if (cmd->c.verdict == SPOT_BUSY) {
		m.result = DP_CLOSED_BUSY;
	} else {
		gone(a, cmd);
		if (cmd->c.error == SPL_E_DEADLINE_EXCEEDED)
			m.result = DP_CLOSED_LATE;
		else if (cmd->c.error != SPL_OK)
			m.result = DP_CLOSED_FAILED;
	}
	dp_put_closed(&w, &m);
	agent_packet_send(a, &w, -1);
}

void agent_close_spot(struct agent *a, const struct sock_packet *p)
{
	struct pack_reader r = p->body;
	struct dp_obj_close m;
	struct spl_key key;

	dp_get_obj_close(&r, &m);
	if (!dp_done(&r) || (m.reason > SPL_CLOSING_IDLE_EVICTED && m.reason != DP_CLOSE_FENCED)) {
		agent_reply_ok(a, p->h.corr, SPL_E_PROTOCOL_ERROR, "CLOSE does not decode");
		return;
	}
	key = spl_spot_key(m.id.p, m.id.len);
	m.obj_gen = generation_of(a, m.id, m.obj_gen);
	if (is_entry(a, &key))
		a->entry_live = 0;
	if (m.reason == DP_CLOSE_FENCED)
		send_keyed(a, p, LANE_FENCE, m.id, m.obj_gen, closed, 0, 0);
	else
		send_keyed(a, p, LANE_CLOSE, m.id, m.obj_gen, closed, m.deadline, m.reason);
}

static void inventoried(struct agent *a, struct agent_command *cmd)
{
	static uint8_t list[DP_INLINE_MAX + DP_INLINE_MAX / 2];
	struct pack_writer objects = {.p = list, .cap = sizeof(list)};
	struct pack_writer w = agent_packet(a, DP_INVENTORY, DP_F_REP, cmd->corr);
	struct lane_page *page = cmd->blob;
	struct dp_inventory m = {.lane = cmd->c.lane, .cursor = page->cursor, .more = page->more};

	for (unsigned i = 0; i < page->n; i++) {
		struct spl_key key = spl_spot_key(page->item[i].id.b, page->item[i].id.len);
		struct agent_staged *s = staged_find(a, &key, page->item[i].object_generation);
		struct dp_object o = {.state = page->item[i].state,
				      .obj_gen = page->item[i].object_generation,
				      .attempt = s ? s->attempt : 0,
				      .id = {page->item[i].id.b, page->item[i].id.len}};

		dp_put_object(&objects, &o);
	}
	m.objects = (struct pack_bytes){list, (uint32_t)objects.len};
	dp_put_inventory(&w, &m);
	agent_packet_send(a, &w, -1);
}

void agent_resync(struct agent *a, const struct sock_packet *p)
{
	struct pack_reader r = p->body;
	struct agent_command *cmd;
	struct lane_page *page;
	struct dp_resync m;

	dp_get_resync(&r, &m);
	if (!dp_done(&r) || m.lane >= a->sh.lanes) {
		agent_reply_ok(a, p->h.corr, SPL_E_PROTOCOL_ERROR, "RESYNC names no lane");
		return;
	}
	cmd = agent_command_new(a, m.lane, LANE_INVENTORY, inventoried);
	page = calloc(1, sizeof(*page));
	if (!cmd || !page) {
		free(page);
		agent_command_free(cmd);
		agent_reply_ok(a, p->h.corr, SPL_E_INTERNAL_FAILURE, "out of memory");
		return;
	}
	page->cursor = m.cursor;
	cmd->c.page = page;
	cmd->blob = page;
	cmd->corr = p->h.corr;
	agent_send(a, cmd);
}

/* ---- the seal of a stop ----
 *
 * First every lane seals, so that no publish starts any more. Then all of them settle, until every
 * publish that has started is in its subscribers' queues (LANE_SETTLES). Only now Spots are closed
 * for the stop, so that none of them leaves before such a publish gets to it (S-MCAST-7).
 */
static void next_step(struct agent *a, uint64_t corr);

static void step_done(struct agent *a, struct agent_command *cmd)
{
	if (--a->seal_left > 0)
		return;
	next_step(a, cmd->corr);
}

static void sealed(struct agent *a, uint64_t corr)
{
	struct agent_command *cmd;

	a->seal_step = AGENT_SEALED;
	agent_reply_ok(a, corr, SPL_OK, "");
	while ((cmd = TAILQ_FIRST(&a->held_closes)) != NULL) {
		TAILQ_REMOVE(&a->held_closes, cmd, list);
		agent_send(a, cmd);
	}
}

/* Not a lane is told before there is a command for each: one that was left out would not be sealed,
 * and the stop would go on. Control asks again, or its deadline ends it. */
static void not_sealed(struct agent *a, struct agent_commands *made, uint64_t corr)
{
	struct agent_command *cmd;

	while ((cmd = TAILQ_FIRST(made)) != NULL) {
		TAILQ_REMOVE(made, cmd, list);
		agent_command_free(cmd);
	}
	a->seal_step = AGENT_UNSEALED;
	agent_reply_ok(a, corr, SPL_E_INTERNAL_FAILURE, "out of memory");
}

static void next_step(struct agent *a, uint64_t corr)
{
	enum lane_verb verb = a->seal_step == AGENT_UNSEALED ? LANE_SEAL : LANE_SETTLE;
	struct agent_commands made = TAILQ_HEAD_INITIALIZER(made);
	struct agent_command *cmd;

	if (++a->seal_step == AGENT_SEALED) {
		sealed(a, corr);
		return;
	}
	for (unsigned i = 0; i < a->sh.lanes; i++) {
		cmd = agent_command_new(a, i, verb, step_done);
		if (!cmd) {
			not_sealed(a, &made, corr);
			return;
		}
		cmd->corr = corr;
		TAILQ_INSERT_TAIL(&made, cmd, list);
	}
	while ((cmd = TAILQ_FIRST(&made)) != NULL) {
		TAILQ_REMOVE(&made, cmd, list);
		a->seal_left++;
		agent_send(a, cmd);
	}
}

void agent_seal(struct agent *a, uint64_t corr)
{
	if (a->seal_step == AGENT_UNSEALED)
		next_step(a, corr);
	else
		agent_reply_ok(a, corr, SPL_OK, ""); /* comes again: under way, or done */
}

void agent_self_close(struct agent *a, struct lane_event *e)
{
	struct pack_writer w = agent_packet(a, DP_SELF_CLOSE, DP_F_EVT, 0);
	struct dp_self_close m = {
		.obj_gen = e->object_generation, .reason = e->op, .id = {e->id.b, e->id.len}};

	dp_put_self_close(&w, &m);
	agent_packet_send(a, &w, -1);
	agent_event_back(a, e);
}
