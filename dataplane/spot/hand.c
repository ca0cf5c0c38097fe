/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: what leaves the room: buffers and credit that go back, replies, errors.
 *
 * Called by the other files of the room, on the lane. A reply that cannot be sent is counted, never
 * retried: the requester's deadline tells it (S-COMPL-7).
 */
#include "dataplane/spot/totals.h"
#include "dataplane/spot/trace.h"

#include <errno.h>

void spot_done_flush(struct spot_lane *l)
{
	unsigned n = l->ended_count;

	if (l->done_count)
		l->env.release(l->env.host, l->done, l->done_count);
	l->done_count = 0;
	if (n == 0)
		return;
	l->env.ended(l->env.host, l->ended, n);
	memcpy(l->rec_stack + l->rec_free, l->ended, n * sizeof(l->ended[0]));
	l->rec_free += n;
	l->ended_count = 0;
}

void *spot_mem_take(struct spot_lane *l, size_t bytes)
{
	void *p = lanemem_alloc(&l->mem, bytes);

	if (p)
		l->mem_own++;
	return p;
}

void spot_mem_give(struct spot_lane *l, void *p)
{
	if (!p)
		return;
	lanemem_free(&l->mem, p);
	l->mem_own--;
}

void spot_rec_lets_go(struct spot_lane *l, struct spot_rec *r)
{
	if (r->origin == SPOT_FROM_CAST)
		spot_cast_put(l, r->cast);
	else
		spot_mem_give(l, r->mem);
}

bool spot_rec_move(struct spot_lane *l, struct spot_rec *r)
{
	uint8_t *mem = spot_mem_take(l, (size_t)r->msg.payload_bytes + r->msg.metadata_bytes + 1);

	if (!mem)
		return false;
	if (r->msg.payload_bytes)
		memcpy(mem, r->msg.payload, r->msg.payload_bytes);
	if (r->msg.metadata_bytes)
		memcpy(mem + r->msg.payload_bytes, r->msg.metadata, r->msg.metadata_bytes);
	spot_done_add(l, r->buf, r->origin, r->flow, 0);
	r->buf = NULL;
	r->mem = mem;
	r->msg.payload = mem;
	r->msg.metadata = r->msg.metadata_bytes ? mem + r->msg.payload_bytes : NULL;
	return true;
}

int spot_answer(struct spot_lane *l, const struct spot_rec *r, uint8_t kind, uint16_t content,
		const void *payload, uint32_t bytes)
{
	struct spot_out out = {
		.to = r->origin,
		.kind = SPL_MSG_REPLY,
		.error = kind,
		.content = content,
		.payload = payload,
		.payload_bytes = bytes,
		.flow = r->flow,
		.buf = r->buf,
		.correlation = r->msg.correlation,
	};
	int rc = 0;

	if (r->origin == SPOT_FROM_SELF)
		rc = spot_call_reply(l, r->msg.correlation, kind, content, payload, bytes);
	else
		rc = l->env.send(l->env.host, &out);
	if (rc == 0) {
		spot_count(l, SPL_C_REPLIES_SENT, 1);
		if (spot_traces_flows(l))
			spot_trace_replied(l, r, kind);
	}
	return rc;
}

void spot_fail(struct spot_lane *l, struct spot *s, struct spot_rec *r, enum spl_message_fail why,
	       uint8_t kind)
{
	spot_add(&l->fails[why], 1);
	if (r->kind == SPL_MSG_SPOT_SEND)
		spot_note_drop(l, s, why);
	if (spot_traces_errors(l))
		spot_trace_failed(l, s, r, why);
	if (spot_is_answered(r) && !(r->flags & REC_F_REPLIED) &&
	    spot_answer(l, r, kind, SPL_CONTENT_RAW, NULL, 0) != 0) {
		spot_count(l, SPL_C_REPLIES_LOST, 1);
		if (spot_traces_errors(l))
			spot_trace_reply_lost(l, r);
	}
	spot_rec_end(l, r);
}
