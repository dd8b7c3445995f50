// One list of fields per struct serves writing and reading, so that neither can forget one.
#include "base/run_record.h"

#include <array>
#include <concepts>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text_format.h"

namespace lra {
namespace {

// A curve of 100,000 evaluations takes 15 MB.
constexpr JsonLimits kLimits = {.max_bytes = 64 << 20, .max_depth = 32, .max_keys = 1000};

constexpr std::array<const char*, 5> kStatusNames = {"running", "done", "stopped", "diverged",
                                                     "failed"};

void fields(auto& f, Evaluation& e) {
  f("step", e.step);
  f("loss", e.loss);
  f("accuracy", e.accuracy);
  f("num_examples", e.num_examples);
}

void fields(auto& f, Measurement& m) {
  f("mode", m.mode);
  f("dtype", m.dtype);
  f("length", m.length);
  f("batch", m.batch);
  f("steps_per_s", m.steps_per_s);
  f("tokens_per_s", m.tokens_per_s);
  f("slowest_steps_per_s", m.slowest_steps_per_s);
  f("fastest_steps_per_s", m.fastest_steps_per_s);
  f("windows", m.windows);
  f("peak_resident_bytes", m.peak_resident_bytes);
  f("peak_tensor_bytes", m.peak_tensor_bytes);
  f("model_flops", m.model_flops);
  f("gemm_flops_per_s", m.gemm_flops_per_s);
  f("pipeline_steps_per_s", m.pipeline_steps_per_s);
  f("warning", m.warning);
}

void fields(auto& f, Provenance& p) {
  f("lra_version", p.lra_version);
  f("git_revision", p.git_revision);
  f("git_dirty", p.git_dirty);
  f("compiler", p.compiler);
  f("torch_version", p.torch_version);
  f("processor", p.processor);
  f("isa", p.isa);
  f("device", p.device);
  f("threads", p.threads);
  f("ranks", p.ranks);
  f("kernels", p.kernels);
  f("host_os", p.host_os);
  f("started_utc", p.started_utc);
  f("finished_utc", p.finished_utc);
  f("command", p.command);
}

// The schema goes first and is read apart: nothing else is known of a record before it.
void fields(auto& f, RunRecord& r) {
  f("kind", r.kind);
  f("status", r.status);
  f("failure", r.failure);
  f("task", r.task);
  f("task_title", r.task_title);
  f("task_version", r.task_version);
  f("model", r.model);
  f("model_title", r.model_title);
  f("preset", r.preset);
  f("seed", r.seed);
  f("validation", r.validation);
  f("checkpoint", r.checkpoint);
  f("data_source", r.data_source);
  f("data_hash", r.data_hash);
  f("config_hash", r.config_hash);
  f("weights_hash", r.weights_hash);
  f("fingerprint", r.fingerprint);
  f("num_parameters", r.num_parameters);
  f("base_parameters", r.base_parameters);
  f("division", r.division);
  f("division_reason", r.division_reason);
  f("steps", r.steps);
  f("planned_steps", r.planned_steps);
  f("preset_steps", r.preset_steps);
  f("test_split_examples", r.test_split_examples);
  f("examples", r.examples);
  f("tokens", r.tokens);
  f("train_seconds", r.train_seconds);
  f("total_seconds", r.total_seconds);
  f("train_tokens_per_s", r.train_tokens_per_s);
  f("peak_resident_bytes", r.peak_resident_bytes);
  f("estimated_resident_bytes", r.estimated_resident_bytes);
  f("ended_by", r.ended_by);
  f("skipped_steps", r.skipped_steps);
  f("roll_backs", r.roll_backs);
  f("undone_steps", r.undone_steps);
  f("warnings", r.warnings);
  f("train", r.train);
  f("val", r.val);
  f("test", r.test);
  f("best_val", r.best_val);
  f("val_curve", r.val_curve);
  f("measurements", r.measurements);
  f("baselines", r.baselines);
  f("config", r.config);
  f("provenance", r.provenance);
}

// ---- settings: a TOML table as nested JSON

Json config_json(const ConfigValue& value);

Json config_json(const ConfigTable& table) {
  Json object = Json::object();
  for (const auto& [key, value] : table) object[key] = config_json(value);
  return object;
}

Json config_json(const ConfigValue& value) {
  if (const double* number = std::get_if<double>(&value.value)) return json_number(*number);
  if (const ConfigTable* table = value.as_table()) return config_json(*table);
  if (const ConfigList* list = std::get_if<ConfigList>(&value.value)) {
    Json array = Json::array();
    for (const ConfigValue& item : *list) array.push_back(config_json(item));
    return array;
  }
  if (const bool* flag = std::get_if<bool>(&value.value)) return *flag;
  if (const int64_t* integer = std::get_if<int64_t>(&value.value)) return *integer;
  return std::get<std::string>(value.value);
}

ConfigTable config_from(const Json& object, const std::string& where);

// No setting is called "inf" or "nan", so these strings are the numbers json_number wrote.
ConfigValue config_value_from(const Json& json, const std::string& where) {
  const Json wrapped = {{"value", json}};
  JsonFields fields(wrapped, where);
  if (json.is_object()) return {config_from(json, where), where};
  if (json.is_array()) {
    ConfigList list;
    for (const Json& item : json) list.push_back(config_value_from(item, where));
    return {std::move(list), where};
  }
  if (json.is_boolean()) return {json.get<bool>(), where};
  if (json.is_number_integer()) return {fields.get<int64_t>("value"), where};
  if (json.is_number() || json == "inf" || json == "-inf" || json == "nan") {
    return {fields.get<double>("value"), where};
  }
  return {fields.get<std::string>("value"), where};
}

ConfigTable config_from(const Json& object, const std::string& where) {
  ConfigTable table;
  for (const auto& [key, value] : object.items()) {
    table.set(key, config_value_from(value, where + "." + printable(key)));
  }
  return table;
}

// ---- both directions

class Writer {
 public:
  template <typename T>
  void operator()(const char* key, T& value) {
    put(key, value);
  }
  Json take() { return std::move(out_); }

