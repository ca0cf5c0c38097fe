/* SPDX-License-Identifier: BSD-3-Clause */
/* The methods of the management protocol as data: what the server checks, spotctl offers and the
 * documents list. No libuv in here. Pure; any thread.
 */
#ifndef SPL_CONTROL_SERVER_METHODS_H
#define SPL_CONTROL_SERVER_METHODS_H

#include <jansson.h>
#include <spotlane/ids.h>
#include <spotlane/mgmt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mgmt_call; /* one request that waits for its answer */

enum mgmt_type {
	MGMT_TEXT,
	MGMT_WORD,
	MGMT_BASE64,
	MGMT_INT,
	MGMT_BOOL,
	MGMT_CHOICE,
	MGMT_REF,
	MGMT_DECIMAL, /* results only: a number as a text of decimal digits */
	MGMT_ROWS,    /* results only */
	MGMT_REAL,    /* results only */
};

enum mgmt_need { MGMT_REQUIRED, MGMT_OPTIONAL, MGMT_ONE_OF, MGMT_AT_MOST_ONE };

struct mgmt_param {
	const char *name;
	enum mgmt_type type;
	enum mgmt_need need;
	int64_t min, max;
	const char *choices; /* "a|b|c" */
	const char *help;
};

struct mgmt_result {
	const char *name;
	enum mgmt_type type;
	const char *help;
};

/* Called with parameters that keep the method's specification; `params` is an object, borrowed,
 * valid until the call is answered. The handler owns `call` and must answer it exactly once, now
 * or later, with mgmt_reply() or mgmt_fail(); also when the client has gone meanwhile. */
typedef void (*mgmt_handler_fn)(struct mgmt_call *call, const json_t *params, void *ctx);

struct mgmt_method {
	const char *name;
	const struct mgmt_param *params;
	size_t n_params;
	bool read_only;			   /* the read-only group may call it */
	mgmt_handler_fn handler;	   /* NULL: not offered by this daemon */
	const struct mgmt_result *results; /* for the reference page and for spotctl */
	size_t n_results;
	const char *help;
};

/* Fills `m` with Spotlane's methods (name, parameters, results, access); handlers are NULL. */
void mgmt_methods_init(struct mgmt_method m[SPL_MGMT_METHOD_COUNT]);

/* The parameter `name`, a text of 1..255 bytes, with its length: a name may contain NUL. -ENOENT
 * when it was left out. */
int mgmt_param_name(const json_t *params, const char *name, struct spl_name *out);

/* Bytes of the parameter `name` (text) or `name`_base64; empty when both are left out. `params`
 * has passed the check. The caller frees *out with free(). 0 or -ENOMEM. */
int mgmt_param_bytes(const json_t *params, const char *name, void **out, size_t *n);

/* Adds `name` (text) when the bytes are UTF-8 without NUL, else `name`_base64. 0 or -ENOMEM. */
int mgmt_result_bytes(json_t *result, const char *name, const void *bytes, size_t n);

#endif
