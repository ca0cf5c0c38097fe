/* SPDX-License-Identifier: BSD-3-Clause */
/* Transactions of one work alone, without the capacity row: T18 (Closing), and the delete of a row
 * whose recorded owner lease is gone (T8, T19: ORPHAN). After a conflict or a lost answer the row
 * is read again and tells what happened. Called on the driver's thread. */
#include "control/authority/priv.h"

#include <errno.h>
#include <string.h>

static struct auth_work *work_of(struct auth_step *s)
{
	return (struct auth_work *)((char *)s - offsetof(struct auth_work, step));
}

static int build_write(struct auth *a, struct auth_work *w)
{
	struct store_bytes key = auth_obj_key(a, w), lease, val = {NULL, 0};
	bool marks = w->tx == AUTH_T18;
	char text[ROW_KEY_MAX];
	struct store_cond *c;
	struct store_mut *m;
	struct row_obj row;

	lease = auth_batch_copy(
		a, (struct store_bytes){text, row_key_lease(text, auth_name(&w->owner_id))});
	if (marks) {
		auth_row_of_work(a, w, &row);
		row.state = AUTH_ROW_CLOSING;
		row.op = ROW_CLOSE;
		val = auth_obj_value(a, &row);
	}
	if (!key.p || !lease.p || (marks && !val.n) || !auth_batch_txn(a, 2, 1, &c, &m))
		return -ENOMEM;
	c[0] = (struct store_cond){key, STORE_IF_MR, w->mr};
	c[1] = (struct store_cond){lease, marks ? STORE_IF_CR : STORE_IF_CR_NOT, w->lease_gen};
	m[0] = (struct store_mut){.key = key, .val = val, .del = !marks};
	return 0;
}

static int build(struct auth *a, struct auth_step *s)
{
	struct auth_work *w = work_of(s);
	char key[ROW_KEY_MAX];

	if (w->reads_back)
		return auth_batch_read(a, key, row_key_obj(key, auth_name(&w->id)));
	return build_write(a, w);
}

static void finish(struct auth *a, struct auth_work *w, enum auth_tx_rc rc, const char *text)
{
	w->tx_unknown = false;
	auth_work_tx_done(a, w, rc, text);
}

static void written(struct auth *a, struct auth_work *w, const struct store_req *r)
{
	switch (r->rc) {
	case STORE_OK:
		w->mr = r->u.txn.rev;
		finish(a, w, AUTH_TX_OK, "");
		return;
	case STORE_UNKNOWN:
	case STORE_CONFLICT:
		w->tx_unknown |= r->rc == STORE_UNKNOWN;
		if (r->rc == STORE_UNKNOWN)
			a->count.unknowns++;
		else
			a->count.conflicts++;
		w->reads_back = true;
		w->step.writes = false;
		auth_step_queue(a, &w->step);
		return;
	case STORE_EXHAUSTED:
		finish(a, w, AUTH_TX_EXHAUSTED, a->batch.b.text);
		return;
	default:
		finish(a, w, AUTH_TX_FAILED, a->batch.b.text);
		return;
	}
}

/* The row as it is now says what became of the write. */
static void read_back(struct auth *a, struct auth_work *w, const struct store_req *r)
{
	const struct store_item *it = &r->u.read.item;
	bool same = r->rc == STORE_OK && (uint64_t)it->cr == w->obj_gen;
	struct row_obj row;

	if (r->rc != STORE_OK && r->rc != STORE_MISSING) {
		if (w->tx_unknown) /* it may have happened: nobody is told before that is known */
			auth_work_retry(a, w);
		else
			finish(a, w, AUTH_TX_FAILED, a->batch.b.text);
		return;
	}
	if (w->tx == AUTH_ORPHAN && !same) {
		finish(a, w, w->tx_unknown ? AUTH_TX_OK : AUTH_TX_CONFLICT, "the row is gone");
		return;
	}
	if (w->tx == AUTH_T18 && same && row_obj_get(&row, it->val, it->len) == 0 &&
	    row.state == AUTH_ROW_CLOSING && row.owner.lease_gen == w->lease_gen) {
		w->mr = it->mr;
		finish(a, w, AUTH_TX_OK, "");
		return;
	}
	if (w->tx == AUTH_ORPHAN && !w->reclaim && it->mr != w->mr &&
	    row_obj_get(&row, it->val, it->len) == 0 && auth_work_owns_row(w, &row)) {
		w->mr = it->mr; /* another version of the very row that has to go */
		auth_tx(a, w, w->tx);
		return;
	}
	if (!same || it->mr != w->mr)
		finish(a, w, AUTH_TX_CONFLICT, "the row has changed");
	else if (w->tx_unknown)
		auth_tx(a, w, w->tx); /* it did not happen */
	else if (w->tx == AUTH_T18)
		finish(a, w, AUTH_TX_STALE, "the owner lease is gone");
	else
		finish(a, w, AUTH_TX_CONFLICT, "the owner's lease stands");
}

static void done(struct auth *a, struct auth_step *s, struct store_req *r, size_t n)
{
	struct auth_work *w = work_of(s);

	if (w->reads_back)
		read_back(a, w, r);
	else
		written(a, w, r);
}

void auth_single_init(struct auth_work *w)
{
	auth_step_init(&w->step, build, done);
}

void auth_single_tx(struct auth *a, struct auth_work *w)
{
	if (w->tx == AUTH_T18 && !auth_host_writable(a)) {
		auth_work_tx_done(a, w, AUTH_TX_STALE, "the owner lease has run out");
		return;
	}
	w->reads_back = false;
	w->step.writes = true;
	auth_step_queue(a, &w->step);
}
