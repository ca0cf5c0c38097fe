#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# One message spoiled in the stage: the run has to fail and to name the fault.
# timeout: 120
set -euo pipefail
here=$(dirname "$0")
out=$(mktemp)
trap 'rm -f "$out"' EXIT
# expect PLANT FIELD WORD
expect() {
  local status=0
  "$here/run.sh" --seconds 1 --spots 20 --plant "$1" > "$out" 2>&1 || status=$?
  tail -n 3 "$out"
  [[ $status -ne 0 ]] || { echo "FAIL: --plant $1 ended with exit 0"; exit 1; }
  grep -q "^fault: 1 messages $3\$" "$out" || { echo "FAIL: --plant $1 is not named"; exit 1; }
  [[ $(grep "^sent=" "$out") =~ \ $2=1\  ]] || { echo "FAIL: --plant $1: no $2=1"; exit 1; }
}
expect drop lost lost
expect dup duplicated duplicated
expect swap reordered reordered
