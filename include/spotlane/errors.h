/* SPDX-License-Identifier: BSD-3-Clause */
/* The thirteen error kinds of the contract (S-ERR-1, A-ERR): one list, from which ids, names and
 * help are made. Kind 0 is a real error; "no error" is SPL_OK. Argument and handle errors that the
 * call site can check are negative errno values, never a kind (S-ERR-2). Cancellation is neither.
 */
#ifndef SPOTLANE_ERRORS_H
#define SPOTLANE_ERRORS_H

#include <errno.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(number, SYMBOL, "Name", "help") */
#define SPL_ERROR_KINDS(X) \
	X(0, NOT_FOUND, "NotFound", "no Ready object under this id, or no handler for the packet") \
	X(1, ALREADY_EXISTS, "AlreadyExists", "an exclusive create met an object that exists") \
	X(2, TYPE_MISMATCH, "TypeMismatch", "the id belongs to another kind or stable type") \
	X(3, NOT_CONFIGURED, "NotConfigured", "the role, store, handler or mesh is not set up") \
	X(4, REJECTED, "Rejected", "a policy without a typed result refused") \
	X(5, UNAVAILABLE, "Unavailable", \
	  "owner, route, lease, store or peer not usable, or a queue on another node is full") \
	X(6, CAPACITY_EXCEEDED, "CapacityExceeded", \
	  "no placement room, or a queue owned by this runtime is full") \
	X(7, DEADLINE_EXCEEDED, "DeadlineExceeded", "not finished in time") \
	X(8, SHUTTING_DOWN, "ShuttingDown", "the runtime takes no new work") \
	X(9, PROTOCOL_ERROR, "ProtocolError", "an undecodable frame, payload or reply") \
	X(10, INVALID_OPERATION, "InvalidOperation", \
	  "wrong context, self-wait, second terminal, reserved id, other incarnation") \
	X(11, DATA_LOST, "DataLost", "a stored payload is missing or failed verification") \
	X(12, INTERNAL_FAILURE, "InternalFailure", "a handler or commit failed, or anything else")

enum spl_error {
#define SPL_X(num, sym, name, help) SPL_E_##sym = num,
	SPL_ERROR_KINDS(SPL_X)
#undef SPL_X
		SPL_CANCELLED = 0xfe, /* of a cancelled call; not one of the kinds (S-COMPL-9) */
	SPL_OK = 0xff,		      /* not an error */
};

#define SPL_ERROR_COUNT 13

/* The contract's name of a kind ("NotFound"), "OK" for SPL_OK, "unknown" otherwise. Never NULL. */
static inline const char *spl_error_name(int kind)
{
	switch (kind) {
#define SPL_X(num, sym, name, help) \
	case num: \
		return name;
		SPL_ERROR_KINDS(SPL_X)
#undef SPL_X
	case SPL_OK:
		return "OK";
	case SPL_CANCELLED:
		return "Cancelled";
	default:
		return "unknown";
	}
}

/* The error kind that a negative return value of the stage interface stands for, for a handler that
 * passes it on: SPL_FAIL(spl_error_of(rc)).
 */
static inline enum spl_error spl_error_of(int rc)
{
	switch (-rc) {
	case ENOENT:
		return SPL_E_NOT_FOUND;
	case EAGAIN:
	case ENOBUFS:
		return SPL_E_CAPACITY_EXCEEDED;
	case ESHUTDOWN:
		return SPL_E_SHUTTING_DOWN;
	case EINVAL:
	case EDEADLK:
	case EPERM:
	case EALREADY:
	case EEXIST:
		return SPL_E_INVALID_OPERATION;
	case ETIMEDOUT:
		return SPL_E_DEADLINE_EXCEEDED;
	case EMSGSIZE:
		return SPL_E_PROTOCOL_ERROR;
	default:
		return SPL_E_INTERNAL_FAILURE;
	}
}

#ifdef __cplusplus
}
#endif
#endif
