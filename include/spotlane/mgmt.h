/* SPDX-License-Identifier: BSD-3-Clause */
/* The management protocol: JSON-RPC 2.0, one object a line, on the socket that spotctl and any
 * script use. docs/management-protocol.md tells it with transcripts; this table is its source:
 * methods, parameters and results, from which the server checks requests, spotctl prints tables
 * and the reference section of the document is generated.
 *
 * The protocol number grows when a method, parameter or result is removed or changes its meaning;
 * additions do not change it.
 */
#ifndef SPOTLANE_MGMT_H
#define SPOTLANE_MGMT_H

#ifdef __cplusplus
extern "C" {
#endif

#define SPL_MGMT_PROTOCOL	1
#define SPL_MGMT_NAME		"spotlane-control"
#define SPL_MGMT_SOCKET_DEFAULT "/run/spotlane/control.sock"
#define SPL_MGMT_DEPTH_MAX	32
#define SPL_MGMT_ID_MAX		64	   /* bytes of a request id that is a string */
#define SPL_MGMT_PAYLOAD_MAX	1048576	   /* bytes of a request or payload, decoded */
#define SPL_MGMT_TIMEOUT_MAX	2147483647 /* ms */

/* JSON-RPC error codes. An error that the node decided is SPL_MGMT_E_KIND - kind, and every error
 * names its kind in data.kind (errors.h). */
#define SPL_MGMT_E_PARSE	-32700
#define SPL_MGMT_E_REQUEST	-32600
#define SPL_MGMT_E_METHOD	-32601
#define SPL_MGMT_E_PARAMS	-32602
#define SPL_MGMT_E_KIND		-32000

/* Exit status of spotctl. */
enum spl_exit {
	SPL_EXIT_OK = 0,
	SPL_EXIT_REFUSED = 1,	  /* the node refused or the operation failed */
	SPL_EXIT_USAGE = 2,	  /* wrong command line */
	SPL_EXIT_UNREACHABLE = 3, /* no daemon, or no access to its socket */
	SPL_EXIT_TIMEOUT = 4,	  /* no answer in time */
};

/* X(id, name, access, help): access READ may be called by the read-only group. */
#define SPL_MGMT_METHODS(X) \
	X(NODE_SHOW, "node.show", READ, "state of the node") \
	X(NODE_SHUTDOWN, "node.shutdown", WRITE, \
	  "stop: refuse new work, finish accepted turns, release every row; answers at once, and " \
	  "the connection ends when the daemon does") \
	X(SPOT_CREATE, "spot.create", WRITE, "create a User Spot with a new id") \
	X(SPOT_GET_OR_CREATE, "spot.get_or_create", WRITE, "find or create a User Spot by id") \
	X(SPOT_FIND, "spot.find", READ, "the Ready Spot of an id; never creates") \
	X(SPOT_LIST, "spot.list", READ, "one page of the Spots of the mesh") \
	X(SPOT_CLOSE, "spot.close", WRITE, "close one exact incarnation") \
	X(SPOT_SEND, "spot.send", WRITE, "send one message to a Spot") \
	X(SPOT_REQUEST, "spot.request", WRITE, "send a request to a Spot and wait for its reply") \
	X(SPOT_RECLAIM, "spot.reclaim", WRITE, \
	  "free the rows of an id, or of a whole node, whose owner is dead") \
	X(STATS_SHOW, "stats.show", READ, "counters") \
	X(STAGE_SHOW, "stage.show", READ, "running totals of each stable type of this node") \
	X(STATUS_SHOW, "status.show", READ, \
	  "status of the host: now, or when it is another one than `after`") \
	X(METRICS_SHOW, "metrics.show", READ, "one sample of every metric") \
	X(TRACE_SHOW, "trace.show", READ, \
	  "records of the flow trace: the newest, or those behind `after`") \
	X(TRACE_SET_LEVEL, "trace.set_level", WRITE, "change how much the flow trace records") \
	X(TRACE_SET_SAMPLE, "trace.set_sample", WRITE, \
	  "change the share of flows that is recorded; failures always are") \
	X(CONFIG_SHOW, "config.show", READ, "effective values and where each came from") \
	X(LOG_SET_LEVEL, "log.set_level", WRITE, "change the log level")

/* X(method, name, type, need, min, max, choices, help)
 * type: TEXT (min..max bytes of UTF-8), WORD (min..max printable ASCII characters), BASE64
 * (min..max decoded bytes), INT (min..max), CHOICE (one of `choices`), REF (SpotRef, S-REF-2).
 * need: REQUIRED, OPTIONAL, ONE_OF (exactly one of the method's ONE_OF parameters), AT_MOST_ONE. */
#define SPL_MGMT_PARAMS(X) \
	X(NODE_SHUTDOWN, "deadline_ms", INT, OPTIONAL, 1, SPL_MGMT_TIMEOUT_MAX, NULL, \
	  "time for accepted turns; node.drain_ms when left out") \
	X(SPOT_CREATE, "type", TEXT, REQUIRED, 1, 255, NULL, "stable type") \
	X(SPOT_CREATE, "mesh", TEXT, OPTIONAL, 1, 255, NULL, "mesh name") \
	X(SPOT_CREATE, "request", TEXT, AT_MOST_ONE, 0, SPL_MGMT_PAYLOAD_MAX, NULL, \
	  "argument of on_create, as text") \
	X(SPOT_CREATE, "request_base64", BASE64, AT_MOST_ONE, 0, SPL_MGMT_PAYLOAD_MAX, NULL, \
	  "the same as bytes") \
	X(SPOT_CREATE, "timeout_ms", INT, OPTIONAL, 1, SPL_MGMT_TIMEOUT_MAX, NULL, \
	  "timeouts.create_ms when left out") \
	X(SPOT_GET_OR_CREATE, "id", TEXT, REQUIRED, 1, 255, NULL, "Spot id") \
	X(SPOT_GET_OR_CREATE, "type", TEXT, REQUIRED, 1, 255, NULL, "stable type") \
	X(SPOT_GET_OR_CREATE, "mesh", TEXT, OPTIONAL, 1, 255, NULL, "mesh name") \
	X(SPOT_GET_OR_CREATE, "request", TEXT, AT_MOST_ONE, 0, SPL_MGMT_PAYLOAD_MAX, NULL, \
	  "argument of on_create, as text") \
	X(SPOT_GET_OR_CREATE, "request_base64", BASE64, AT_MOST_ONE, 0, SPL_MGMT_PAYLOAD_MAX, \
	  NULL, "the same as bytes") \
	X(SPOT_GET_OR_CREATE, "timeout_ms", INT, OPTIONAL, 1, SPL_MGMT_TIMEOUT_MAX, NULL, \
	  "timeouts.create_ms when left out") \
	X(SPOT_FIND, "id", TEXT, REQUIRED, 1, 255, NULL, "Spot id") \
	X(SPOT_LIST, "kind", CHOICE, OPTIONAL, 0, 0, "entry|user|instance", "only this kind") \
	X(SPOT_LIST, "type", TEXT, OPTIONAL, 1, 255, NULL, "only this stable type") \
	X(SPOT_LIST, "limit", INT, OPTIONAL, 1, 1000, NULL, "rows of a page; 100 when left out") \
	X(SPOT_LIST, "token", WORD, OPTIONAL, 1, 1024, NULL, "`next` of the page before") \
	X(SPOT_CLOSE, "ref", REF, REQUIRED, 0, 0, NULL, "the incarnation") \
	X(SPOT_SEND, "id", TEXT, REQUIRED, 1, 255, NULL, "Spot id") \
	X(SPOT_SEND, "packet", TEXT, REQUIRED, 1, 255, NULL, "packet name") \
	X(SPOT_SEND, "payload", TEXT, AT_MOST_ONE, 0, SPL_MGMT_PAYLOAD_MAX, NULL, \
	  "payload as text; empty when left out") \
	X(SPOT_SEND, "payload_base64", BASE64, AT_MOST_ONE, 0, SPL_MGMT_PAYLOAD_MAX, NULL, \
	  "the same as bytes") \
	X(SPOT_SEND, "timeout_ms", INT, OPTIONAL, 1, SPL_MGMT_TIMEOUT_MAX, NULL, \
	  "timeouts.send_ms when left out") \
	X(SPOT_SEND, "instance", TEXT, OPTIONAL, 1, 255, NULL, \
	  "stable type of the Instance Spot that is started when there is no Spot of that id") \
	X(SPOT_REQUEST, "id", TEXT, REQUIRED, 1, 255, NULL, "Spot id") \
	X(SPOT_REQUEST, "packet", TEXT, REQUIRED, 1, 255, NULL, "packet name") \
	X(SPOT_REQUEST, "payload", TEXT, AT_MOST_ONE, 0, SPL_MGMT_PAYLOAD_MAX, NULL, \
	  "payload as text; empty when left out") \
	X(SPOT_REQUEST, "payload_base64", BASE64, AT_MOST_ONE, 0, SPL_MGMT_PAYLOAD_MAX, NULL, \
	  "the same as bytes") \
	X(SPOT_REQUEST, "timeout_ms", INT, OPTIONAL, 1, SPL_MGMT_TIMEOUT_MAX, NULL, \
	  "timeouts.request_ms when left out") \
	X(SPOT_REQUEST, "instance", TEXT, OPTIONAL, 1, 255, NULL, \
	  "stable type of the Instance Spot that is started when there is no Spot of that id") \
	X(SPOT_RECLAIM, "id", TEXT, ONE_OF, 1, 255, NULL, "one Spot id") \
	X(SPOT_RECLAIM, "node", TEXT, ONE_OF, 1, 255, NULL, "RID of a dead node: all its Spots") \
	X(STATS_SHOW, "view", CHOICE, OPTIONAL, 0, 0, "drops|lanes|ports|links", \
	  "which counters; drops when left out") \
	X(STATUS_SHOW, "after", INT, OPTIONAL, 0, 4294967295, NULL, "`sequence` that is known") \
	X(STATUS_SHOW, "wait_ms", INT, OPTIONAL, 0, 60000, NULL, \
	  "how long to wait for a change; 30000 when left out") \
	X(TRACE_SHOW, "after", WORD, OPTIONAL, 1, 4096, NULL, "`next` of the call before") \
	X(TRACE_SHOW, "limit", INT, OPTIONAL, 1, 1000, NULL, "records; 200 when left out") \
	X(TRACE_SET_LEVEL, "level", CHOICE, REQUIRED, 0, 0, "off|errors|normal|detailed", \
	  "new level") \
	X(TRACE_SET_SAMPLE, "rate", WORD, REQUIRED, 1, 16, NULL, "0.0 to 1.0") \
	X(LOG_SET_LEVEL, "level", CHOICE, REQUIRED, 0, 0, "error|warn|info|debug", "new level")

/* X(method, field, type, help): results in the order in which they are printed. A field may be
 * left out when it has no value. "rows[].x" is a column of the array `rows`.
 * type: TEXT, INT, REAL, BOOL, REF, BASE64, ROWS, DECIMAL: a generation is a text of decimal
 * digits, because it may exceed what a JSON number keeps exactly. */
#define SPL_MGMT_RESULTS(X) \
	X(NODE_SHOW, "node", TEXT, "node RID") \
	X(NODE_SHOW, "lifecycle", TEXT, "lifecycle generation") \
	X(NODE_SHOW, "mesh", TEXT, "mesh name") \
	X(NODE_SHOW, "object_role", TEXT, "none, client or server") \
	X(NODE_SHOW, "state", TEXT, "Preparing, Serving, Draining, Stopped or Error") \
	X(NODE_SHOW, "ready", BOOL, "true in Serving only") \
	X(NODE_SHOW, "version", TEXT, "version of the control process") \
	X(NODE_SHOW, "pid", INT, "control process") \
	X(NODE_SHOW, "start_time", TEXT, "of the control process, RFC 3339") \
	X(NODE_SHOW, "uptime_s", INT, "of the control process") \
	X(NODE_SHOW, "dataplane", TEXT, "waiting, up or down") \
	X(NODE_SHOW, "dataplane_pid", INT, "dataplane process") \
	X(NODE_SHOW, "lanes", INT, "worker lcores") \
	X(NODE_SHOW, "lease", TEXT, "none, held or lost") \
	X(NODE_SHOW, "lease_remaining_ms", INT, "until the local admission deadline") \
	X(NODE_SHOW, "store", TEXT, "back end and path") \
	X(NODE_SHOW, "entry_spot", TEXT, "id of the Entry Spot") \
	X(NODE_SHOW, "spots", INT, "Spots that this node owns") \
	X(NODE_SHOW, "log_level", TEXT, "error, warn, info or debug") \
	X(NODE_SHUTDOWN, "state", TEXT, "Draining") \
	X(NODE_SHUTDOWN, "deadline_ms", INT, "time that accepted turns have") \
	X(SPOT_CREATE, "state", TEXT, "Created or Rejected") \
	X(SPOT_CREATE, "ref", REF, "the incarnation; of a Rejected attempt it names no Spot") \
	X(SPOT_CREATE, "reply", TEXT, "answer of on_create, when it is UTF-8 without NUL") \
	X(SPOT_CREATE, "reply_base64", BASE64, "the answer otherwise") \
	X(SPOT_GET_OR_CREATE, "state", TEXT, "Existing, Created or Rejected") \
	X(SPOT_GET_OR_CREATE, "ref", REF, "the incarnation") \
	X(SPOT_GET_OR_CREATE, "reply", TEXT, "answer of on_create, when it is UTF-8 without NUL") \
	X(SPOT_GET_OR_CREATE, "reply_base64", BASE64, "the answer otherwise") \
	X(SPOT_FIND, "ref", REF, "null when there is none") \
	X(SPOT_FIND, "kind", TEXT, "entry, user or instance") \
	X(SPOT_FIND, "type", TEXT, "stable type") \
	X(SPOT_LIST, "spots", ROWS, "the page, in the order of ids") \
	X(SPOT_LIST, "spots[].id", TEXT, "Spot id") \
	X(SPOT_LIST, "spots[].kind", TEXT, "entry, user or instance") \
	X(SPOT_LIST, "spots[].type", TEXT, "stable type; empty for an Entry Spot") \
	X(SPOT_LIST, "spots[].state", TEXT, \
	  "Creating, Ready, Closing, Relocating or Unavailable (owner dead)") \
	X(SPOT_LIST, "spots[].generation", DECIMAL, "object generation") \
	X(SPOT_LIST, "spots[].mesh", TEXT, "mesh name") \
	X(SPOT_LIST, "spots[].node", TEXT, "RID of the owner") \
	X(SPOT_LIST, "next", TEXT, "token of the next page; left out on the last") \
	X(SPOT_CLOSE, "closed", BOOL, "false: no such incarnation, or members remain") \
	X(SPOT_SEND, "accepted", BOOL, "always true; anything else is an error") \
	X(SPOT_REQUEST, "reply", TEXT, "the reply, when it is UTF-8 without NUL") \
	X(SPOT_REQUEST, "reply_base64", BASE64, "the reply otherwise") \
	X(SPOT_RECLAIM, "reclaimed", INT, "rows freed") \
	X(SPOT_RECLAIM, "kept", INT, "rows that changed meanwhile and were left alone") \
	X(STATS_SHOW, "view", TEXT, "which counters") \
	X(STATS_SHOW, "columns", ROWS, "columns of `rows` in the order in which they are printed") \
	X(STATS_SHOW, "columns[].name", TEXT, "key in each row") \
	X(STATS_SHOW, "columns[].type", TEXT, "text or int") \
	X(STATS_SHOW, "rows", ROWS, "one object a row") \
	X(STAGE_SHOW, "stages", ROWS, "every stage module that is loaded") \
	X(STAGE_SHOW, "stages[].mesh", TEXT, "mesh name") \
	X(STAGE_SHOW, "stages[].type", TEXT, "stable type") \
	X(STAGE_SHOW, "stages[].kind", TEXT, "entry, user or instance") \
	X(STAGE_SHOW, "stages[].shutting_down", BOOL, "the node takes no new work for it") \
	X(STAGE_SHOW, "stages[].creating", INT, "Spots being created") \
	X(STAGE_SHOW, "stages[].ready", INT, "Ready Spots") \
	X(STAGE_SHOW, "stages[].closing", INT, "Spots that close") \
	X(STAGE_SHOW, "stages[].queued", INT, "messages and ticks that wait for a turn") \
	X(STAGE_SHOW, "stages[].queued_bytes", INT, "payload of them") \
	X(STAGE_SHOW, "stages[].active", INT, "messages and ticks whose turn has begun and waits") \
	X(STAGE_SHOW, "stages[].active_bytes", INT, "payload of them") \
	X(STAGE_SHOW, "stages[].ticks", INT, "timer callbacks begun") \
	X(STAGE_SHOW, "stages[].skipped", INT, "due ticks that came too late to be delivered") \
	X(STAGE_SHOW, "stages[].delay_us", INT, "sum of how late timer callbacks began") \
	X(STAGE_SHOW, "stages[].delay_max_us", INT, "the latest of them") \
	X(STAGE_SHOW, "stages[].created", INT, "creations that came to a Spot") \
	X(STAGE_SHOW, "stages[].create_rejected", INT, "creations that on_create declined") \
	X(STAGE_SHOW, "stages[].create_failed", INT, "creations that failed or were too late") \
	X(STAGE_SHOW, "stages[].closed", INT, "closes in which on_closing ended well") \
	X(STAGE_SHOW, "stages[].close_failed", INT, "closes in which on_closing failed") \
	X(STAGE_SHOW, "stages[].close_forced", INT, "closes by force: the deadline, or the lease") \
	X(STATUS_SHOW, "sequence", INT, "number of this status, only up in the life of control") \
	X(STATUS_SHOW, "source", TEXT, "runtime") \
	X(STATUS_SHOW, "state", TEXT, "Preparing, Serving, Draining, Stopped or Error") \
	X(STATUS_SHOW, "ready", BOOL, "only when Serving") \
	X(STATUS_SHOW, "accepting_work", BOOL, "Serving, and the lease is held") \
	X(STATUS_SHOW, "dataplane", TEXT, "up or down") \
	X(STATUS_SHOW, "lease", TEXT, "held or none") \
	X(STATUS_SHOW, "deadline_ms", INT, "of the drain, from now") \
	X(STATUS_SHOW, "relocation_result", TEXT, "none: this version moves no Spots") \
	X(STATUS_SHOW, "shutdown_result", TEXT, "stopped or force_stopped") \
	X(STATUS_SHOW, "inbound_hwm", INT, "payload bytes that peers may have under way") \
	X(STATUS_SHOW, "inbound_pending", INT, "payload bytes accepted and not at their end") \
	X(STATUS_SHOW, "inbound_queued", INT, "of them, waiting for a turn") \
	X(STATUS_SHOW, "inbound_active", INT, "of them, in a turn that waits") \
	X(STATUS_SHOW, "receive_paused", BOOL, "peers are granted nothing more now") \
	X(STATUS_SHOW, "pending_sends", INT, "replies that wait for room to be sent") \
	X(STATUS_SHOW, "send_limit", INT, \
	  "empty replies that the lanes have room for; requests wait rather than fill the last " \
	  "of it") \
	X(STATUS_SHOW, "coalesced", INT, \
	  "statuses between `after` and this one, but for ends that are kept no longer") \
	X(STATUS_SHOW, "discarded_terminal", INT, \
	  "ends of the node behind `after` that are kept no longer") \
	X(METRICS_SHOW, "samples", ROWS, "every instrument, and every value of its labels") \
	X(METRICS_SHOW, "samples[].name", TEXT, "instrument") \
	X(METRICS_SHOW, "samples[].labels", TEXT, "name=\"value\", separated by commas") \
	X(METRICS_SHOW, "samples[].kind", TEXT, "observable, updown, counter or histogram") \
	X(METRICS_SHOW, "samples[].unit", TEXT, "By, s, or what is counted in braces") \
	X(METRICS_SHOW, "samples[].value", INT, "value; of a histogram, how many were measured") \
	X(METRICS_SHOW, "samples[].sum", REAL, "of a histogram: their sum") \
	X(METRICS_SHOW, "samples[].buckets", TEXT, \
	  "of a histogram: UPTO:N, N of them at most UPTO and more than the one before") \
	X(TRACE_SHOW, "level", TEXT, "off, errors, normal or detailed") \
	X(TRACE_SHOW, "sample", REAL, "share of flows that is recorded") \
	X(TRACE_SHOW, "records", ROWS, "oldest first; what a record has nothing of is left out") \
	X(TRACE_SHOW, "records[].time", TEXT, "when it was written, RFC 3339") \
	X(TRACE_SHOW, "records[].lane", INT, "worker lcore") \
	X(TRACE_SHOW, "records[].record", TEXT, \
	  "spotlane.message_flow or spotlane.dispatch_error") \
	X(TRACE_SHOW, "records[].phase", TEXT, "what happened to the message") \
	X(TRACE_SHOW, "records[].surface", TEXT, "node, channel, spot or instance_spot") \
	X(TRACE_SHOW, "records[].kind", TEXT, "send, request, response, error or control") \
	X(TRACE_SHOW, "records[].outcome", TEXT, "how it ended or went on") \
	X(TRACE_SHOW, "records[].reason", TEXT, "why not well") \
	X(TRACE_SHOW, "records[].action", TEXT, "what was done about an error") \
	X(TRACE_SHOW, "records[].type", TEXT, "stable type of the Spot") \
	X(TRACE_SHOW, "records[].spot_id", TEXT, "Spot id, of the target of what was sent") \
	X(TRACE_SHOW, "records[].packet", TEXT, "packet name, or the timer's") \
	X(TRACE_SHOW, "records[].topic", TEXT, "topic of a publish") \
	X(TRACE_SHOW, "records[].correlation_id", DECIMAL, "of a request and its reply") \
	X(TRACE_SHOW, "records[].flow_id", TEXT, "UUIDv7 of all that came of one message") \
	X(TRACE_SHOW, "records[].flow_origin", TEXT, \
	  "where that began: inbound, timer, application or lifecycle") \
	X(TRACE_SHOW, "lost", INT, "records behind `after` that were overwritten") \
	X(TRACE_SHOW, "next", TEXT, "where the next call goes on") \
	X(TRACE_SET_LEVEL, "level", TEXT, "level now") \
	X(TRACE_SET_LEVEL, "sample", REAL, "share now") \
	X(TRACE_SET_SAMPLE, "level", TEXT, "level now") \
	X(TRACE_SET_SAMPLE, "sample", REAL, "share now") \
	X(CONFIG_SHOW, "file", TEXT, "configuration file") \
	X(CONFIG_SHOW, "file_changed", BOOL, "the file differs from the running configuration") \
	X(CONFIG_SHOW, "options", ROWS, "every option") \
	X(CONFIG_SHOW, "options[].path", TEXT, "name of the option") \
	X(CONFIG_SHOW, "options[].value", TEXT, "in the notation of the file") \
	X(CONFIG_SHOW, "options[].origin", TEXT, "default, or file and line") \
	X(CONFIG_SHOW, "options[].reloadable", BOOL, "may change while running") \
	X(LOG_SET_LEVEL, "level", TEXT, "level now") \
	X(LOG_SET_LEVEL, "previous", TEXT, "level before")

enum spl_mgmt_method {
#define SPL_MGMT_X(id, name, access, help) SPL_MGMT_##id,
	SPL_MGMT_METHODS(SPL_MGMT_X)
#undef SPL_MGMT_X
		SPL_MGMT_METHOD_COUNT
};

#ifdef __cplusplus
}
#endif

#endif
