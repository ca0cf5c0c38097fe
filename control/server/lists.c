/* SPDX-License-Identifier: BSD-3-Clause */
/* The page of lists: see lists.h. Pure but for the stream. */
#include "control/server/lists.h"

#include <spotlane/counters.h>
#include <spotlane/metrics.h>
#include <spotlane/errors.h>
#include <spotlane/limits.h>
#include <spotlane/packets.h>
#include <spotlane/reasons.h>

#define HEAD_NAME			"\n| name | meaning |\n|---|---|\n"
#define HEAD_UNIT			"\n| name | unit | meaning |\n|---|---|---|\n"
#define HEAD_NUMBER			"\n| number | name | meaning |\n|---|---|---|\n"
#define HEAD_LIMIT			"\n| name | value | what it bounds |\n|---|---|---|\n"

#define ROW_NAME(sym, name, help)	"| `" name "` | " help " |\n"
#define ROW_UNIT(sym, name, unit, help) "| `" name "` | " unit " | " help " |\n"
#define ROW_METRIC(sym, name, kind, unit, labels) \
	"| `" name "` | " kind " | `" unit "` | " labels " |\n"
#define ROW_NUMBER(num, sym, name, help)  "| " #num " | `" name "` | " help " |\n"
#define ROW_CONTENT(num, sym, name)	  "| " #num " | `" #sym "` | " name " |\n"
#define ROW_LIMIT(sym, value, unit, help) "| `SPL_" #sym "` | " #value " " unit " | " help " |\n"

static const struct {
	const char *intro, *head, *rows;
} sections[] = {
	{"\n## Counters of a lane\n\n"
	 "`spotctl stats show lanes`. Gauges go up and down, all others only up.\n",
	 HEAD_UNIT, SPL_LANE_COUNTERS(ROW_UNIT)},
	{"\nBeside them stand `buffers_total` and `buffers_free`, which all lanes share, and one "
	 "`used_NAME` for each\nuse of a frame:\n",
	 HEAD_NAME, SPL_FRAME_USES(ROW_NAME)},
	{"\n## Counters of a port\n\n`spotctl stats show ports`.\n", HEAD_UNIT,
	 SPL_PORT_COUNTERS(ROW_UNIT)},
	{"\n## Totals of a stable type\n\nOf the Spots of a stage module, by lane in the "
	 "statistics segment and summed up by `spotctl stage show`,\nwhich leaves what is active "
	 "out of what is queued.\n",
	 HEAD_UNIT, SPL_STAGE_COUNTERS(ROW_UNIT)},
	{"\n## Metrics\n\n`spotctl metrics show`. A duration has buckets; no label names a single "
	 "thing.\n",
	 "\n| name | kind | unit | labels |\n|---|---|---|---|\n", SPL_METRICS(ROW_METRIC)},
	{"\n## Why a frame was dropped\n\n`spotctl stats show drops`, rows of `frame`.\n",
	 HEAD_NAME, SPL_FRAME_DROPS(ROW_NAME)},
	{"\n## Why a message failed\n\n`spotctl stats show drops`, rows of `message`.\n", HEAD_NAME,
	 SPL_MESSAGE_FAILS(ROW_NAME)},
	{"\n## Error kinds\n", HEAD_NUMBER, SPL_ERROR_KINDS(ROW_NUMBER)},
	{"\n## Kinds on the wire\n\nPackets:\n", HEAD_NUMBER, SPL_PACKET_KINDS(ROW_NUMBER)},
	{"\nRecords of a `flow` packet:\n", HEAD_NUMBER, SPL_RECORD_KINDS(ROW_NUMBER)},
	{"\nMessages:\n", HEAD_NUMBER, SPL_MESSAGE_KINDS(ROW_NUMBER)},
	{"\nContent types of a payload:\n", HEAD_NUMBER, SPL_CONTENT_TYPES(ROW_CONTENT)},
	{"\n## Fixed limits\n\n"
	 "What an operator can change is in [configuration.md](configuration.md).\n",
	 HEAD_LIMIT, SPL_LIMITS(ROW_LIMIT)},
};

void lists_write(FILE *f)
{
	fputs("# Counters, reasons, kinds and limits\n\n"
	      "Generated from the lists of `include/spotlane/` by `ninja -C build generated`; do "
	      "not edit. The laws\nthat bind counters and reasons are in "
	      "[architecture.md](architecture.md#conservation).\n",
	      f);
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++)
		fprintf(f, "%s%s%s", sections[i].intro, sections[i].head, sections[i].rows);
}
