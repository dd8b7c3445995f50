// Foreign text (model names, error lines, paths) made fit for each output format.
//
// clean() always comes first: it removes characters that control a terminal or the text direction.
// The escapes then turn markup of the format into plain text.
#pragma once

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

// HTML, as text or as an attribute value in double quotes.
std::string html(std::string_view text);
// A cell of a pipe table: no markup, no autolink, no column break.
std::string markdown(std::string_view text);
// LaTeX, as running text.
std::string latex(std::string_view text);
// One field, in double quotes where needed. A text that a spreadsheet would run as a formula (it
// begins with = + - or @) gets an apostrophe in front.
std::string csv(std::string_view text);

}  // namespace lra::report
