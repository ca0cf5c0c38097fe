/* SPDX-License-Identifier: BSD-3-Clause */
/* The example stages, loaded as a dataplane loads them and run in the room of Spots. */
#include "dataplane/stage/stage.h"
#include "examples/room.h"
#include "tests/unit/spot/teststage.h"

#define f test_rig

static struct stage_set *set;
static const struct spot_stage *room, *counter, *zone, *cart, *greeter;

static int setup(void)
{
	const char *const dirs[] = {EXAMPLES_DIR, GUIDE_DIR};
	char why[STAGE_WHY_MAX];
	uint16_t at;

	set = stage_set_new();
	if (!set || stage_set_load(set, "room", "", dirs, 1, &at, why) ||
	    stage_set_load(set, "counter", "", dirs, 1, &at, why) ||
	    stage_set_load(set, "zone", "", dirs, 1, &at, why) ||
	    stage_set_load(set, "cart", "", dirs, 1, &at, why) ||
	    stage_set_load(set, "greeter", "", dirs, 2, &at, why)) {
		printf("%s\n", why);
		return -1;
	}
	room = stage_set_find(set, SPL_KIND_USER, ROOM_TYPE, strlen(ROOM_TYPE));
	counter = stage_set_find(set, SPL_KIND_USER, "counter", 7);
	zone = stage_set_find(set, SPL_KIND_USER, "zone", 4);
	cart = stage_set_find(set, SPL_KIND_INSTANCE, "cart", 4);
	greeter = stage_set_find(set, SPL_KIND_USER, "greeter", 7);
	return room && counter && zone && cart && greeter ? 0 : -1;
}

static int teardown(void)
{
	stage_set_free(set);
	return 0;
}

static bool create(const char *id, const struct spot_stage *stage, const char *request)
{
	struct spl_key key = fake_key(id);
	uint64_t generation = fake_prepare(&f, id, stage, request, 0);

	fake_run(&f);
	if (fake_answer(&f, SPOT_PREPARE)->verdict != SPOT_ACCEPTED)
		return false;
	spot_publish(f.lane[0].l, &key, generation, ++f.next_op, f.now);
	return true;
}

static void test_counter(void)
{
	uint64_t r;

	test_start(1);
	CU_ASSERT(create("c", counter, NULL));
	fake_send(&f, "c", "add", "");
	r = fake_request(&f, "c", "add", "41");
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "42"));
	r = fake_request(&f, "c", "add", "-50");
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "-8"));
	r = fake_request(&f, "c", "get", "");
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "-8"));
	static const char *const bad[] = {"x", "-", "1x", "1234567890123456789", " 1"};
	for (size_t i = 0; i < T_COUNT(bad); i++) {
		r = fake_request(&f, "c", "add", bad[i]);
		fake_run(&f);
		CU_ASSERT(fake_replied(&f, r, SPL_E_PROTOCOL_ERROR, NULL));
	}
	CU_ASSERT(create("d", counter, "7"));
	r = fake_request(&f, "d", "get", "");
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "7"));
	CU_ASSERT(!create("e", counter, "seven"));
	CU_ASSERT_EQUAL(fake_answer(&f, SPOT_PREPARE)->verdict, SPOT_REJECTED);
	CU_ASSERT_STRING_EQUAL(f.answer_reply, "a counter starts with a decimal number");
	test_stop();
}

/* The guide's first stage does what the guide says. */
static void test_greeter(void)
{
	uint64_t r;

	test_start(1);
	CU_ASSERT(create("g", greeter, NULL));
	fake_send(&f, "g", "greet", "");
	r = fake_request(&f, "g", "greet", "");
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "hello"));
	CU_ASSERT_EQUAL(*(uint64_t *)spot_state_of(test_spot("g")), 2);
	test_stop();
}

static void live(unsigned ms)
{
	while (ms-- > 0) {
		fake_advance(&f, FAKE_MS);
		fake_run(&f);
	}
}

/* What control does when a message asks for an Instance Spot. */
static uint64_t start_cart(void)
{
	char id[64];
	uint64_t generation;

	snprintf(id, sizeof(id), "%.*s", f.activate_id.len, f.activate_id.b);
	CU_ASSERT(f.activate_type.len == 4 && memcmp(f.activate_type.b, "cart", 4) == 0);
	CU_ASSERT(create(id, cart, NULL));
	generation = f.next_generation;
	fake_activated(&f, SPL_OK);
	fake_run(&f);
	return generation;
}

static bool says(uint64_t request, uint8_t kind, const char *text)
{
	fake_run(&f);
	return fake_replied(&f, request, kind, text);
}