  template <typename T>
  static Json to_object(const T& value) {
    Writer writer;
    // The field lists are shared with the reader and so take a mutable struct.
    T copy = value;
    fields(writer, copy);
    return writer.take();
  }

 private:
  template <typename T>
  void put(const char* key, const T& value) {
    if constexpr (requires(Writer w, T v) { fields(w, v); }) {
      out_[key] = to_object(value);
    } else {
      out_[key] = value;
    }
  }
  void put(const char* key, double value) { out_[key] = json_number(value); }
  void put(const char* key, RunStatus value) { out_[key] = to_string(value); }
  void put(const char* key, const ConfigTable& value) { out_[key] = config_json(value); }
  template <typename T>
  void put(const char* key, const std::optional<T>& value) {
    if (value) put(key, *value);
  }
  template <typename T>
  void put(const char* key, const std::vector<T>& list) {
    Json array = Json::array();
    for (const T& item : list) array.push_back(to_object(item));
    out_[key] = std::move(array);
  }
  void put(const char* key, const std::vector<std::string>& list) { out_[key] = list; }
  void put(const char* key, const std::map<std::string, double>& map) {
    Json object = Json::object();
    for (const auto& [name, value] : map) object[name] = json_number(value);
    out_[key] = std::move(object);
  }

  Json out_ = Json::object();
};

class Reader {
 public:
  explicit Reader(JsonFields& in) : in_(in) {}
  template <typename T>
  void operator()(const char* key, T& value) {
    take(key, value);
  }

  template <typename T>
  static void from_object(JsonFields in, T& value) {
    Reader reader(in);
    fields(reader, value);
    in.finish();
  }

