/* SPDX-License-Identifier: BSD-3-Clause */
/* Every option of the configuration file, once. The reader, the defaults, `config show`, the
 * example in config/spotlane.cfg and docs/configuration.md all come from here; to add an option,
 * add its member to config.h and its line here.
 *
 * X(path, base, member, KIND, choices, default, min, max, change, "help")
 *   base, member  where the value goes: struct `base`, member `member`
 *   KIND          INT min..max | TEXT, WORD, PATH, MODULE min..max bytes | CHOICE one of `choices`
 *                 | MODE octal text | IPV4 | INTS, TEXTS, PATHS lists of at most CONF_LIST_MAX,
 *                 min..max for each entry
 *   default       as in the file, without quotes; NULL = must be given; "" = empty
 *   change        START only at start, RELOAD also while running
 */
#ifndef SPL_CONTROL_CONFIG_OPTS_H
#define SPL_CONTROL_CONFIG_OPTS_H

#define CONF_MS_MAX	 2147483647
#define CONF_IDLE_MS_MAX 604800000

/* X(name, "help"): the sections of the file, in its order. */
#define CONF_SECTIONS(X) \
	X("node", "This node and its mesh.") \
	X("dataplane", "Lanes, memory and the poll loop.") \
	X("eal", "Arguments for DPDK.") \
	X("limits", "Bounds; what is full refuses or waits, nothing grows.") \
	X("workers", "Threads beside the lanes, for what handlers hand over.") \
	X("timeouts", "Used by calls that name none.") \
	X("lease", "Owner lease: renew_ms + timeout_ms must be less than ttl_ms - margin_ms.") \
	X("route", "Cached places of Spots.") \
	X("authority", "Who owns what.") \
	X("store", "Where rows are kept.") \
	X("control", "The management socket and the private socket to the dataplane.") \
	X("log", "Log of the control process.")

