#include "io/download.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <memory>
#include <thread>

#include "base/error.h"
#include "base/stop_flag.h"
#include "base/text_format.h"
#include "io/atomic_file.h"
#include "io/digest.h"
#include "io/lock_file.h"

namespace lra {
namespace {

constexpr long kMaxRedirects = 5;
constexpr long kSlowestBytesPerSecond = 1024;  // slower than that is a stall

// The reason why one transfer ended.
enum class Outcome { kComplete, kBroken, kRefused, kNotResumed };

struct Attempt {
  Outcome outcome = Outcome::kBroken;
  std::string reason;
};

// -1 when there is no such file.
int64_t size_of(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? static_cast<int64_t>(info.st_size) : -1;
}

// The .part file and what has been written to it.
class PartFile {
 public:
  explicit PartFile(const std::string& path) : path_(path) {
    fd_ = open_file(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd_ < 0) throw io_error(path, "cannot be created", errno);
    size_ = ::lseek(fd_, 0, SEEK_END);
  }
  ~PartFile() { ::close(fd_); }
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  int64_t size() const { return size_; }

  void restart() {
    if (::ftruncate(fd_, 0) != 0 || ::lseek(fd_, 0, SEEK_SET) != 0) {
      throw io_error(path_, "cannot be emptied", errno);
    }
    size_ = 0;
  }
  // 0, or errno.
  int append(std::span<const std::byte> data) {
    const int problem = write_all(fd_, data);
    if (problem == 0) size_ += static_cast<int64_t>(data.size());
    return problem;
  }
  void flush() const {
    if (const int problem = sync_file(fd_)) throw io_error(path_, "cannot be flushed", problem);
  }

 private:
  std::string path_;
  int fd_ = -1;
  int64_t size_ = 0;
};

// True if a file assembled from two answers would be detected.
bool has_digest(const Download& what) { return !what.md5.empty() || !what.sha256.empty(); }

// The functions of libcurl. It is looked for at the first download: nothing else needs it, and a
// wheel leaves it to the system, which keeps its TLS up to date.
struct Curl {
  Curl() {
    void* library = ::dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      throw Error({.where = "libcurl.so.4",
                   .what = "is not installed; downloads need it",
                   .advice = "install libcurl, or download the file yourself and import it: lra "
                             "help data import"});
    }
    const auto find = [&]<typename F>(F& function, const char* name) {
      function = reinterpret_cast<F>(::dlsym(library, name));
      LRA_CHECK(function != nullptr);
    };
    find(init, "curl_easy_init");
    find(setopt, "curl_easy_setopt");
    find(perform, "curl_easy_perform");
    find(getinfo, "curl_easy_getinfo");
    find(cleanup, "curl_easy_cleanup");
    find(strerror, "curl_easy_strerror");
  }
  decltype(&::curl_easy_init) init;
  decltype(&::curl_easy_setopt) setopt;
  decltype(&::curl_easy_perform) perform;
  decltype(&::curl_easy_getinfo) getinfo;
  decltype(&::curl_easy_cleanup) cleanup;
  decltype(&::curl_easy_strerror) strerror;
};

const Curl& curl() {
  static const Curl functions;
  return functions;
}

// One request: for what the part file lacks.
class Transfer {
 public:
  Transfer(const Download& what, PartFile& part, Progress& progress)
      : what_(what), part_(part), progress_(progress), curl_(curl().init()), begun_(part.size()) {
    LRA_CHECK(curl_ != nullptr);
  }

  Attempt run(const std::string& url) {
    set_options(url);
    const CURLcode code = curl().perform(curl_.get());
    if (stop_requested()) {
      throw Error({.where = what_.path,
                   .what = "stopped by a signal; the partial download is kept",
                   .advice = "re-run the same command to resume",
                   .code = ExitCode::kStopped});
    }
    if (disk_errno_ != 0) throw io_error(what_.path + ".part", "cannot be written", disk_errno_);
    if (!refusal_.empty()) return {Outcome::kRefused, refusal_};
    return judge(code);
  }

 private:
  struct Free {
    void operator()(CURL* handle) const { curl().cleanup(handle); }
  };

  template <typename T>
  void set(CURLoption option, T value) {
    LRA_CHECK_EQ(static_cast<int>(curl().setopt(curl_.get(), option, value)),
                 static_cast<int>(CURLE_OK));
  }