 private:
  template <typename T>
  void take(const char* key, T& value) {
    if constexpr (requires(Reader r) { fields(r, value); }) {
      from_object(in_.object(key), value);
    } else {
      value = in_.get<T>(key);
    }
  }
  void take(const char* key, RunStatus& value) {
    const auto text = in_.get<std::string>(key);
    for (size_t i = 0; i < kStatusNames.size(); ++i) {
      if (text == kStatusNames[i]) return void(value = static_cast<RunStatus>(i));
    }
    in_.fail(key, "is '" + printable(text.substr(0, 100)) + "'",
             "running, done, stopped, diverged or failed");
  }
  void take(const char* key, ConfigTable& value) {
    value = config_from(in_.object(key).json(), in_.name() + ":" + in_.path_of(key));
  }
  template <typename T>
  void take(const char* key, std::optional<T>& value) {
    if (auto inner = in_.find_object(key)) from_object(std::move(*inner), value.emplace());
  }
  void take(const char* key, std::optional<int64_t>& value) { value = in_.find<int64_t>(key); }
  void take(const char* key, std::optional<double>& value) { value = in_.find<double>(key); }
  void take(const char* key, std::optional<std::string>& value) {
    value = in_.find<std::string>(key);
  }
  void take(const char* key, std::optional<std::vector<std::string>>& value) {
    value = in_.find<std::vector<std::string>>(key);
  }
  template <typename T>
  void take(const char* key, std::vector<T>& list) {
    const Json& array = in_.array(key);
    for (size_t i = 0; i < array.size(); ++i) {
      const std::string path = in_.path_of(key) + "[" + std::to_string(i) + "]";
      from_object(JsonFields(array[i], in_.name(), path), list.emplace_back());
    }
  }
  void take(const char* key, std::vector<std::string>& list) {
    list = in_.get<std::vector<std::string>>(key);
  }
  template <typename T>
  void take(const char* key, std::map<std::string, T>& map) {
    JsonFields inner = in_.object(key);
    for (const auto& [name, value] : inner.json().items()) map[name] = inner.get<T>(name.c_str());
  }

  JsonFields& in_;
};

}  // namespace

std::string to_string(RunStatus status) {
  const auto index = static_cast<size_t>(status);
  LRA_CHECK_LT(index, kStatusNames.size());
  return kStatusNames[index];
}

std::optional<double> flops_utilisation(const Measurement& m) {
  if (!m.model_flops || m.gemm_flops_per_s.value_or(0) <= 0) return std::nullopt;
  return static_cast<double>(*m.model_flops) * m.steps_per_s / *m.gemm_flops_per_s;
}

std::string to_json(const Measurement& measurement) {
  return json_text(Writer::to_object(measurement), 2) + "\n";
}

Measurement parse_measurement(const std::string& text, const std::string& name) {
  const Json json = parse_json(text, name, kLimits);
  Measurement measurement;
  Reader::from_object(JsonFields(json, name), measurement);
  return measurement;
}

std::string to_json(const RunRecord& record) {
  Writer writer;
  RunRecord copy = record;
  writer("schema", copy.schema);
  fields(writer, copy);
  return json_text(writer.take(), 2) + "\n";
}

namespace {

// Numbers that no run can have: a record edited by hand, or not one of ours.
void refuse_impossible(const RunRecord& record, const std::string& name) {
  const auto require = [&](bool possible, const std::string& what, const std::string& expected) {
    if (possible) return;
    throw Error({.where = name, .what = what, .expected = expected, .advice = ""});
  };
  const auto share = [&](double value, const std::string& what) {
    require(value >= 0 && value <= 1, what + " is " + std::to_string(value), "0 to 1");
  };
  for (const auto* e : {&record.train, &record.val, &record.test, &record.best_val}) {
    if (*e) share((*e)->accuracy, "an accuracy");
  }
  for (const Evaluation& e : record.val_curve) share(e.accuracy, "an accuracy");
  for (const auto& [baseline, accuracy] : record.baselines) share(accuracy, "the " + baseline);
  require(record.train_seconds >= 0 && record.total_seconds >= 0, "a negative time", "seconds");
  require(record.kind == "train" || record.kind == "bench", "kind '" + record.kind + "'",
          "train or bench");
}

}  // namespace

RunRecord parse_record(const std::string& text, const std::string& name) {
  const Json json = parse_json(text, name, kLimits);
  JsonFields in(json, name);
  RunRecord record;
  const auto schema = in.get<int64_t>("schema");
  if (schema != kRecordSchema) {
    throw Error({.where = name,
                 .what = "a run record of schema " + std::to_string(schema),
                 .expected = "schema " + std::to_string(kRecordSchema),
                 .advice = "read it with the version of lra that wrote it"});
  }
  Reader reader(in);
  fields(reader, record);
  in.finish();
  refuse_impossible(record, name);
  return record;
}

void write_record(const RunRecord& record, const std::string& path) {
  write_file_atomically(path, to_json(record));
}

RunRecord read_record(const std::string& path) {
  return parse_record(read_file(path, kLimits.max_bytes), path);
}

}  // namespace lra
