// Foreign text (model names, error lines, paths) made fit for each output format.
//
// clean() always comes first: it removes characters that control a terminal or the text direction.
// The escapes then turn markup of the format into plain text.
#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace lra::report {

// printable() of base/text_format.h, and without the invisible characters that reorder or hide
// text: direction marks and overrides (U+061C, U+200E, U+200F, U+202A..202E, U+2066..2069), line
// and paragraph separators, zero-width spaces and joiners (U+200B..200D, U+2060), U+FEFF.
std::string clean(std::string_view text);

// `text` in lines of at most `width` columns, broken at spaces; a longer word gets its own line.
std::vector<std::string> broken_lines(const std::string& text, int width);

// An argument of filled(): markup, a whole number, or another number, which gets one decimal.
struct Filling {
  std::string text;
  Filling(std::string markup) : text(std::move(markup)) {}
  Filling(const char* markup) : text(markup) {}
  Filling(double number);
  Filling(std::integral auto number) : text(std::to_string(number)) {}
};
// `pattern` with a value in the place of each "{}". Foreign texts must be escaped before.
std::string filled(std::string_view pattern, std::initializer_list<Filling> values);

// HTML, as text or as an attribute value in double quotes.
std::string html(std::string_view text);
// A cell of a pipe table: no markup, no autolink, no column break.
std::string markdown(std::string_view text);
// LaTeX, as running text.
std::string latex(std::string_view text);
// `bytes`: at most 1 GB.
std::string base64(std::string_view bytes);
// "sha256-" and the base64 of the digest: how a Content-Security-Policy names a script or a style
// that the page may use (without its single quotes).
std::string csp_hash(std::string_view inline_text);
// One field, in double quotes where needed. A text that a spreadsheet would run as a formula (it
// begins with = + - or @) gets an apostrophe in front.
std::string csv(std::string_view text);

}  // namespace lra::report