/* The first message makes a cart, it counts and lists, and it refuses what is none of its lines. */
static void test_cart(void)
{
	static const char *const bad[] = {"",	       " tea", "0 tea",
					  "10000 tea", "3",    "3 ",
					  "3tea",      "a\nb", "1 012345678901234567890123456789x"};
	uint64_t first;
	char item[8];

	test_start(1);
	first = fake_instance(&f, "c", "cart", true, "add", "2 green tea");
	fake_instance(&f, "c", "cart", false, "add", "cup");
	start_cart();
	CU_ASSERT(says(first, SPL_OK, "2"));
	CU_ASSERT(says(fake_request(&f, "c", "add", "3 green tea"), SPL_OK, "5"));
	CU_ASSERT(says(fake_request(&f, "c", "drop", "green tea"), SPL_OK, "4"));
	CU_ASSERT(says(fake_request(&f, "c", "list", ""), SPL_OK, "4 green tea\n1 cup\n"));
	CU_ASSERT(says(fake_request(&f, "c", "drop", "9 green tea"), SPL_OK, "0"));
	CU_ASSERT(says(fake_request(&f, "c", "list", ""), SPL_OK, "1 cup\n"));
	CU_ASSERT(says(fake_request(&f, "c", "drop", "green tea"), SPL_E_NOT_FOUND, NULL));
	for (size_t i = 0; i < T_COUNT(bad); i++)
		CU_ASSERT(says(fake_request(&f, "c", "add", bad[i]), SPL_E_PROTOCOL_ERROR, NULL));
	CU_ASSERT(says(fake_request(&f, "c", "add", "9999 cup"), SPL_E_CAPACITY_EXCEEDED, NULL));
	for (int i = 1; i < 16; i++) {
		snprintf(item, sizeof(item), "x%d", i);
		CU_ASSERT(says(fake_request(&f, "c", "add", item), SPL_OK, "1"));
	}
	CU_ASSERT(says(fake_request(&f, "c", "add", "one more"), SPL_E_CAPACITY_EXCEEDED, NULL));
	test_stop();
}

/* A checkout ends the cart and idleness does; what comes then starts an empty one. */
static void test_cart_ends(void)
{
	uint64_t r, generation;

	test_begin(1);
	f.conf.idle_ms = 1000;
	fake_start(&f);
	fake_instance(&f, "c", "cart", false, "add", "tea");
	generation = start_cart();
	r = fake_request(&f, "c", "checkout", "");
	CU_ASSERT(says(r, SPL_OK, "1 tea\n"));
	CU_ASSERT_EQUAL(f.close_wanted, 1);
	CU_ASSERT(says(fake_request(&f, "c", "checkout", ""), SPL_E_INVALID_OPERATION, NULL));
	fake_close(&f, "c", generation, f.close_reason, 0);
	fake_run(&f);
	r = fake_instance(&f, "c", "cart", true, "list", "");
	generation = start_cart();
	CU_ASSERT(says(r, SPL_OK, ""));
	live(1500);
	CU_ASSERT_EQUAL(f.close_wanted, 2);
	CU_ASSERT_EQUAL(f.close_reason, SPL_CLOSING_IDLE_EVICTED);
	fake_close(&f, "c", generation, f.close_reason, 0);
	fake_run(&f);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_SPOTS), 0);
	test_stop();
}

struct look {
	unsigned ticks, walkers, side[4]; /* east, west, north, south */
};

static struct look look(const char *id)
{
	struct look l = {0};
	const struct fake_out *out;
	uint64_t r = fake_request(&f, id, "look", "");
	char text[80];

	fake_run(&f);
	out = fake_reply(&f, r);
	CU_ASSERT_FATAL(out && out->error == SPL_OK);
	snprintf(text, sizeof(text), "%.*s",
		 (int)(out->bytes < sizeof(out->payload) ? out->bytes : sizeof(out->payload)),
		 out->payload);
	CU_ASSERT_EQUAL(sscanf(text, "ticks %u walkers %u east %u west %u north %u south %u",
			       &l.ticks, &l.walkers, &l.side[0], &l.side[1], &l.side[2],
			       &l.side[3]),
			6);
	f.outs = 0;
	return l;
}

/* A zone beats 30 times a second, walkers cross its border, and its neighbours know how crowded it
 * is, by multicast alone. */
