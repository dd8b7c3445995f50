#!/usr/bin/env bash
# What needs no tensors is answered without LibTorch; what does, says what is missing.
root=$PWD
source "$(dirname "${BASH_SOURCE[0]}")/lib.bash"

# maps_libtorch CODE WORD...: whether "lra WORD...", which must end with CODE, loads LibTorch.
maps_libtorch() {
  local wanted=$1 code=0
  shift
  LD_DEBUG=files LD_DEBUG_OUTPUT=trace "$LRA_PROGRAM" "$@" >out 2>err || code=$?
  [[ $code == "$wanted" ]] || fail "'lra $*' ended with $code, not $wanted: $(tail -n 5 out err)"
  local found=1
  grep -q libtorch trace.* && found=0
  rm -f trace.*
  return $found
}

answered_alone() {
  maps_libtorch "$@" && fail "'lra ${*:2}' loads LibTorch"
  return 0
}

maps_libtorch 0 info || fail "'lra info' does not load LibTorch, or this test cannot see it"
answered_alone 0
answered_alone 0 --version
answered_alone 0 --help
for topic in tasks models presets; do answered_alone 0 list $topic; done
for topic in listops s4d train train.steps; do answered_alone 0 help $topic; done
answered_alone 0 completion
mkdir runs
answered_alone 0 data import text --help
answered_alone 0 suite status "$root/configs/suites/laptop.toml"
passed "lists, help and tables without LibTorch"

answered_alone 2 trian
answered_alone 2 train listops transformer --sede 3
answered_alone 2 train listopps transformer
answered_alone 2 train listops transfomer
answered_alone 2 train listops transformer --preset smal
answered_alone 2 train listops transformer --set train.stepz=3
answered_alone 2 train listops s4d --set mixer.states=0
answered_alone 2 train listops s4d --device gpu
answered_alone 2 train --resume runs
answered_alone 2 eval runs
answered_alone 2 export runs --out exported
answered_alone 2 analyze span runs
answered_alone 2 reproduce runs
answered_alone 2 bench --models transfomer
answered_alone 2 model compare listops transfomer
answered_alone 2 mixer run transfomer --in x.safetensors --out y.safetensors
answered_alone 2 suite run missing.toml
answered_alone 2 tune listops transformer --set train.learning_rat=1e-3,1e-4
passed "refusals without LibTorch"

cp "$LRA_PROGRAM" alone
expect_code 2 ./alone info
grep -q "^lra: .*/liblra_python.so: cannot be loaded" err || fail "without its library: $(cat err)"
[[ $(wc -l <err) == 1 && ! -s out ]] || fail "without its library: $(cat out err)"
if command -v c++ >/dev/null; then
  echo 'int lra_library_run() { return 0; } const char* lra_library_revision() { return "0"; }' |
    c++ -shared -fPIC -x c - -o liblra_python.so
  expect_code 2 ./alone info
  grep -q "liblra_python.so: is of another revision" err || fail "with another library: $(cat err)"
fi
passed "a library that is missing or of another revision"
