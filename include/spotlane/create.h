/* SPDX-License-Identifier: BSD-3-Clause */
/* Creations of a turn: part of the stage interface, <spotlane/stage.h> includes it (S-CREATE-11).
 *
 * The rules of a callback are those of stage.h.
 */
#ifndef SPOTLANE_CREATE_H
#define SPOTLANE_CREATE_H

#include <spotlane/call.h>
#include <spotlane/ids.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A User Spot to be made. All of it is copied before return. */
struct spl_creation {
	const char *type; /* stable type, 1..255 bytes UTF-8 */
	const void *id;	  /* GetOrCreate: this one. NULL: Create, under an id made for it */
	size_t id_bytes;
	const void *request; /* for on_create, up to SPL_CREATE_REQUEST_BYTES_MAX */
	uint32_t request_bytes;
	uint32_t timeout_ms; /* 1..INT_MAX, 0 = `timeouts.create_ms` */
};

enum spl_created_state {
	SPL_CREATED_EXISTING = 0, /* it was there, of this type; no callback has run */
	SPL_CREATED_NEW = 1,	  /* made by this call, and Ready */
	SPL_CREATED_REJECTED = 2, /* on_create has declined: a result and no error (S-CREATE-3) */
};

/* What a creation has ended with. */
struct spl_created {
	enum spl_created_state state;
	struct spl_name id;  /* of the Spot, or of the attempt that was rejected: empty then */
	uint64_t generation; /* of the incarnation; 0 when rejected */
	const void *reply;   /* of spl_reply() in on_create; as long as the result */
	uint32_t reply_bytes;
};

/* Asks the authority to create, or get, a User Spot of this node's mesh (S-CREATE-1). One
 * operation: whoever else asks for the same id at the same time, exactly one Spot is made. The
 * call's result is read with spl_created_of(); on an error: AlreadyExists (Create), TypeMismatch,
 * NotFound (no such type), CapacityExceeded, InvalidOperation (a reserved id, no User type),
 * Unavailable, DeadlineExceeded, ShuttingDown, or what on_create or on_initialize has failed with.
 * -EINVAL: bad argument; -EMSGSIZE: the request; -ENOBUFS: no memory or call slot, too many
 * questions to control, or the 65th call of this handler; -EDEADLK: it is this very Spot, which is
 * being created and would wait for itself under HOLD; -EPERM, -ESHUTDOWN: as for spl_request().
 */
int spl_create(struct spl_turn *turn, const struct spl_creation *creation, enum spl_wait wait,
	       struct spl_call **call);

/* Called by the continuation of a creation whose kind is SPL_OK. `*out` points into the result. 0;
 * -EINVAL: that is not the result of a creation.
 */
int spl_created_of(const struct spl_result *result, struct spl_created *out);

#ifdef __cplusplus
}
#endif
#endif
