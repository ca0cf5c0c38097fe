/* SPDX-License-Identifier: BSD-3-Clause */
/* Stage modules of the loader's tests: built once for each MODULE_* below. */
#include <spotlane/stage.h>

static int on_hello(struct spl_turn *turn, void *state, const struct spl_message *msg)
{
	return SPL_DONE;
}

__attribute__((unused)) static const struct spl_handler handlers[] = {
	{"hello", SPL_TAKES_SEND, on_hello},
};

#define GOOD(name) \
	.api = SPL_STAGE_API, .size = sizeof(struct spl_stage), .type = name, \
	.kind = SPL_KIND_USER, .relocation = SPL_RELOCATION_DISABLED, .state_bytes = 16, \
	.handlers = handlers, .handler_count = 1

#if defined(MODULE_GOOD)
SPL_STAGE_EXPORT = {GOOD("good")};
extern const struct spl_stage second_stage;
__attribute__((visibility("default"))) const struct spl_stage second_stage = {GOOD("second")};
#elif defined(MODULE_API)
SPL_STAGE_EXPORT = {.api = SPL_STAGE_API + 1, .size = 1, .type = (const char *)1};
#elif defined(MODULE_EMPTY)
extern const int nothing_here;
const int nothing_here = 1;
#elif defined(MODULE_UNDEFINED)
int spl_call_of_another_version(void);
SPL_STAGE_EXPORT = {GOOD("undefined")};
extern int use(void);
int use(void)
{
	return spl_call_of_another_version() + on_hello(NULL, NULL, NULL) + (int)handlers[0].takes;
}
#endif