#define CONF_TOP_OPTIONS(X) \
	X("security", config, security, CHOICE, "none", NULL, 0, 0, START, \
	  "links are not authenticated yet, and the file has to say so") \
	X("stage_dirs", config, stage_dirs, PATHS, NULL, "/usr/lib/spotlane/stages", 1, 255, \
	  START, "where stage modules given by name alone are looked for, in order") \
	X("channels", config, channels, TEXTS, NULL, "", 1, 255, START, \
	  "channels that this node takes part in: their topics can be published and subscribed " \
	  "to") \
	X("node.name_prefix", config, node.name_prefix, WORD, NULL, "node", 1, 64, START, \
	  "start of the node RID; letters, digits, dot, dash, underscore") \
	X("node.mesh", config, node.mesh, TEXT, NULL, "default", 1, 255, START, "mesh name") \
	X("node.object_role", config, node.object_role, CHOICE, "none|client|server", "server", 0, \
	  0, START, "this version takes \"server\" alone: the node hosts Spots") \
	X("node.drain_ms", config, node.drain_ms, INT, NULL, "30000", 1, CONF_MS_MAX, START, \
	  "a planned stop gives accepted turns this long") \
	X("dataplane.lanes", config, dataplane.lanes, INT, NULL, "1", 1, CONF_LANES_MAX, START, \
	  "worker lcores; each owns its share of the Spots") \
	X("dataplane.lcores", config, dataplane.lcores, INTS, NULL, "", 0, CONF_CPU_MAX, START, \
	  "CPU of each lane, in order; empty: the allowed CPUs in turn") \
	X("dataplane.agent_cpu", config, dataplane.agent_cpu, INT, NULL, "-1", -1, CONF_CPU_MAX, \
	  START, "CPU of the main lcore; -1: the first allowed one") \
	X("dataplane.hugepages", config, dataplane.hugepages, CHOICE, "auto|no|yes", "auto", 0, 0, \
	  START, "auto uses them when enough are free") \
	X("dataplane.memory_mb", config, dataplane.memory_mb, INT, NULL, "512", 64, 1048576, \
	  START, "memory for DPDK, MiB") \
	X("dataplane.mbufs", config, dataplane.mbufs, INT, NULL, "16384", 1024, 4194304, START, \
	  "packet buffers of each lane") \
	X("dataplane.data_room_bytes", config, dataplane.data_room_bytes, INT, NULL, "2176", 1536, \
	  65535, START, "one packet buffer, 128 bytes of headroom included") \
	X("dataplane.pool_low_percent", config, dataplane.pool_low_percent, INT, NULL, "25", 1, \
	  90, START, "below this share of free buffers, waiting messages are copied out of them") \
	X("dataplane.lane_memory_mb", config, dataplane.lane_memory_mb, INT, NULL, "64", 1, 65536, \
	  START, "memory of each lane for payloads: reassembly, replies, copied messages, MiB") \
	X("dataplane.turn_budget_us", config, dataplane.turn_budget_us, INT, NULL, "50", 1, \
	  1000000, START, "time one Spot may use before the next ready one has its turn") \
	X("dataplane.turn_overrun_us", config, dataplane.turn_overrun_us, INT, NULL, "10000", 0, \
	  60000000, START, "a turn that takes longer is counted and logged by name; 0: none is") \
	X("dataplane.lifecycle_cap", config, dataplane.lifecycle_cap, INT, NULL, "8", 1, 200, \
	  START, "lifecycle turns in a row while application work waits") \
	X("dataplane.idle_nap_us", config, dataplane.idle_nap_us, INT, NULL, "1000", 0, 1000, \
	  START, "longest nap of an idle lane; 0: it only yields") \
	X("eal.extra_args", config, eal.extra_args, TEXTS, NULL, "", 1, 255, START, \
	  "appended to the EAL arguments as they are") \
	X("limits.spots", config, limits.spots, INT, NULL, "0", 0, 2147483647, START, \
	  "User and Instance Spots of this node; 0: no limit but the tables'") \
	X("limits.spots_per_lane", config, limits.spots_per_lane, INT, NULL, "1048576", 1, \
	  16777216, START, "Spots in the table of one lane") \
	X("limits.records_per_lane", config, limits.records_per_lane, INT, NULL, "262144", 64, \
	  16777216, START, "messages that wait or run in one lane") \
	X("limits.pending_creates", config, limits.pending_creates, INT, NULL, "128", 1, 65536, \
	  START, "creations whose factory or initialisation runs at the same time") \
	X("limits.spot_queue_count", config, limits.spot_queue_count, INT, NULL, "4096", 1, \
	  1048576, START, "messages in the application queue of one Spot") \
	X("limits.spot_queue_bytes", config, limits.spot_queue_bytes, INT, NULL, "67108864", \
	  65536, 4294967296, START, "bytes in the application queue of one Spot") \
	X("limits.lifecycle_queue_count", config, limits.lifecycle_queue_count, INT, NULL, "256", \
	  1, 65536, START, "records in the lifecycle queue of one Spot") \
	X("limits.lifecycle_queue_bytes", config, limits.lifecycle_queue_bytes, INT, NULL, \
	  "4194304", 65536, 268435456, START, "bytes in the lifecycle queue of one Spot") \
	X("limits.timers_per_lane", config, limits.timers_per_lane, INT, NULL, "65536", 0, \
	  16777216, START, "timers of all Spots of one lane, 128 bytes each") \
	X("limits.timers_per_spot", config, limits.timers_per_spot, INT, NULL, "16", 0, 255, \
	  START, "timers of one Spot") \
	X("limits.subscriptions_per_lane", config, limits.subscriptions_per_lane, INT, NULL, \
	  "65536", 0, 16777216, START, "subscriptions of all Spots of one lane, 100 bytes each") \
	X("limits.send_waiters_per_lane", config, limits.send_waiters_per_lane, INT, NULL, "4096", \
	  0, 1048576, START, \
	  "sends and publishes of one lane's Spots that wait for room, at most its records") \
	X("limits.message_max_bytes", config, limits.message_max_bytes, INT, NULL, "1048576", \
	  1024, 16777216, START, "largest payload of one message") \
	X("limits.credit_pool_bytes", config, limits.credit_pool_bytes, INT, NULL, "0", 0, \
	  1099511627776, START, \
	  "credit granted to all peers together, at most what the lanes' memory holds; 0: from " \
	  "the packet memory") \
	X("limits.peers", config, limits.peers, INT, NULL, "1024", 1, 4096, START, \
	  "associations with nodes and clients") \
	X("workers.cpu_threads_min", config, workers.cpu_threads_min, INT, NULL, "1", 1, 256, \
	  START, "threads for computations of stages, always") \
	X("workers.cpu_threads_max", config, workers.cpu_threads_max, INT, NULL, "4", 1, 256, \
	  START, "and while computations wait") \
	X("workers.cpu_idle_ms", config, workers.cpu_idle_ms, INT, NULL, "10000", 1, CONF_MS_MAX, \
	  START, "a thread above the minimum ends after so long without work") \
	X("workers.cpu_queue", config, workers.cpu_queue, INT, NULL, "1024", 1, 65536, START, \
	  "computations that wait for a thread") \
	X("workers.io_operations", config, workers.io_operations, INT, NULL, "1024", 1, 65536, \
	  START, "I/O operations of stages that are open") \
	X("workers.results_mb", config, workers.results_mb, INT, NULL, "64", 1, 65536, START, \
	  "memory of all results of the workers until their turns have ended, MiB") \
	X("timeouts.send_ms", config, timeouts.send_ms, INT, NULL, "1000", 1, CONF_MS_MAX, START, \
	  "a send waits this long for room in a queue of this node") \
	X("timeouts.request_ms", config, timeouts.request_ms, INT, NULL, "30000", 1, CONF_MS_MAX, \
	  START, "a request waits this long for its reply") \
	X("timeouts.create_ms", config, timeouts.create_ms, INT, NULL, "30000", 1, CONF_MS_MAX, \
	  START, "a create waits this long") \
	X("timeouts.instance_idle_ms", config, timeouts.instance_idle_ms, INT, NULL, "0", 0, \
	  CONF_IDLE_MS_MAX, START, "an Instance Spot idle for so long is closed; 0: never") \
	X("lease.renew_ms", config, lease.renew_ms, INT, NULL, "5000", 1, 3600000, START, \
	  "between renewals") \
	X("lease.timeout_ms", config, lease.timeout_ms, INT, NULL, "3000", 1, 3600000, START, \
	  "a renewal that takes longer has failed") \
	X("lease.ttl_ms", config, lease.ttl_ms, INT, NULL, "15000", 1, 3600000, START, \
	  "the store forgets a lease that is not renewed for this long") \
	X("lease.margin_ms", config, lease.margin_ms, INT, NULL, "5000", 1, 3600000, START, \
	  "the dataplane stops this long before the lease ends") \
	X("route.cache_age_ms", config, route.cache_age_ms, INT, NULL, "15000", 0, 3600000, START, \
	  "a cached place is asked for again after this long, at the latest when the owner's " \
	  "lease " \
	  "deadline passes; 0: places are not cached") \
	X("authority.reclaim", config, authority.reclaim, CHOICE, "manual|on_restart", "manual", \
	  0, 0, START, \
	  "on_restart frees the rows of a dead lifecycle of this machine at start; manual leaves " \
	  "that to `spotctl spot reclaim`") \
	X("store.backend", config, store.backend, CHOICE, "memory|sqlite", "sqlite", 0, 0, START, \
	  "memory forgets everything when the control process ends") \
	X("store.path", config, store.path, PATH, NULL, "/var/lib/spotlane/store.db", 1, 4095, \
	  START, "file of the sqlite store") \
	X("control.socket", config, control.socket, PATH, NULL, "/run/spotlane/control.sock", 1, \
	  107, START, "management socket; its directory must exist") \
	X("control.socket_mode", config, control.socket_mode, MODE, NULL, "0660", 0, 0777, START, \
	  "mode of the socket file, octal in quotes") \
	X("control.socket_group", config, control.socket_group, TEXT, NULL, "", 0, 32, START, \
	  "group of the socket file: its members may do everything; empty: left as it is") \
	X("control.readonly_group", config, control.readonly_group, TEXT, NULL, "", 0, 32, START, \
	  "members may only show; needs socket_mode \"0666\", the daemon then decides by peer " \
	  "credentials") \
	X("control.private_dir", config, control.private_dir, PATH, NULL, "/run/spotlane/private", \
	  1, 92, START, "directory of dataplane.sock, mode 0750; it must exist") \
	X("control.clients_max", config, control.clients_max, INT, NULL, "64", 1, 4096, START, \
	  "connections to the management socket") \
	X("control.line_max_bytes", config, control.line_max_bytes, INT, NULL, "2097152", 1572864, \
	  33554432, START, "longest request line") \
	X("control.output_max_bytes", config, control.output_max_bytes, INT, NULL, "8388608", \
	  6291456, 268435456, START, "answers waiting for a client that does not read") \
	X("control.input_timeout_ms", config, control.input_timeout_ms, INT, NULL, "10000", 1, \
	  3600000, START, "a request line must be complete by then") \
	X("log.level", config, log.level, CHOICE, "error|warn|info|debug", "info", 0, 0, RELOAD, \
	  "also changed by the method log.set_level")

