# Packages that a build needs from the system, by their names there. Read by tools/setup.
#
# Every row: what is looked for (a command, a Python module or a header), then its package in Debian
# and Ubuntu, Fedora and its relatives, Arch Linux, and openSUSE; a dash where the system has none.
needs=(
  "command cmake | cmake | cmake | cmake | cmake"
  "command ninja | ninja-build | ninja-build | ninja | ninja"
  "command g++ | g++ | gcc-c++ | gcc | gcc-c++"
  "command pkg-config | pkg-config | pkgconf-pkg-config | pkgconf | pkgconf-pkg-config"
  "command python3 | python3 | python3 | python | python3"
  "module ensurepip | python3-venv | python3 | python | python3"
  "header CLI/CLI.hpp | libcli11-dev | cli11-devel | cli11 | cli11-devel"
  "header toml++/toml.h | libtomlplusplus-dev | tomlplusplus-devel | tomlplusplus | tomlplusplus-devel"
  "header nlohmann/json.hpp | nlohmann-json3-dev | json-devel | nlohmann-json | nlohmann_json-devel"
  "header archive.h | libarchive-dev | libarchive-devel | libarchive | libarchive-devel"
  "header xxhash.h | libxxhash-dev | xxhash-devel | xxhash | xxhash-devel"
  "header png.h | libpng-dev | libpng-devel | libpng | libpng16-devel"
  "header zlib.h | zlib1g-dev | zlib-devel | zlib | zlib-devel"
  "header curl/curl.h | libcurl4-openssl-dev | libcurl-devel | curl | libcurl-devel"
  "header openssl/evp.h | libssl-dev | openssl-devel | openssl | libopenssl-devel"
  "header gtest/gtest.h | libgtest-dev | gtest-devel | gtest | gtest"
  "header gmock/gmock.h | libgmock-dev | gmock-devel | gtest | gmock"
  "header rapidcheck.h | librapidcheck-dev | rapidcheck-devel | - | -"
  "header benchmark/benchmark.h | libbenchmark-dev | google-benchmark-devel | benchmark | benchmark-devel"
  "header gloo/context.h | libgloo-dev | gloo-devel | - | -"
)
# Good to have: a faster second build, the revision in run records, the check of the formatting, the
# traces of tests/faults/durable_files.py. Installed if possible; their absence stops nothing.
extras=(ccache ccache git git clang-format-14 clang-format-14 strace strace)

test_extras=(
  munge munged slurm-client sbatch slurmctld slurmctld slurmd slurmd chromium chromium
  nodejs node npm npm g++-aarch64-linux-gnu aarch64-linux-gnu-g++ qemu-user qemu-aarch64
)

# The oldest compilers, CMake and Python that can build this.
oldest_gxx=11 oldest_clang=14 oldest_cmake=3.22 oldest_python=3.10

# column SYSTEM: the column of `needs` with the names of SYSTEM, as in os-release's ID; 0 for others.
column() {
  case $1 in
    debian | ubuntu) echo 2 ;;
    fedora | rhel | centos | rocky | almalinux) echo 3 ;;
    arch) echo 4 ;;
    suse | opensuse | opensuse-* | sles) echo 5 ;;
    *) echo 0 ;;
  esac
}

# system_of FILE: the first of an os-release file's ID and ID_LIKE whose names are known, or its ID.
system_of() (
  ID=linux ID_LIKE=""
  if [[ -r $1 ]]; then source "$1"; fi
  for system in $ID $ID_LIKE; do
    if [[ $(column "$system") != 0 ]]; then
      echo "$system"
      return
    fi
  done
  echo "$ID"
)

# install_command SYSTEM: what its administrator types before the names of packages.
install_command() {
  case $(column "$1") in
    2) echo "apt-get install" ;;
    3) echo "dnf install" ;;
    4) echo "pacman -S --needed" ;;
    5) echo "zypper install" ;;
  esac
}

# names_on SYSTEM: for each row of `needs` on standard input the package on SYSTEM, once each.
names_on() {
  awk -F ' *[|] *' -v column="$(column "$1")" 'column && $column != "-" && !seen[$column]++ { print $column }'
}

# without_package SYSTEM: what the rows on standard input look for and SYSTEM has no package of.
without_package() {
  awk -F ' *[|] *' -v column="$(column "$1")" '!column || $column == "-" { print $1 }'
}

# missing_commands PACKAGE COMMAND...: the package of each command that is not there.
missing_commands() {
  local PATH=$PATH:/usr/sbin:/sbin
  while [[ $# -gt 0 ]]; do
    command -v "$2" >/dev/null || echo "$1"
    shift 2
  done
}

# missing_needs COMPILER MODULES: the rows of `needs` that are not there. One run of the preprocessor
# looks for all headers. MODULES are Python's that matter.
missing_needs() {
  local row kind name headers=""
  for row in "${needs[@]}"; do
    read -r kind name _ <<<"$row"
    case $kind in
      command)
        if [[ $name == g++ ]]; then name=$1; fi
        command -v "$name" >/dev/null || echo "$row"
        ;;
      module) [[ " $2 " != *" $name "* ]] || python3 -c "import $name" 2>/dev/null || echo "$row" ;;
      header) headers+=$(printf '#if !__has_include(<%s>)\n%s\n#endif\n' "$name" "$row")$'\n' ;;
    esac
  done
  if command -v "$1" >/dev/null; then
    "$1" -E -P -x c++ - <<<"$headers"
  else
    grep -v '^#' <<<"$headers" | sed '/^$/d'
  fi
}

# is_older VERSION OLDEST
is_older() { [[ $1 != "$2" && $(printf '%s\n' "$1" "$2" | sort -V | head -n 1) == "$1" ]]; }

# too_old COMPILER: a line for each tool that is there and cannot build this.
too_old() {
  local version kind
  if version=$("$1" -dumpversion 2>/dev/null); then
    kind=g++
    if "$1" -dM -E -x c++ /dev/null | grep -q __clang__; then kind=clang; fi
    local oldest=$oldest_gxx
    if [[ $kind == clang ]]; then oldest=$oldest_clang; fi
    if is_older "$version" "$oldest"; then
      echo "$1 is version $version; needed is $kind $oldest or newer (set CXX to name another compiler)"
    fi
  fi
  if version=$(cmake --version 2>/dev/null | awk 'NR == 1 { print $3 }') && is_older "$version" "$oldest_cmake"; then
    echo "cmake is version $version; needed is $oldest_cmake or newer (pip install cmake has one)"
  fi
}
