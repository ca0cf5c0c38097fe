/* SPDX-License-Identifier: BSD-3-Clause */
/* Snapshot scans: see snapshot.h. */
#include "control/store/snapshot.h"

#include <errno.h>
#include <stdlib.h>

void snapshots_init(struct snapshots *s, uint64_t seed)
{
	memset(s, 0, sizeof(*s));
	s->next_id = 1;
	s->rnd = seed * 2 + 1;
}

static void snapshot_end(struct snapshots *s, size_t i)
{
	if (!s->v[i])
		return;
	skiplist_fini(&s->v[i]->old);
	free(s->v[i]);
	s->v[i] = NULL;
	s->live--;
}

void snapshots_fini(struct snapshots *s)
{
	for (size_t i = 0; i < STORE_SCANS_MAX; i++)
		snapshot_end(s, i);
}

static uint64_t draw(struct snapshots *s)
{
	uint64_t z = (s->rnd += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/* Keeps `before` for one snapshot, unless an older state of that key is kept already. Keys that
 * all still valid cursors have passed are not needed. */
static void keep(struct snapshot *sn, const struct store_leases *leases, struct store_bytes key,
		 const struct store_row *before)
{
	size_t len = before ? before->val.n : 0;
	struct skip_node *nd;
	void *val = NULL;

	if (!store_has_prefix(key, sn->prefix) || sn->lost)
		return;
	if (sn->pages >= 2 &&
	    store_bytes_cmp(key, (struct store_bytes){sn->last[1], sn->last_n[1]}) <= 0)
		return;
	if (skiplist_find(&sn->old, key))
		return;
	sn->old_bytes += sizeof(*nd) + key.n + len + 64;
	nd = sn->old_bytes <= STORE_SCAN_BYTES_MAX ? skiplist_node(&sn->old, key) : NULL;
	if (nd && len)
		val = malloc(len);
	if (!nd || (len && !val)) {
		free(nd);
		sn->lost = true;
		return;
	}
	nd->absent = !before || !store_row_alive(leases, before, sn->time);
	if (before) {
		nd->row.cr = before->cr;
		nd->row.mr = before->mr;
		if (len)
			memcpy(val, before->val.p, len);
		nd->row.val = (struct store_bytes){val, (uint32_t)len};
	}
	skiplist_insert(&sn->old, nd);
}

void snapshots_note(struct snapshots *s, const struct store_leases *leases, struct store_bytes key,
		    const struct store_row *before)
{
	for (size_t i = 0; s->live && i < STORE_SCANS_MAX; i++)
		if (s->v[i])
			keep(s->v[i], leases, key, before);
}

static void expire(struct snapshots *s, int64_t now)
{
	for (size_t i = 0; s->live && i < STORE_SCANS_MAX; i++)
		if (s->v[i] && (s->v[i]->lost || now >= s->v[i]->time + STORE_SCAN_LIFE_MS))
			snapshot_end(s, i);
}

static struct snapshot *snapshot_begin(struct snapshots *s, struct store_bytes prefix, int64_t now)
{
	struct snapshot *sn;
	size_t at = 0;

	for (size_t i = 0; i < STORE_SCANS_MAX; i++) {
		if (!s->v[i]) {
			at = i;
			break;
		}
		if (s->v[i]->id < s->v[at]->id)
			at = i;
	}
	snapshot_end(s, at);
	sn = calloc(1, sizeof(*sn));
	if (!sn || skiplist_init(&sn->old, s->next_id)) {
		free(sn);
		return NULL;
	}
	sn->id = s->next_id++;
	sn->nonce = draw(s);
	sn->time = now;
	if (prefix.n)
		memcpy(sn->prefix_mem, prefix.p, prefix.n);
	sn->prefix = (struct store_bytes){sn->prefix_mem, prefix.n};
	s->v[at] = sn;
	s->live++;
	return sn;
}

struct cursor_fields {
	uint64_t id, nonce, page;
};
_Static_assert(sizeof(struct cursor_fields) == STORE_CURSOR_BYTES, "cursor layout");

/* The snapshot of a cursor, with the page it asks for; NULL: Expired. The page before the newest
 * one may be asked for again, because its answer may have been lost. */
static struct snapshot *snapshot_of(struct snapshots *s, struct store_bytes prefix,
				    const struct store_cursor *c, uint64_t *page)
{
	struct cursor_fields f;

	memcpy(&f, c->b, sizeof(f));
	for (size_t i = 0; i < STORE_SCANS_MAX; i++) {
		struct snapshot *sn = s->v[i];

		if (!sn || sn->id != f.id || sn->nonce != f.nonce ||
		    store_bytes_cmp(sn->prefix, prefix) != 0)
			continue;
		if (f.page == 0 || f.page > sn->pages || f.page + 1 < sn->pages)
			return NULL;
		*page = f.page;
		return sn;
	}
	return NULL;
}

/* ---- one page: merge of the rows of the back end with the old rows ---- */

struct merge {
	struct snapshot *sn;
	const struct store_leases *leases;
	const struct snapshot_source *src;
	const struct skip_node *old;
	struct store_row cur;
	int have; /* as source.next */
};

static void advance(struct merge *m)
{
	m->have = m->src->next(m->src->ctx, &m->cur);
	if (m->have == 1 && !store_has_prefix(m->cur.key, m->sn->prefix))
		m->have = 0;
}

/* The next row of the snapshot in *row: 1, 0 at the end, or SNAPSHOT_FAIL. The row stays valid
 * until the following call, so the source is moved on at its beginning, by *pending. */
static int merge_next(struct merge *m, bool *pending, struct store_row *row)
{
	for (;;) {
		int c;

		if (*pending)
			advance(m);
		*pending = false;
		if (m->have < 0 || (m->have == 0 && !m->old))
			return m->have;
		c = m->have == 0 ? 1 : !m->old ? -1 : store_bytes_cmp(m->cur.key, m->old->row.key);
		if (c >= 0) {
			const struct skip_node *nd = m->old;

			m->old = nd->next[0];
			*pending = c == 0;
			if (nd->absent)
				continue;
			*row = nd->row;
			return 1;
		}
		*pending = true;
		if (!store_row_alive(m->leases, &m->cur, m->sn->time))
			continue;
		*row = m->cur;
		return 1;
	}
}

struct page_buf {
	uint8_t *mem;
	size_t used, room;
};

static int page_add(struct store_page *pg, struct page_buf *b, const struct store_row *row)
{
	size_t need = row->key.n + row->val.n;
	struct store_entry *e = &pg->entries[pg->n];

	if (b->used + need > b->room) {
		size_t room = b->room * 2 > b->used + need ? b->room * 2 : b->used + need;
		uint8_t *mem = realloc(b->mem, room);

		if (!mem)
			return -ENOMEM;
		b->mem = mem;
		b->room = room;
	}
	memcpy(b->mem + b->used, row->key.p, row->key.n);
	if (row->val.n)
		memcpy(b->mem + b->used + row->key.n, row->val.p, row->val.n);
	*e = (struct store_entry){
		.key = {NULL, row->key.n}, .val = {NULL, row->val.n}, .cr = row->cr, .mr = row->mr};
	b->used += need;
	pg->n++;
	return 0;
}

/* The memory does not move any more: points the entries into it. */
static void page_finish(struct store_page *pg, struct page_buf *b)
{
	uint8_t *at = b->mem;

	for (size_t i = 0; i < pg->n; i++) {
		pg->entries[i].key.p = at;
		at += pg->entries[i].key.n;
		pg->entries[i].val.p = at;
		at += pg->entries[i].val.n;
	}
	pg->mem = b->mem;
}

static int page_fill(struct merge *m, size_t limit, struct store_page *out)
{
	struct page_buf b = {NULL, 0, 4096};
	struct store_row row;
	bool pending = true;
	int got, err = 0;

	out->entries = calloc(limit, sizeof(*out->entries));
	b.mem = malloc(b.room);
	if (!out->entries || !b.mem)
		err = -ENOMEM;
	while (!err && (got = merge_next(m, &pending, &row)) != 0) {
		if (got < 0) {
			err = -(got + 1000);
			break;
		}
		if (out->n == limit || b.used + row.key.n + row.val.n > STORE_PAGE_BYTES_MAX) {
			out->more = true;
			break;
		}
		err = page_add(out, &b, &row);
	}
	if (err) {
		free(b.mem);
		free(out->entries);
		memset(out, 0, sizeof(*out));
		return err;
	}
	page_finish(out, &b);
	return 0;
}

/* Page number `page` was answered: remember where it ended and make the cursor of the next. */
static void page_done(struct snapshot *sn, uint64_t page, struct store_page *out)
{
	const struct store_bytes *last = &out->entries[out->n - 1].key;
	struct cursor_fields f = {sn->id, sn->nonce, page};

	if (page > sn->pages) {
		memcpy(sn->last[1], sn->last[0], sn->last_n[0]);
		sn->last_n[1] = sn->last_n[0];
		memcpy(sn->last[0], last->p, last->n);
		sn->last_n[0] = last->n;
		sn->pages = page;
	}
	memcpy(out->next.b, &f, sizeof(f));
}

int snapshots_page(struct snapshots *s, const struct store_leases *leases, int64_t now,
		   struct store_bytes prefix, const struct store_cursor *cursor, size_t limit,
		   const struct snapshot_source *src, struct store_page *out)
{
	struct store_bytes from = prefix;
	struct snapshot *sn;
	struct merge m;
	uint64_t page = 0;
	int err;

	expire(s, now);
	sn = cursor ? snapshot_of(s, prefix, cursor, &page) : snapshot_begin(s, prefix, now);
	if (!sn)
		return cursor ? STORE_EXPIRED : -ENOMEM;
	if (cursor) {
		unsigned back = page == sn->pages ? 0 : 1;

		from = (struct store_bytes){sn->last[back], sn->last_n[back]};
	}
	m = (struct merge){.sn = sn, .leases = leases, .src = src};
	m.old = skiplist_seek(&sn->old, from, cursor != NULL);
	src->seek(src->ctx, from, cursor != NULL);
	err = page_fill(&m, limit, out);
	if (err == 0 && out->more) {
		page_done(sn, page + 1, out);
		return 0;
	}
	if (!cursor || err == 0) /* served to its end */
		for (size_t i = 0; i < STORE_SCANS_MAX; i++)
			if (s->v[i] == sn)
				snapshot_end(s, i);
	return err;
}
