#!/usr/bin/env bash
# `lra data fetch` against a server that misbehaves: the right file or one clear line, and never
# anything under the final name that does not match its digest.
server_script=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../faults/shared/hostile_server.py")
source "$(dirname "${BASH_SOURCE[0]}")/lib.bash"

make_reviews raw
(cd raw && tar -czf ../reviews.tar.gz aclImdb)
sum=$(sha256sum reviews.tar.gz | cut -d' ' -f1)
"$LRA_PYTHON" "$server_script" reviews.tar.gz >port 2>/dev/null &
for ((i = 0; i < 600; ++i)); do
  if [[ -s port ]]; then break; fi
  sleep 0.1
done
base=http://127.0.0.1:$(cat port)

sizes=(--set task.num_train=20 --set task.num_test=20)

# fetch FOLDER CASE...: from mirrors that behave like CASE (see the server), in this order.
fetch() {
  local folder=$1 case urls=()
  shift
  for case in "$@"; do urls+=(--url "$base/${case// /%20}/$folder"); done
  lra data fetch text --out "$folder/text" --sha256 "$sum" --timeout 1 --quiet "${urls[@]}"
}

raw() { echo "$1/aclImdb_v1.tar.gz"; }

# good FOLDER CASE...: the file comes whole, and is imported.
good() {
  expect_code 0 fetch "$@"
  same_files reviews.tar.gz "$(raw "$1")"
  lra data check text "$1/text" "${sizes[@]}" >/dev/null || fail "$*: the imported data are not in order"
}

# bad FOLDER TEXT CASE...: exit code 74, one line that has TEXT, nothing under the final names.
bad() {
  local folder=$1 text=$2
  shift 2
  expect_code 74 fetch "$folder" "$@"
  [[ $(wc -l <err) == 1 ]] || fail "$*: $(wc -l <err) lines of errors: $(cat err)"
  grep -q -- "$text" err || fail "$*: '$text' is not in: $(cat err)"
  [[ ! -e $(raw "$folder") && ! -e $folder/text ]] || fail "$*: something stands in $folder"
}

complete_downloads() {
  good plain good
  good redirected "good after a redirect"
  # Two answers break off after a third; those that follow are asked for the rest.
  good resumed "good, a third each time"
  good second_mirror "status 404" good
  good broken_mirror "reset half-way" good
  good after_garbage "not HTTP" good
  good after_error_page "good after an error page"
  # The server sends all again although a part was asked for.
  mkdir restarted
  head -c 1000 reviews.tar.gz >"$(raw restarted).part"
  good restarted "good, ranges unknown"
  # The partial download belongs to another file.
  mkdir other
  head -c 1000 /dev/zero >"$(raw other).part"
  good other good
  # A part file that is longer than the file itself.
  mkdir longer
  head -c 99999 /dev/zero >"$(raw longer).part"
  good longer good
  passed "complete downloads"
}

resume_asks_for_the_rest() {
  mkdir rest
  head -c 1000 reviews.tar.gz >"$(raw rest).part"
  good rest good
  "$LRA_PYTHON" -c "import urllib.request as u; print(u.urlopen('$base/ranges/').read().decode())" |
    tail -n 1 | grep -qx 'range: bytes=1000-' || fail "the rest was not asked for"
  passed "a part is not sent twice"
}

hostile_servers() {
  local status
  for status in 401 403 404 500 503; do bad "status_$status" "answers $status" "status $status"; done
  bad endless_page "answers 503" "error page without end"
  bad loop "redirects" "redirects without end"
  bad to_file "rotocol" "redirect to a file"
  bad stall "imeout" "stall in the body"
  bad silent "imeout" silence
  bad damaged "SHA-256" "one bit is wrong"
  bad long "SHA-256" "more than there is"
  bad garbage "HTTP" "not HTTP"
  mkdir wrong
  head -c 1000 reviews.tar.gz >"$(raw wrong).part"
  bad wrong "another part" "206 from another place"
  bad all "/all: answers 503" "status 404" "redirects without end" "status 503"
  passed "hostile servers"
}

bounded_size() {
  # The published size bounds what is taken: without --sha256 it holds.
  expect_code 74 lra data fetch text --out endless/text --timeout 1 --quiet --url "$base/body%20without%20end/endless"
  grep -q "sends more than 84,125,825 bytes" err || fail "endless: $(cat err)"
  [[ $(stat -c %s "$(raw endless).part") -le 84125825 ]] || fail "endless: too much was written"
  passed "an endless answer is cut"
}

# A pipe would wait for ever, and what a link leads to is somebody's; a finished copy may be a link.
links_and_pipes() {
  mkdir pipe link linked
  mkfifo "$(raw pipe).part"
  expect_code 2 fetch pipe good
  grep -q "is not a regular file" err || fail "pipe: $(cat err)"
  echo mine >link/mine
  ln -s mine "$(raw link).part"
  expect_code 2 fetch link good
  [[ $(cat link/mine) == mine ]] || fail "what a link leads to was written over"
  ln -s "$PWD/reviews.tar.gz" "$(raw linked)"
  good linked good
  passed "links and pipes"
}

user_mistakes() {
  mkdir mine
  echo mine >"$(raw mine)"
  expect_code 2 fetch mine good
  grep -q "exists and has SHA-256" err || fail "mine: $(cat err)"
  [[ $(cat "$(raw mine)") == mine ]] || fail "a file of the user's was changed"
  expect_code 2 lra data fetch text --out x/text --sha256 abc
  expect_code 2 lra data fetch nothing --out x/text
  [[ ! -e x ]] || fail "a refused command left a folder"
  # Nobody listens there.
  local task
  for task in text listops; do
    expect_code 74 lra data fetch $task --out offline/$task --quiet --url http://127.0.0.1:9/x
    grep -q "put it there under this name" err || fail "offline: $(cat err)"
  done
  passed "user mistakes"
}

stop_and_go_on() {
  local code=0
  mkdir stopped
  "$LRA_PROGRAM" data fetch text --out stopped/text --sha256 "$sum" --timeout 60 --quiet \
    --url "$base/stall%20in%20the%20body/stopped" 2>err &
  for ((i = 0; i < 100; ++i)); do
    if [[ -s $(raw stopped).part ]]; then break; fi
    sleep 0.1
  done
  kill -TERM $! 2>/dev/null || true
  wait $! || code=$?
  [[ $code == 3 ]] || fail "a stopped download ended with $code: $(cat err)"
  [[ -s $(raw stopped).part ]] || fail "what had arrived was thrown away"
  good stopped good
  passed "stop and go on"
}

two_at_once() {
  fetch both good >/dev/null 2>err1 &
  local first=$! code=0
  fetch both good >/dev/null 2>err2 || code=$?
  wait $first || code=$((code + $?))
  same_files reviews.tar.gz "$(raw both)"
  [[ $code == 0 || $code == 2 ]] || fail "two at once: codes add to $code"
  passed "two at once"
}

complete_downloads
resume_asks_for_the_rest
hostile_servers
bounded_size
user_mistakes
links_and_pipes
stop_and_go_on
two_at_once
