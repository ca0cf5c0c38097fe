/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target: flow, associations and message codecs. Input: one byte that chooses, then a script
 * of operations with their bytes (flow, associations), or the bytes of a message or body. Aborts
 * when a dropped packet changed anything, a delivered message lies outside its packet, something
 * does not come back, an answer is longer than its question, or what decodes does not encode to
 * itself.
 */
#include "tests/fuzz/fuzz_link.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = {data + 1, size - 1};

	if (size < 1)
		return 0;
	if (data[0] % 4 < 2)
		fuzz_link_flow(&in);
	else if (data[0] % 4 == 2)
		fuzz_link_assoc(&in);
	else
		fuzz_link_message(&in);
	return 0;
}
