/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a request is a request and keeps its method's specification. Pure; any thread. */
#ifndef SPL_CONTROL_SERVER_CHECK_H
#define SPL_CONTROL_SERVER_CHECK_H

#include "control/server/methods.h"

#define MGMT_WHY_MAX 256

/* Members of a request object. */
struct mgmt_request {
	const json_t *id; /* NULL when it is missing or of a wrong form */
	const char *method;
	const json_t *params; /* an object, or NULL */
};

/* Takes a JSON-RPC 2.0 request apart. 0, or an SPL_MGMT_E_ code with one sentence in `why`; out->id
 * is set whenever the id is good. */
int mgmt_check_request(const json_t *request, struct mgmt_request *out, char why[MGMT_WHY_MAX]);

/* The method called `name`, or NULL with a hint in `why`. */
const struct mgmt_method *mgmt_find_method(const struct mgmt_method *methods, size_t n,
					   const char *name, char why[MGMT_WHY_MAX]);

/* True when `params` (NULL = empty) keeps the specification of `m`. */
bool mgmt_check_params(const struct mgmt_method *m, const json_t *params, char why[MGMT_WHY_MAX]);

#endif
