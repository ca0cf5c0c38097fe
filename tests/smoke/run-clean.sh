#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Ten seconds, 2 lanes, 4 clients, 1000 Spots: at least 300000 delivered, nothing lost, doubled or
# out of order, everything adds up, and the daemons stop when they are told to.
# timeout: 120
set -euo pipefail
here=$(dirname "$0")
out=$(mktemp)
trap 'rm -f "$out"' EXIT
"$here/run.sh" --seconds 10 | tee "$out"
result=$(tail -n 1 "$out")
[[ $result =~ lost=0\ duplicated=0\ reordered=0 ]] || { echo "FAIL: $result"; exit 1; }
[[ $result =~ delivered=([0-9]+) && ${BASH_REMATCH[1]} -ge 300000 ]] || {
  echo "FAIL: too few delivered: $result"
  exit 1
}