static void test_zone(void)
{
	uint64_t r;

	test_begin(1);
	f.conf.object_bytes = 8 << 20;
	fake_start(&f);
	CU_ASSERT(create("zone-0-0", zone, NULL));
	CU_ASSERT(create("zone-1-0", zone, NULL));
	CU_ASSERT(create("zone-0--1", zone, NULL)); /* north of the first */
	live(1000);
	CU_ASSERT(look("zone-0-0").ticks == 29 || look("zone-0-0").ticks == 30);
	r = fake_request(&f, "zone-0-0", "enter", "7 900 500 10 0");
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "in"));
	live(100);
	CU_ASSERT_EQUAL(look("zone-0-0").walkers, 1);
	CU_ASSERT_EQUAL(look("zone-1-0").side[1], 1);  /* in its west */
	CU_ASSERT_EQUAL(look("zone-0--1").side[3], 1); /* in its south */
	CU_ASSERT_EQUAL(look("zone-1-0").walkers, 0);
	live(400); /* ten ticks to the border */
	CU_ASSERT_EQUAL(look("zone-0-0").walkers, 0);
	CU_ASSERT_EQUAL(look("zone-1-0").walkers, 1);
	CU_ASSERT_EQUAL(look("zone-0-0").side[0], 1);
	CU_ASSERT_EQUAL(look("zone-1-0").side[1], 0);
	/* At the end of the world it turns back. */
	r = fake_request(&f, "zone-0--1", "enter", "8 500 10 0 -9");
	live(300);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "in") || f.outs == 0);
	CU_ASSERT_EQUAL(look("zone-0--1").walkers, 1);
	test_stop();
}

static void test_zone_refuses(void)
{
	static const char *const bad[] = {
		"", "x", "1 2 3 4", "0 1 1 1 1", "1 1000 1 1 1", "1 1 -1 1 1", "1 1 1 1000 1"};
	uint64_t r;

	test_start(1);
	CU_ASSERT(!create("zone", zone, NULL));
	CU_ASSERT(!create("zone-1-x", zone, NULL));
	CU_ASSERT(!create("zone-1-2-3", zone, NULL));
	CU_ASSERT(create("zone-5-5", zone, NULL));
	for (size_t i = 0; i < T_COUNT(bad); i++) {
		r = fake_request(&f, "zone-5-5", "enter", bad[i]);
		fake_run(&f);
		CU_ASSERT(fake_replied(&f, r, SPL_E_PROTOCOL_ERROR, NULL));
	}
	for (int i = 1; i <= 65; i++) {
		char text[32];

		snprintf(text, sizeof(text), "%d 5 5 0 0", i);
		r = fake_request(&f, "zone-5-5", "enter", text);
		fake_run(&f);
		CU_ASSERT(fake_replied(&f, r, i <= 64 ? SPL_OK : SPL_E_CAPACITY_EXCEEDED, NULL));
	}
	test_stop();
}

/* All that the public headers say, one after another. */
static const char *public_headers(void)
{
	static char text[1 << 18];
	size_t n = 0;
	FILE *in = popen("cat " SOURCE_DIR "/include/spotlane/*.h", "r");

	CU_ASSERT_PTR_NOT_NULL_FATAL(in);
	n = fread(text, 1, sizeof(text) - 1, in);
	CU_ASSERT_FATAL(n > 0 && n < sizeof(text) - 1);
	text[n] = '\0';
	CU_ASSERT_EQUAL(pclose(in), 0);
	return text;
}

/* T-ST-1: what a stage asks of the program that loads it is declared in a public header, or is
 * libc's; no symbol of the rooms, of DPDK or of the store is within its reach. */
static void test_public_headers_alone(void)
{
	static const char *const stages[] = {"counter", "room", "zone"};
	const char *headers = public_headers();
	unsigned asked = 0;

	for (size_t i = 0; i < T_COUNT(stages); i++) {
		char line[256], call[80];
		FILE *in;

		snprintf(line, sizeof(line), "nm -D --undefined-only " EXAMPLES_DIR "/%s.so",
			 stages[i]);
		in = popen(line, "r");
		CU_ASSERT_PTR_NOT_NULL_FATAL(in);
		while (fgets(line, sizeof(line), in)) {
			char name[64] = "";

			CU_ASSERT_EQUAL_FATAL(sscanf(line, " %*s %63[A-Za-z0-9_]", name), 1);
			CU_ASSERT(strncmp(name, "rte_", 4) && strncmp(name, "spot_", 5) &&
				  strncmp(name, "lane_", 5) && strncmp(name, "flow_", 5));
			if (strncmp(name, "spl_", 4) != 0)
				continue;
			asked++;
			snprintf(call, sizeof(call), "%s(", name);
			CU_ASSERT_PTR_NOT_NULL(strstr(headers, call));
		}
		CU_ASSERT_EQUAL(pclose(in), 0);
	}
	CU_ASSERT(asked >= 8);
}

static void put64(uint8_t *p, uint64_t v)
{
	for (int i = 7; i >= 0; i--, v >>= 8)
		p[i] = (uint8_t)v;
}

static uint64_t say(const char *id, bool request, uint64_t sender, uint64_t sequence)
{
	uint8_t b[ROOM_SAY_BYTES + 2];

	put64(b, sender);
	put64(b + 8, sequence);
	memcpy(b + ROOM_SAY_BYTES, "hi", 2);
	return fake_message(&f, id, request, ROOM_SAY, b, sizeof(b));
}

