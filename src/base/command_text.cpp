#include "base/command_text.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace lra {
namespace {

bool needs_quotes(char c) {
  const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  return !is_plain && std::string_view("-_./=:,+@%").find(c) == std::string_view::npos;
}

std::string program_word() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string called;
  std::getline(file, called, '\0');
  return std::filesystem::path(called).filename() == "lra" ? called : "lra";
}

}  // namespace

std::string shell_word(const std::string& word) {
  if (!word.empty() && std::ranges::none_of(word, needs_quotes)) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string command_text(const std::vector<std::string>& arguments) {
  std::string text = shell_word(program_word());
  for (const std::string& argument : arguments) text += " " + shell_word(argument);
  return text;
}

}  // namespace lra
