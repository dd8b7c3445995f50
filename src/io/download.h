// Downloads one file over HTTP or HTTPS with libcurl, resumes an earlier call's download, and
// returns only files that match their digest.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/progress.h"

namespace lra {

struct Download {
  std::vector<std::string> urls;          // mirrors, tried in turn
  std::string path;                       // path of the file
  int64_t bytes = 0;                      // its size; 0: not known
  std::string md5, sha256;                // lower-case hex; empty: not known
  int64_t max_bytes = int64_t{64} << 30;  // limit if the size is not known
  int attempts = 3;                       // for each mirror, while it answers at all
  double connect_timeout_s = 30;
  double stall_timeout_s = 30;  // with less than 1 KiB a second
};

// Bytes arrive in path.part, which is kept if the transfer breaks off; the finished file is
// flushed, compared and renamed. Without a digest a mirror does not resume another one's transfer.
// A file that exists already is compared and kept. The progress counts bytes. Redirects are
// followed five times, to http and https only.
//
// Throws lra::Error: exit code 74 if no mirror gives the file (the message lists the reasons, and
// where to put your own copy), or the disk is full; 2 if the existing file has another digest or is
// not a file, or path.part is a link or not a file; 3 when a stop was requested.
void download(const Download& what, Progress& progress);

}  // namespace lra
