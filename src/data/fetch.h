// Brings a task's published raw data to this machine.
#pragma once

#include <string>
#include <vector>

#include "data/remote_data.h"
#include "io/progress.h"

namespace lra {

struct FetchOptions {
  std::string folder;             // of the raw file and its unpacked contents
  std::vector<std::string> urls;  // instead of the published ones
  std::string sha256;             // instead of the published digests
  double timeout_s = 30;          // without a connection, or without a byte
};

// Downloads `remote` into options.folder, unless it is there complete, and unpacks the part that is
// wanted. Returns the argument for Task::import. Throws as download() and TarArchive do.
std::string fetch(const RemoteData& remote, const FetchOptions& options, Progress& progress);

// Unpacks the files below the folders of a tar archive whose path ends in `folder`, "data" or
// "inner/data", to out/data; returns that path. A folder appears under its name only when complete,
// and names its archive in .lra_archive. An existing one is kept; throws, exit code 2, if it comes
// from another archive, judged by size and time.
std::string unpack_folder(const std::string& archive, const std::string& folder,
                          const std::string& out);

}  // namespace lra
