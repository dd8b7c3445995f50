#include "checks/text_traits.h"

#include <algorithm>

namespace lra::checks {
namespace {

constexpr double kNever = 2;  // a share that nothing exceeds
constexpr std::string_view kSpace = " \t\r\n\v\f";

bool is_bytes_literal(std::string_view text) {
  return text.size() > 2 && text[0] == 'b' && (text[1] == '\'' || text[1] == '"') &&
         text.back() == text[1];
}

bool is_base64(std::string_view text) {
  const std::string_view content = text.substr(0, text.find_last_not_of('=') + 1);
  const auto any = [&](char low, char high) {
    return std::ranges::any_of(content, [=](char c) { return c >= low && c <= high; });
  };
  return text.size() >= 40 && text.size() % 4 == 0 && any('a', 'z') && any('A', 'Z') &&
         any('0', '9') &&
         content.find_first_not_of(
             "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") == content.npos;
}

// No white space, a folder, and an extension of at most five letters.
bool is_file_name(std::string_view text) {
  const size_t dot = text.rfind('.'), separator = text.find_last_of("/\\");
  return separator != text.npos && dot != text.npos && dot > separator && text.size() - dot <= 6 &&
         text.find_first_of(kSpace) == text.npos;
}

bool is_numbers(std::string_view text) {
  return text.size() >= 8 && text.find_first_not_of("0123456789 ,;.\t[]") == text.npos;
}

}  // namespace

const std::array<TextTrait, kNumTextTraits> kTextTraits = {
    {{"hold characters that could not be decoded (U+FFFD)", 0.2, false,
      [](std::string_view text) { return text.find("\uFFFD") != text.npos; }},
     {"are written as Python writes bytes (b'...'): were they decoded?", 0.5, false,
      is_bytes_literal},
     {"have the form of base64: were they decoded?", 0.9, false, is_base64},
     {"are names of files: were their contents meant?", 0.9, false, is_file_name},
     {"are numbers: are they ids of words?", 0.9, false, is_numbers},
     {"begin with white space", kNever, true,
      [](std::string_view text) { return !text.empty() && kSpace.find(text[0]) != kSpace.npos; }},
     {"end in white space", kNever, true,
      [](std::string_view text) {
        return !text.empty() && kSpace.find(text.back()) != kSpace.npos;
      }},
     {"hold a carriage return", kNever, true,
      [](std::string_view text) { return text.find('\r') != text.npos; }}}};

}  // namespace lra::checks
