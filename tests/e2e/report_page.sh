#!/usr/bin/env bash
# The report page in a real browser, Chromium without a window: it sorts, filters, opens a run,
# changes its colors, draws its charts, works without scripts and by keyboard; asks the network for
# nothing, breaks no policy, and looks as it did; hostile records do no harm.
source "$(dirname "${BASH_SOURCE[0]}")/lib.bash"
here=$(cd "$OLDPWD" && cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/report_page

for needed in node chromium; do
  if ! command -v "$needed" >/dev/null; then
    echo "skipped: no $needed (tools/setup --with-tests)"
    exit 77
  fi
done
if [[ ! -d $here/../../../tools/web/node_modules/playwright-core ]]; then
  echo "skipped: no tools/web/node_modules/playwright-core (tools/setup --with-tests)"
  exit 77
fi

"$LRA_PYTHON" "$here/records.py" fixed
"$LRA_PYTHON" "$here/records.py" hostile --hostile
lra report fixed --out fixed.html --quiet
lra report hostile --out hostile.html --quiet
for format in text md csv json latex; do
  lra report hostile --format "$format" >hostile.txt
  if LC_ALL=C grep -q $'[\x01-\x08\x0b-\x1f\x7f]' hostile.txt; then
    fail "$format passes control characters on"
  fi
done
passed "no format passes terminal escapes on"
[[ $(stat -c %s fixed.html) -lt 500000 ]] || fail "a page of $(stat -c %s fixed.html) bytes"

# "$@": --save-references renews the reference pictures.
LRA_CHROMIUM=$(command -v chromium) node "$here/drive.mjs" "$PWD" "$here" "$@" || fail "the page does not do what it should"