static uint8_t roll_bytes[ROOM_SENDERS_MAX * ROOM_ROW_BYTES];
static uint32_t roll_n;

static int keep_roll(void *host, const struct spot_out *o)
{
	roll_n = o->payload_bytes;
	if (o->payload_bytes)
		memcpy(roll_bytes, o->payload, o->payload_bytes);
	return 0;
}

struct row {
	uint64_t sender, heard, highest, duplicates, out_of_order;
};

static struct row roll(const char *id, unsigned at)
{
	int (*send)(void *, const struct spot_out *) = f.lane[0].l->env.send;
	uint64_t v[5] = {0};

	fake_request(&f, id, ROOM_ROLL, "");
	f.lane[0].l->env.send = keep_roll;
	fake_run(&f);
	f.lane[0].l->env.send = send;
	CU_ASSERT_EQUAL_FATAL(roll_n % ROOM_ROW_BYTES, 0);
	CU_ASSERT_FATAL(at < roll_n / ROOM_ROW_BYTES);
	for (int i = 0; i < 40; i++)
		v[i / 8] = v[i / 8] << 8 | roll_bytes[at * ROOM_ROW_BYTES + (unsigned)i];
	return (struct row){v[0], v[1], v[2], v[3], v[4]};
}

static void row_is(const char *id, unsigned at, struct row want)
{
	struct row r = roll(id, at);

	CU_ASSERT_EQUAL(r.sender, want.sender);
	CU_ASSERT_EQUAL(r.heard, want.heard);
	CU_ASSERT_EQUAL(r.highest, want.highest);
	CU_ASSERT_EQUAL(r.duplicates, want.duplicates);
	CU_ASSERT_EQUAL(r.out_of_order, want.out_of_order);
}

/* The roll tells loss (heard less than highest), duplicates and order apart. */
static void test_roll(void)
{
	uint64_t r;

	test_start(1);
	CU_ASSERT(create("r", room, NULL));
	for (uint64_t i = 1; i <= 5; i++)
		say("r", false, 7, i);
	r = say("r", true, 9, 1);
	fake_run(&f);
	CU_ASSERT_EQUAL(fake_reply(&f, r)->bytes, ROOM_SAY_BYTES);
	row_is("r", 0, (struct row){7, 5, 5, 0, 0});
	row_is("r", 1, (struct row){9, 1, 1, 0, 0});
	say("r", false, 7, 5);
	say("r", false, 7, 8); /* 6 and 7 are missing */
	fake_run(&f);
	row_is("r", 0, (struct row){7, 7, 8, 1, 0});
	say("r", false, 7, 7);
	say("r", false, 7, 7);
	say("r", false, 7, 200);
	say("r", false, 7, 100); /* further back than it remembers */
	fake_run(&f);
	row_is("r", 0, (struct row){7, 11, 200, 2, 2});
	/* A short message, and one sender more than it remembers. */
	r = fake_request(&f, "r", ROOM_SAY, "short");
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_E_PROTOCOL_ERROR, NULL));
	for (uint64_t s = 100; s < 100 + ROOM_SENDERS_MAX - 2; s++) {
		say("r", false, s, 1);
		fake_run(&f);
	}
	r = say("r", true, 999, 1);
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_E_CAPACITY_EXCEEDED, NULL));
	CU_ASSERT(!create("x", room, "plant=everything"));
	test_stop();
}

/* Each plant spoils exactly one message, and the roll shows it for what it is. */
static void test_plants(void)
{
	static const struct {
		const char *request;
		struct row want;
	} rows[] = {
		{"plant=drop", {7, 9, 10, 0, 0}},
		{"plant=dup", {7, 11, 10, 1, 0}},
		{"plant=swap", {7, 10, 10, 0, 1}},
	};

	test_start(1);
	for (size_t i = 0; i < T_COUNT(rows); i++) {
		CU_ASSERT(create(rows[i].request, room, rows[i].request));
		say(rows[i].request, false, 8, 1); /* another sender, not spoiled */
		for (uint64_t s = 1; s <= 10; s++)
			say(rows[i].request, false, 7, s);
		fake_run(&f);
		row_is(rows[i].request, 0, (struct row){8, 1, 1, 0, 0});
		row_is(rows[i].request, 1, rows[i].want);
	}
	test_stop();
}

static const struct t_case cases[] = {
	T(test_zone, "S-STAGE-3", "S-STAGE-7", "S-TIMER-10", "S-MCAST-13"),
	T(test_zone_refuses),
	T(test_public_headers_alone, "S-STAGE-1"),
	T(test_cart, "S-ACT-1"),
	T(test_cart_ends, "S-IDLE-3", "S-CLOSE-6", "S-CLOSE-7"),
	T(test_counter),
	T(test_greeter, "S-STAGE-1"),
	T(test_roll),
	T(test_plants),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("examples", setup, teardown, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
