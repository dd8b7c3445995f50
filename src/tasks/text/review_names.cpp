#include "tasks/text/review_names.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/parsed_number.h"

namespace lra::tasks {
namespace {

// A plain decimal number of 1 to 9 digits without leading zeros: the text is that of the number.
bool parse_number(std::string_view text, int64_t& number) {
  if (text.empty() || text.size() > 9 || (text.size() > 1 && text[0] == '0')) return false;
  const auto found = parsed_number<uint32_t>(text);
  number = found.value_or(0);
  return found.has_value();
}

// Takes "/name" off the end of a path.
std::string_view take_last(std::string_view& path) {
  const size_t slash = path.rfind('/');
  const std::string_view last = slash == std::string_view::npos ? path : path.substr(slash + 1);
  path = slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
  return last;
}

bool parse_choice(std::string_view text, const std::array<const char*, 2>& choices, int& choice) {
  const auto* const found = std::find(choices.begin(), choices.end(), text);
  choice = static_cast<int>(found - choices.begin());
  return found != choices.end();
}

}  // namespace

std::string review_path(const ReviewKey& key) {
  return std::string(kReviewSplits[static_cast<size_t>(key.split)]) + "/" +
         kReviewLabels[static_cast<size_t>(key.label)] + "/" + std::to_string(key.id) + "_" +
         std::to_string(key.rating) + ".txt";
}

bool is_in_review_folder(std::string_view path) {
  int unused = 0;
  (void)take_last(path);
  return parse_choice(take_last(path), kReviewLabels, unused) &&
         parse_choice(take_last(path), kReviewSplits, unused);
}

void refuse_review_name(const std::string& where) {
  throw Error({.where = where,
               .what = "is not the name of a review",
               .expected = "<id>_<rating>.txt",
               .advice = "rename it, or move it away"});
}

bool parse_review_path(std::string_view path, ReviewKey& key) {
  std::string_view name = take_last(path);
  if (!name.ends_with(".txt")) return false;
  name.remove_suffix(4);
  const size_t underscore = name.find('_');
  return underscore != std::string_view::npos && parse_number(name.substr(0, underscore), key.id) &&
         parse_number(name.substr(underscore + 1), key.rating) &&
         parse_choice(take_last(path), kReviewLabels, key.label) &&
         parse_choice(take_last(path), kReviewSplits, key.split);
}

}  // namespace lra::tasks