  void set_options(const std::string& url) {
    set(CURLOPT_URL, url.c_str());
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_FAILONERROR, 1L);
    set(CURLOPT_FOLLOWLOCATION, 1L);
    set(CURLOPT_MAXREDIRS, kMaxRedirects);
#if LIBCURL_VERSION_NUM >= 0x075500
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
#else
    set(CURLOPT_PROTOCOLS, static_cast<long>(CURLPROTO_HTTP | CURLPROTO_HTTPS));
    set(CURLOPT_REDIR_PROTOCOLS, static_cast<long>(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
    set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(what_.connect_timeout_s * 1000));
    set(CURLOPT_LOW_SPEED_LIMIT, kSlowestBytesPerSecond);
    set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(std::ceil(what_.stall_timeout_s)));
    set(CURLOPT_USERAGENT, "lra");
    set(CURLOPT_WRITEFUNCTION, &Transfer::on_data);
    set(CURLOPT_WRITEDATA, this);
    set(CURLOPT_NOPROGRESS, 0L);
    set(CURLOPT_XFERINFOFUNCTION, &Transfer::on_progress);
    set(CURLOPT_RESUME_FROM_LARGE, static_cast<curl_off_t>(begun_));
  }

  // Libcurl is C: an exception must not pass through it, so callbacks only note what went wrong.
  static size_t on_data(char* data, size_t, size_t count, void* self) {
    return static_cast<Transfer*>(self)->take({data, count}) ? count : CURL_WRITEFUNC_ERROR;
  }
  static int on_progress(void*, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    return stop_requested() ? 1 : 0;
  }

  long status() const {
    long status = 0;
    curl().getinfo(curl_.get(), CURLINFO_RESPONSE_CODE, &status);
    return status;
  }

  bool take(std::string_view data) {
    if (status() == 206 && begun_ == 0) return refuse("sends another part than requested");
    if (status() != 200 && status() != 206) return refuse("answers " + std::to_string(status()));
    const int64_t most = what_.bytes > 0 ? what_.bytes : what_.max_bytes;
    if (part_.size() + static_cast<int64_t>(data.size()) > most) {
      return refuse("sends more than " + thousands(most) + " bytes");
    }
    disk_errno_ = part_.append(std::as_bytes(std::span(data.data(), data.size())));
    progress_.update(static_cast<int64_t>(data.size()));
    return disk_errno_ == 0;
  }

  bool refuse(const std::string& reason) {
    refusal_ = reason;
    return false;
  }

  Attempt judge(CURLcode code) {
    // No bytes after those we have: the digest or size says whether they are the file.
    if (status() == 416 && begun_ > 0 && (has_digest(what_) || what_.bytes > 0)) {
      return {Outcome::kComplete, ""};
    }
    // Or the server sends the whole file, or another part than the one that is missing; or all of
    // a file that libcurl takes for the one begun, by its length alone.
    const bool is_by_length = code == CURLE_OK && status() == 200 && !has_digest(what_);
    if (begun_ > 0 && (code == CURLE_RANGE_ERROR || is_by_length || status() == 416)) {
      progress_.update(-part_.size());
      part_.restart();
      return {Outcome::kNotResumed, "does not send the rest of the file"};
    }
    const bool is_done = status() == 200 || status() == 206;
    if (code == CURLE_HTTP_RETURNED_ERROR || (code == CURLE_OK && !is_done)) {
      return {status() >= 500 ? Outcome::kBroken : Outcome::kRefused,
              "answers " + std::to_string(status())};
    }
    if (code != CURLE_OK) {
      const bool hopeless = code == CURLE_TOO_MANY_REDIRECTS ||
                            code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_URL_MALFORMAT ||
                            code == CURLE_COULDNT_RESOLVE_HOST;
      return {hopeless ? Outcome::kRefused : Outcome::kBroken, curl().strerror(code)};
    }
    if (part_.size() == 0) return {Outcome::kBroken, "sends nothing"};
    if (part_.size() < what_.bytes) {
      return {Outcome::kBroken,
              "ends after " + thousands(part_.size()) + " of " + thousands(what_.bytes) + " bytes"};
    }
    return {Outcome::kComplete, ""};
  }

  const Download& what_;
  PartFile& part_;
  Progress& progress_;
  std::unique_ptr<CURL, Free> curl_;
  const int64_t begun_;
  std::string refusal_;
  int disk_errno_ = 0;
};

