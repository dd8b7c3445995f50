#include "tasks/own/parquet.h"

#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>

#include "base/command_text.h"
#include "base/error.h"
#include "base/quoted.h"
#include "data/stopping.h"
#include "io/input_file.h"
#include "tasks/own/json_rows.h"

namespace lra::tasks {
namespace {

// Writes a greeting, then, line by line, "C" and the names of columns, "R" and a row as a list, or
// "E" and why the file cannot be read.
constexpr const char* kScript = R"(
import json, sys
print("lra parquet")
try:
    import pyarrow.parquet
except ImportError:
    sys.exit(3)
def plain(value):
    try:
        json.dumps(value, allow_nan=False)
        return value
    except ValueError:
        return {"lra type": "NaN or infinite, or holds such a number"}
    except TypeError:
        inner = value[0] if isinstance(value, list) and value else value
        return {"lra type": "of the type " + type(inner).__name__}
try:
    file = pyarrow.parquet.ParquetFile(sys.argv[1])
    print("C" + json.dumps(file.schema_arrow.names))
    for batch in file.iter_batches(1024):
        for row in zip(*(column.to_pylist() for column in batch.columns)):
            try:
                text = json.dumps(row, allow_nan=False)
            except (TypeError, ValueError):
                text = json.dumps([plain(value) for value in row])
            print("R" + text)
except BrokenPipeError:
    pass
except Exception as error:
    print("E" + " ".join(str(error).split()))
)";
constexpr std::string_view kGreeting = "lra parquet";

// The lines that the script writes. What else the child says about its end is of no use.
class ScriptLines {
 public:
  ScriptLines(const std::string& python, const std::string& path)
      : pipe_(::popen((shell_word(python) + " -c " + shell_word(kScript) + " " + shell_word(path) +
                       " 2>/dev/null")
                          .c_str(),
                      "re")) {
    if (!pipe_) throw io_error(python, "cannot be started", errno);
  }
  ~ScriptLines() {
    if (pipe_) ::pclose(pipe_);
    std::free(buffer_);
  }
  ScriptLines(const ScriptLines&) = delete;
  ScriptLines& operator=(const ScriptLines&) = delete;

  // Valid until the next call.
  std::optional<std::string_view> next() {
    const ssize_t size = ::getline(&buffer_, &capacity_, pipe_);
    if (size < 1) return std::nullopt;
    return std::string_view(buffer_, static_cast<size_t>(size - (buffer_[size - 1] == '\n')));
  }

  // The exit code, or -1.
  int end() {
    const int status = ::pclose(std::exchange(pipe_, nullptr));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  FILE* pipe_;
  char* buffer_ = nullptr;
  size_t capacity_ = 0;
};

std::vector<std::string> names_of(std::string_view text, const std::string& path) {
  return parse_json(text, path).get<std::vector<std::string>>();
}

}  // namespace

void read_parquet(const std::string& path, Schema& schema, const OwnExampleSink& sink) {
  const InputFile readable(path);  // otherwise Python would report the problem
  const char* named = std::getenv("LRA_INTERPRETER");
  const std::string python = named ? named : "python3";
  ScriptLines lines(python, path);
  const bool is_python = lines.next() == kGreeting;
  JsonRows rows(schema, sink);
  int64_t row = 0;
  for (std::optional<std::string_view> line; is_python && (line = lines.next());) {
    throw_if_stopped();
    const std::string_view text = line->substr(1);
    if (line->starts_with('E')) refuse_data(path, std::string(text), "a Parquet file");
    if (line->starts_with('C')) {
      rows.begin(names_of(text, path));
    } else {
      rows.add_list(text, path + " row " + std::to_string(++row));
    }
  }
  const int code = lines.end();
  if (is_python && code == 0) return;
  const bool lacks_it = is_python && code == 3;
  const std::string install = "install it with: " + python + " -m pip install pyarrow, or ";
  throw Error(
      {.where = path,
       .what = "Parquet files are read by the Python package pyarrow, but " +
               in_quotes(python, 100) +
               (lacks_it ? " does not have it" : " could not be run as Python"),
       .advice = (lacks_it ? install : "") + "name a Python that has it in LRA_INTERPRETER"});
}

}  // namespace lra::tasks
