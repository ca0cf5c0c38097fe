#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# One percent of the frames lost each way, with 1, 2 and 3 lanes: nothing lost, and some sent again.
# timeout: 120
set -euo pipefail
here=$(dirname "$0")
out=$(mktemp)
trap 'rm -f "$out"' EXIT
for lanes in 1 2 3; do
  "$here/run.sh" --seconds 3 --lanes $lanes --loss 1 | tee "$out"
  result=$(tail -n 1 "$out")
  [[ $result =~ lost=0\ duplicated=0\ reordered=0 ]] || { echo "FAIL: $result"; exit 1; }
  [[ $result =~ retransmitted=([0-9]+) && ${BASH_REMATCH[1]} -gt 0 ]] || {
    echo "FAIL: nothing was sent again: $result"
    exit 1
  }
done