// Empty, or how the file differs from the published one.
std::string mismatch(const Download& what, const std::string& path) {
  if (what.bytes > 0 && size_of(path) != what.bytes) {
    return "has " + thousands(size_of(path)) + " bytes, not " + thousands(what.bytes);
  }
  const auto differs = [&](DigestKind kind, const char* name, const std::string& wanted) {
    const std::string found = wanted.empty() ? "" : digest_file(kind, path);
    return found == wanted ? "" : "has " + std::string(name) + " " + found + ", not " + wanted;
  };
  const std::string sha256 = differs(DigestKind::kSha256, "SHA-256", what.sha256);
  return sha256.empty() ? differs(DigestKind::kMd5, "MD5", what.md5) : sha256;
}

// Waits a little longer after each broken attempt, and not at all once a stop is requested.
void pause_before(int attempt) {
  for (int tenths = 0; tenths < 5 << attempt && !stop_requested(); ++tenths) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

// Empty if the part file is complete and correct; else the reason why this mirror failed. Unless it
// may resume, its bytes replace those of another mirror.
std::string try_mirror(const Download& what, const std::string& url, bool may_resume,
                       Progress& progress) {
  const std::string path = what.path + ".part";
  Attempt attempt;
  for (int n = 0; n < what.attempts; ++n) {
    if (n > 0) pause_before(n);
    PartFile part(path);
    const auto restart = [&] {
      progress.update(-part.size());
      part.restart();
    };
    if (n == 0 && !may_resume) restart();
    attempt = Transfer(what, part, progress).run(url);
    if (attempt.outcome == Outcome::kRefused) break;
    if (attempt.outcome == Outcome::kNotResumed) --n;  // the next one begins with nothing
    if (attempt.outcome != Outcome::kComplete) continue;
    part.flush();
    const std::string problem = mismatch(what, path);
    if (problem.empty()) return "";
    // A resumed file may mix two versions: once more from the start.
    restart();
    attempt.reason = "the file it sent " + problem;
  }
  return attempt.reason;
}

void check_space(const Download& what, int64_t begun) {
  const uint64_t free = free_bytes(folder_of(what.path));
  const auto needed = static_cast<uint64_t>(std::max<int64_t>(0, what.bytes - begun));
  if (needed <= free) return;
  throw Error({.where = what.path,
               .what = "needs " + thousands(static_cast<int64_t>(needed)) + " bytes; " +
                       thousands(static_cast<int64_t>(free)) + " are free",
               .advice = "make room or choose another folder",
               .code = ExitCode::kIoError});
}

bool is_there(const Download& what) {
  if (size_of(what.path) < 0) return false;
  const std::string problem = mismatch(what, what.path);
  if (problem.empty()) return true;
  throw Error({.where = what.path,
               .what = "exists and " + problem,
               .expected = "the published file",
               .advice = "remove it, or import it as it is"});
}

// A pipe would block forever, and the target of a link must not be overwritten: only the file
// itself, which is never written to, may be a link.
void refuse_special(const std::string& path, bool may_be_link) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode)) return;
  if (may_be_link && ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode)) return;
  throw Error({.where = path,
               .what = S_ISLNK(info.st_mode) ? "is a link" : "is not a regular file",
               .expected = "a file, or nothing",
               .advice = "move it away, or choose another folder"});
}

}  // namespace

void download(const Download& what, Progress& progress) {
  LRA_CHECK(!what.urls.empty());
  refuse_special(what.path, true);
  refuse_special(what.path + ".part", false);
  const FileLock lock(what.path + ".lra.lock", "the download of " + what.path,
                      FileLock::AtEnd::kRemoved);
  if (is_there(what)) return;
  const int64_t begun = std::max<int64_t>(0, size_of(what.path + ".part"));
  check_space(what, begun);
  progress.update(begun);
  std::string reasons;
  for (const std::string& url : what.urls) {
    const bool may_resume = reasons.empty() || has_digest(what);
    const std::string reason = try_mirror(what, url, may_resume, progress);
    if (reason.empty()) return move_into_place(what.path + ".part", what.path);
    reasons += (reasons.empty() ? "" : "; ") + printable(url) + ": " + reason;
  }
  // An empty part file is of no use to a resume and is removed.
  if (size_of(what.path + ".part") == 0) ::unlink((what.path + ".part").c_str());
  throw Error({.where = what.path,
               .what = "could not be downloaded (" + reasons + ")",
               .advice = "get the file another way and put it there under this name, then re-run "
                         "the same command",
               .code = ExitCode::kIoError});
}

}  // namespace lra
