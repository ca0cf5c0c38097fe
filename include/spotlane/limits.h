/* SPDX-License-Identifier: BSD-3-Clause */
/* Every fixed bound of the product that two programs must agree on, in one list.
 * What an operator can change is in the configuration table instead.
 */
#ifndef SPOTLANE_LIMITS_H
#define SPOTLANE_LIMITS_H

/* X(SYMBOL, value, "unit", "what it bounds") */
#define SPL_LIMITS(X) \
	X(NAME_BYTES_MAX, 255, "bytes", "Spot id, stable type, packet, mesh and channel name") \
	X(METADATA_BYTES_MAX, 1024, "bytes", "metadata of a message, structure included") \
	X(CREATE_REQUEST_BYTES_MAX, 1048576, "bytes", "request of Create or GetOrCreate") \
	X(CREATE_REPLY_BYTES_MAX, 1048576, "bytes", "reply of a creation callback") \
	X(MESSAGE_BYTES_MAX, 1048576, "bytes", "payload of a message, the default limit") \
	X(MESSAGE_BYTES_CAP, 16777216, "bytes", "largest message limit that can be configured") \
	X(LANES_MAX, 128, "lanes", "worker lcores of a dataplane") \
	X(PORTS_MAX, 16, "ports", "ports of a dataplane") \
	X(STAGES_MAX, 1024, "types", "registered Spot types of a node") \
	X(HANDLERS_MAX, 256, "packets", "packet handlers of a stage") \
	X(STATE_BYTES_MAX, 1048576, "bytes", "state of one Spot, of its lane's memory") \
	X(DATAGRAM_BYTES, 1200, "bytes", "UDP payload of a frame until path probing exists") \
	X(ASSOCIATIONS_MAX, 4096, "peers", "associations of a node") \
	X(CHANNELS_MAX, 128, "channels", "channels a node or client takes part in") \
	X(SUBSCRIPTIONS_MAX, 64, "subscriptions", "of one Spot") \
	X(ACTIVATIONS_MAX, 1024, "ids", "of a lane whose Instance Spots are being started") \
	X(LIST_PAGE_MAX, 1000, "entries", "entries of one page of a list") \
	X(LIST_PAGE_BYTES_MAX, 4194304, "bytes", "encoded size of one page of a list")

enum spl_limit {
#define SPL_X(sym, value, unit, help) SPL_##sym = value,
	SPL_LIMITS(SPL_X)
#undef SPL_X
};

#endif
