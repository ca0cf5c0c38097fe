/* SPDX-License-Identifier: BSD-3-Clause */
/* What the room stage and its clients agree on. Numbers are big-endian.
 *
 * `say` (send or request): u64 sender, u64 sequence, then text. A sender counts its sequence from
 * 1, for each room. The reply to a request is the first 16 bytes of it.
 *
 * `roll` (request, no payload): the reply has one row for each sender that the room has heard: u64
 * sender, u64 messages heard, u64 highest sequence, u64 duplicates, u64 out of order.
 *
 * A message whose sequence is not above the highest one is a duplicate when the room has heard
 * that sequence (among the last 64), otherwise it is out of order.
 */
#ifndef SPL_EXAMPLES_ROOM_H
#define SPL_EXAMPLES_ROOM_H

#define ROOM_TYPE	 "room"
#define ROOM_SAY	 "say"
#define ROOM_ROLL	 "roll"
#define ROOM_SAY_BYTES	 16 /* before the text */
#define ROOM_ROW_BYTES	 40
#define ROOM_SENDERS_MAX 64 /* that one room remembers; a say of another is refused */

#endif
