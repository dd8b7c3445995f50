// Content-Security-Policy names the scripts and styles a page may use by their SHA-256.
#pragma once

#include <string>
#include <string_view>

namespace lra::report {

// `bytes`: at most 1 GB.
std::string base64(std::string_view bytes);

// "sha256-" and the base64 of the digest, as a policy writes it (without its single quotes).
std::string csp_hash(std::string_view inline_text);

}  // namespace lra::report
