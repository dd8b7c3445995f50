#!/usr/bin/env bash
# The script for a quarter of an hour on a GPU, without one: parts run, end at their limits, and are not
# run twice.
root=$PWD
source "$(dirname "${BASH_SOURCE[0]}")/lib.bash"
export LRA_GPU_DEVICE=cpu
minutes() { "$root/tests/gpu_minutes.sh" "$scratch/results"; }

LRA_GPU_PARTS=small expect_code 0 minutes
grep -q "^small: ok" out || fail "no line of the part: $(cat out)"
compgen -G "results/bench/*" >/dev/null || fail "no records"
LRA_GPU_PARTS=small expect_code 0 minutes
grep -q "^small: done before" out || fail "the part ran again: $(cat out)"
passed "a part leaves its records and is not run again"

expect_code 2 env LRA_GPU_PARTS=smal "$root/tests/gpu_minutes.sh" "$scratch/results"
grep -q "no part is named smal" err || fail "another message: $(cat err)"

printf '#!/bin/sh\necho at work\nsleep 100\n' >slow
chmod +x slow
expect_code 1 env LRA_PROGRAM="$scratch/slow" LRA_GPU_SECONDS=11 LRA_GPU_PARTS="changed others" \
  "$root/tests/gpu_minutes.sh" "$scratch/slow-results"
grep -q "^changed: exit code .* last line: at work" out || fail "the part was not ended: $(cat out)"
grep -q "^others: not begun" out || fail "a part was begun without time: $(cat out)"
passed "a part ends at its limit, and none begins without time"

printf '#!/bin/sh\necho no such model >&2\nexit 2\n' >broken
chmod +x broken
expect_code 1 env LRA_PROGRAM="$scratch/broken" LRA_GPU_PARTS="changed small" "$root/tests/gpu_minutes.sh" "$scratch/broken-results"
[[ $(grep -c "exit code 2 .* no such model" out) == 2 ]] || fail "failures are not told apart: $(cat out)"
passed "a part that fails does not stop the next"
