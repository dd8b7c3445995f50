#include "report/formats/markup.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <utility>

#include "base/text_format.h"
#include "io/digest.h"

namespace lra::report {
namespace {

using Escapes = std::initializer_list<std::pair<std::string_view, std::string_view>>;

// `text` with every character that the table names, one byte or more, replaced.
std::string replaced(std::string_view text, const Escapes& escapes) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const auto found = std::ranges::find_if(
        escapes, [&](const auto& escape) { return text.substr(i).starts_with(escape.first); });
    out += found == escapes.end() ? text.substr(i, 1) : found->second;
    i += found == escapes.end() ? 1 : found->first.size();
  }
  return out;
}

}  // namespace

std::string clean(std::string_view text) {
  return replaced(printable(text), {{"\u061C", ""},
                                    {"\u200B", ""},
                                    {"\u200C", ""},
                                    {"\u200D", ""},
                                    {"\u2028", ""},
                                    {"\u2029", ""},
                                    {"\u2060", ""},
                                    {"\uFEFF", ""}});
}

std::vector<std::string> broken_lines(const std::string& text, int width) {
  std::vector<std::string> lines;
  std::string line;
  for (size_t begin = 0; begin < text.size();) {
    // Leading spaces are an indent and stay with their word.
    const size_t end = std::min(text.find(' ', text.find_first_not_of(' ', begin)), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (!line.empty() && display_width(line + " " + word) > width) {
      lines.push_back(line);
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    begin = end + 1;
  }
  if (!line.empty() || lines.empty()) lines.push_back(line);
  return lines;
}

Filling::Filling(double number) : text(fixed(number, 1)) {}

std::string filled(std::string_view pattern, std::initializer_list<Filling> values) {
  std::string out;
  for (const Filling& value : values) {
    const size_t place = pattern.find("{}");
    out += std::string(pattern.substr(0, place)) + value.text;
    pattern.remove_prefix(place + 2);
  }
  return out + std::string(pattern);
}

std::string html(std::string_view text) {
  return replaced(clean(text),
                  {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}});
}

std::string markdown(std::string_view text) {
  // Parentheses and exclamation marks are markup only next to brackets, which are escaped.
  constexpr std::string_view kSpecial = "\\`*{}[]<>#|~$&@^";
  std::string out;
  const std::string shown = clean(text);
  const auto is_word = [&](size_t i) {  // false past either end
    return i < shown.size() && std::isalnum(static_cast<unsigned char>(shown[i])) != 0;
  };
  for (size_t i = 0; i < shown.size(); ++i) {
    const char c = shown[i];
    const bool is_special =
        kSpecial.find(c) != std::string_view::npos ||
        (c == '_' && !(is_word(i - 1) && is_word(i + 1))) ||          // emphasis
        (c == ':' && i + 1 < shown.size() && shown[i + 1] != ' ') ||  // https://, :smile:
        (c == '+' && i == 0) ||                                       // an item of a list
        (c == '.' && i >= 3 && shown.compare(i - 3, 3, "www") == 0);  // a link
    if (is_special) out += '\\';
    out += c;
  }
  return out;
}

std::string latex(std::string_view text) {
  return replaced(clean(text), {{"\\", "\\textbackslash{}"},
                                {"~", "\\textasciitilde{}"},
                                {"^", "\\textasciicircum{}"},
                                {"<", "\\textless{}"},
                                {">", "\\textgreater{}"},
                                {"\"", "{\\char34}"},
                                {"{", "\\{"},
                                {"}", "\\}"},
                                {"$", "\\$"},
                                {"&", "\\&"},
                                {"#", "\\#"},
                                {"_", "\\_"},
                                {"%", "\\%"},
                                // Our own signs, which LaTeX's fonts lack in text.
                                {"±", "$\\pm$"},
                                {"†", "$^\\dagger$"},
                                {"‡", "$^\\ddagger$"},
                                {"§", "\\S{}"}});
}

std::string base64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');  // one more for the library's final zero
  const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                     reinterpret_cast<const unsigned char*>(bytes.data()),
                                     static_cast<int>(bytes.size()));
  text.resize(static_cast<size_t>(length));
  return text;
}

std::string csp_hash(std::string_view inline_text) {
  return "sha256-" + base64(digest_bytes(DigestKind::kSha256, inline_text));
}

std::string csv(std::string_view text) {
  std::string field = clean(text);
  if (!field.empty() && std::string_view("=+-@").find(field[0]) != std::string_view::npos) {
    field.insert(field.begin(), '\'');
  }
  if (field.find_first_of(",\"") == std::string::npos) return field;
  return "\"" + replaced(field, {{"\"", "\"\""}}) + "\"";
}

}  // namespace lra::report
