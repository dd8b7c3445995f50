#include "data/fetch.h"

#include <filesystem>
#include <span>

#include "base/error.h"
#include "base/quoted.h"
#include "data/files.h"
#include "data/new_folder.h"
#include "data/tar_archive.h"
#include "io/atomic_file.h"
#include "io/download.h"

namespace lra {
namespace {

// Above the contents of the benchmark's archive: 16 folders of Pathfinder images, 1.6 million
// files.
constexpr TarArchive::Limits kReleaseLimits = {
    .entries = 8000000, .entry_bytes = int64_t{8} << 30, .total_bytes = int64_t{128} << 30};

// A copy with its own digest may be this many times as large as the published file.
constexpr int64_t kMaxRepacked = 8;

// The part of a path behind "folder/", for a path with these components, or nothing.
std::string below(const std::string& path, const std::string& folder) {
  const std::string inner = "/" + path;
  const size_t at = inner.find("/" + folder + "/");
  return at == std::string::npos ? "" : inner.substr(at + folder.size() + 2);
}

// One file of the archive. Two entries with the same path are refused, because readers would
// disagree on which one counts.
void unpack_file(TarArchive& tar, const std::string& archive, const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (is_there(path) || !is_folder(folder)) {
    if (failed && failed != std::errc::not_a_directory && failed != std::errc::file_exists) {
      throw io_error(folder.string(), "the folder cannot be made", failed.value());
    }
    throw Error({.where = archive,
                 .what = "entry " + in_quotes(tar.name(), 100) + " is in the place of another one",
                 .expected = "the archive of the Long Range Arena",
                 .advice = "remove it and fetch it again"});
  }
  tar.write_to(path);
}

void unpack_to(const std::string& archive, const std::string& folder, const std::string& out) {
  TarArchive tar(archive, "the archive of the Long Range Arena", kReleaseLimits);
  int64_t files = 0;
  while (tar.next()) {
    const std::string name = below(tar.name(), folder);
    if (!tar.is_file() || name.empty()) continue;
    unpack_file(tar, archive, out + "/" + name);
    ++files;
  }
  if (files > 0) return;
  throw Error({.where = archive,
               .what = "has no folder '" + folder + "'",
               .expected = "the archive of the Long Range Arena",
               .advice = "remove it and fetch it again"});
}

// Says in an unpacked folder which archive it is of.
constexpr const char* kStampFile = ".lra_archive";

std::string stamp_of(const std::string& archive) {
  namespace fs = std::filesystem;
  std::error_code unreadable;  // unpacking will say so
  return std::to_string(fs::file_size(archive, unreadable)) + " " +
         std::to_string(fs::last_write_time(archive, unreadable).time_since_epoch().count()) + "\n";
}

void refuse_other_archive(const std::string& target, const std::string& archive) {
  const std::string path = target + "/" + kStampFile;
  constexpr uint64_t kMaxBytes = 100;
  if (is_file(path) && read_file(path, kMaxBytes) == stamp_of(archive)) return;
  throw Error({.where = target,
               .what = "was not unpacked from " + archive + " as it is now",
               .expected = "its folder, or nothing",
               .advice = "remove it, and run the same command again"});
}

}  // namespace

std::string unpack_folder(const std::string& archive, const std::string& folder,
                          const std::string& out) {
  const std::string target = out + "/" + std::filesystem::path(folder).filename().string();
  if (is_there(target)) {
    refuse_other_archive(target, archive);
    return target;
  }
  write_new_folder(target, [&](const std::string& partial) {
    const std::string stamp = stamp_of(archive);
    unpack_to(archive, folder, partial);
    NewFile(partial + "/" + kStampFile).append(std::as_bytes(std::span(stamp)));
  });
  return target;
}

std::string fetch(const RemoteData& remote, const FetchOptions& options, Progress& progress) {
  Download what;
  what.path = options.folder + "/" + std::string(remote.file);
  what.urls = options.urls;
  what.sha256 = options.sha256;
  what.connect_timeout_s = what.stall_timeout_s = options.timeout_s;
  if (what.urls.empty()) {
    for (const std::string_view url : remote.urls) {
      if (!url.empty()) what.urls.emplace_back(url);
    }
  }
  if (what.sha256.empty()) {
    what.bytes = remote.bytes;
    what.md5 = remote.md5;
    what.sha256 = remote.sha256;
  } else if (remote.bytes > 0) {
    // Other copies may be packed differently, and an endless response must be cut somewhere.
    what.max_bytes = kMaxRepacked * remote.bytes;
  }
  make_folder(options.folder);
  download(what, progress);
  if (remote.unpack.empty()) return what.path;
  // The name differs from that of the prepared folder, which goes next to the archive and may have
  // its name, and from that of a folder that one would unpack by hand.
  return unpack_folder(what.path, std::string(remote.unpack), what.path + ".unpacked");
}

}  // namespace lra