/* ports: a list of groups. */
#define CONF_PORT_OPTIONS(X) \
	X("name", conf_port, name, WORD, NULL, NULL, 1, 31, START, "name in tables and logs") \
	X("device", conf_port, device, TEXT, NULL, NULL, 1, 255, START, \
	  "PCI address, or a virtual device with its arguments") \
	X("ip", conf_port, ip, IPV4, NULL, NULL, 0, 0, START, "address of this node") \
	X("prefix_len", conf_port, prefix_len, INT, NULL, "24", 1, 32, START, "of the subnet") \
	X("gateway", conf_port, gateway, IPV4, NULL, "", 0, 0, START, \
	  "next hop outside the subnet; empty: none") \
	X("mtu", conf_port, mtu, INT, NULL, "1500", 1280, 9216, START, "bytes of an IP packet") \
	X("udp_base", conf_port, udp_base, INT, NULL, "4700", 1024, 65279, START, \
	  "first of 257 UDP ports: base + lane, base + 128 + lane, and base + 256")

/* stages: a list of groups. */
#define CONF_STAGE_OPTIONS(X) \
	X("module", conf_stage, module, MODULE, NULL, NULL, 1, 255, START, \
	  "shared object: an absolute path, or a file name looked for in stage_dirs") \
	X("entry", conf_stage, entry, TEXT, NULL, "", 0, 255, START, \
	  "exported descriptor; empty: the default name")

#endif
