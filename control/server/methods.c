/* SPDX-License-Identifier: BSD-3-Clause */
/* Spotlane's methods as data, from <spotlane/mgmt.h>. Pure. */
#include "control/server/methods.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* The rows of one method stand together in the lists; each method points at its first. */
#define PARAM(method, name, type, need, min, max, choices, help) \
	{name, MGMT_##type, MGMT_##need, min, max, choices, help},
#define PARAM_OF(method, ...) SPL_MGMT_##method,
static const struct mgmt_param params[] = {SPL_MGMT_PARAMS(PARAM)};
static const enum spl_mgmt_method param_of[] = {SPL_MGMT_PARAMS(PARAM_OF)};

#define RESULT(method, name, type, help) {name, MGMT_##type, help},
static const struct mgmt_result results[] = {SPL_MGMT_RESULTS(RESULT)};
static const enum spl_mgmt_method result_of[] = {SPL_MGMT_RESULTS(PARAM_OF)};

void mgmt_methods_init(struct mgmt_method m[SPL_MGMT_METHOD_COUNT])
{
	enum { WRITE, READ };

#define METHOD(id, nm, access, hlp) \
	m[SPL_MGMT_##id] = \
		(struct mgmt_method){.name = nm, .read_only = access == READ, .help = hlp};
	SPL_MGMT_METHODS(METHOD)
	for (size_t i = COUNT(params); i-- > 0;) {
		m[param_of[i]].params = &params[i];
		m[param_of[i]].n_params++;
	}
	for (size_t i = COUNT(results); i-- > 0;) {
		m[result_of[i]].results = &results[i];
		m[result_of[i]].n_results++;
	}
}
