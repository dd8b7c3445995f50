// A published copy of raw data, which `lra data fetch` brings to this machine.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace lra {

struct RemoteData {
  std::string_view file;                   // its name on our disk
  std::array<std::string_view, 2> urls;    // the second may be empty
  int64_t bytes = 0;                       // 0: not published
  std::string_view md5 = {}, sha256 = {};  // lower-case hex; empty: not published
  // A tar archive of much else: only the folder with this path, or with a path that ends so, is
  // unpacked, and then imported. Empty: import reads the file itself.
  std::string_view unpack = {};
};

// The benchmark's own archive, 7.7 GB: reported to answer 403 since 2026; its authors print no
// digest. It contains an unpacked copy of itself; files in both are taken from the inner one (the
// outer pathfinder128 cannot be learned), "lra_release/lra_release/...".
constexpr RemoteData lra_release(std::string_view folder) {
  return {.file = "lra_release.gz",
          .urls = {"https://storage.googleapis.com/long-range-arena/lra_release.gz"},
          .unpack = folder};
}

}  // namespace lra
