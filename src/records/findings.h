// Contradictions in a record, one line each.
#pragma once

#include <string>
#include <vector>

namespace lra {

class Findings {
 public:
  // `says`: whose word stands against the record's.
  explicit Findings(std::string says = "expected") : says_(std::move(says)) {}

  void expect(bool holds, const std::string& finding) {
    if (!holds) lines_.push_back(finding);
  }
  void expect_equal(const std::string& what, const std::string& recorded,
                    const std::string& other) {
    expect(recorded == other, what + " is " + recorded + "; " + says_ + " " + other);
  }
  void expect_equal(const std::string& what, int64_t recorded, int64_t other) {
    expect_equal(what, std::to_string(recorded), std::to_string(other));
  }
  void expect_equal(const std::string& what, bool recorded, bool other) {
    expect_equal(what, std::string(recorded ? "true" : "false"), other ? "true" : "false");
  }
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::string says_;
  std::vector<std::string> lines_;
};

}  // namespace lra
