// Errors and exit codes of the whole program.
//
// Mistakes of the user (a bad file, flag or config, a full disk) are lra::Error: one line that says
// where, what, what was expected and what to do. Only main catches it. Bugs are failed LRA_CHECKs:
// they stay on in release builds, print both values and end with exit code 70.
//
// Goals of the room `base`: what every room needs and the standard library lacks, without files,
// formats or tensors; the same result on every machine. Non-goals: a utility for a single caller,
// wrappers around the standard library.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace lra {

enum class ExitCode : int {
  kDone = 0,
  kUserError = 2,  // the user's mistake, or bad data
  kStopped = 3,    // stopped by a signal with everything saved
  kDiverged = 4,   // the loss became NaN or infinite
  kOurBug = 70,
  kIoError = 74,  // input/output failure, or another process of the run was lost
};

// The parts of a message. Empty parts are left out.
struct ErrorParts {
  std::string where = {};     // "data/text.tsv:17" or "--threads"
  std::string what = {};      // "label is 'x'"
  std::string expected = {};  // "0 or 1"
  std::string advice = {};    // "run lra data check text"
  ExitCode code = ExitCode::kUserError;
};

// what() is "where: what; expected ...; advice", always one line.
class Error : public std::runtime_error {
 public:
  explicit Error(const ErrorParts& parts);
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

// A failed LRA_CHECK: our bug, not the user's.
class CheckFailure : public std::logic_error {
  using std::logic_error::logic_error;
};

// "where: what: strerror(errno_value)", with exit code 74; for a file above the limit on the size
// of files (EFBIG), which the user sets, with 2.
Error io_error(const std::string& where, const std::string& what, int errno_value);

[[noreturn]] void check_failed(const char* file, int line, const std::string& message);

template <typename A, typename B>
[[noreturn]] void check_op_failed(const char* file, int line, const char* text, const A& a,
                                  const B& b) {
  std::ostringstream out;
  out << text << " (" << a << " vs " << b << ")";
  check_failed(file, line, out.str());
}

}  // namespace lra

#define LRA_CHECK(condition)                                               \
  do {                                                                     \
    if (!(condition)) ::lra::check_failed(__FILE__, __LINE__, #condition); \
  } while (false)

#define LRA_CHECK_OP(a, op, b)                                                                 \
  do {                                                                                         \
    const auto& lra_check_a = (a);                                                             \
    const auto& lra_check_b = (b);                                                             \
    if (!(lra_check_a op lra_check_b))                                                         \
      ::lra::check_op_failed(__FILE__, __LINE__, #a " " #op " " #b, lra_check_a, lra_check_b); \
  } while (false)

#define LRA_CHECK_EQ(a, b) LRA_CHECK_OP(a, ==, b)
#define LRA_CHECK_LE(a, b) LRA_CHECK_OP(a, <=, b)
#define LRA_CHECK_LT(a, b) LRA_CHECK_OP(a, <, b)
#define LRA_CHECK_GE(a, b) LRA_CHECK_OP(a, >=, b)
#define LRA_CHECK_GT(a, b) LRA_CHECK_OP(a, >, b)
