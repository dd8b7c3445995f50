// Structs as JSON and back, from one list of fields each, so that neither direction can forget one.
//
// A struct takes part when namespace lra has `void fields(auto& f, T& value)` that calls f("name",
// value.member) for each. Members: bool, integers, double (NaN and infinity included), strings,
// settings, other such structs, std::optional (absent: no field), std::vector, std::map by name,
// and enumerations through f.choice. Reading is strict: a missing, ill-typed or unknown field is an
// lra::Error.
#pragma once

#include <concepts>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text_format.h"
#include "io/config_json.h"
#include "io/json.h"
#include "records/run_record.h"

namespace lra {

inline constexpr const char* kRecordHash = "record_hash";

void fields(auto& f, CheckFinding& finding) {
  f("check", finding.check);
  f.choice("level", finding.level, kCheckLevelNames);
  f("split", finding.split);
  f("text", finding.text);
  f("accepted", finding.accepted);
}

void fields(auto& f, Evaluation& e) {
  f("step", e.step);
  f("loss", e.loss);
  f("accuracy", e.accuracy);
  f("num_examples", e.num_examples);
  f("num_positions", e.num_positions);
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

class RecordWriter {
 public:
  template <typename T>
  void operator()(const char* key, T& value) {
    out_[key] = to_json_value(value);
  }
  template <typename T>
  void operator()(const char* key, std::optional<T>& value) {
    if (value) out_[key] = to_json_value(*value);
  }
  template <typename Enum, typename Names>
  void choice(const char* key, Enum& value, const Names& names) {
    const auto index = static_cast<size_t>(value);
    LRA_CHECK_LT(index, names.size());
    out_[key] = names[index];
  }
  Json take() { return std::move(out_); }

  template <typename T>
  static Json to_object(const T& value) {
    RecordWriter writer;
    // The field lists are shared with the reader and so take a mutable struct.
    T copy = value;
    fields(writer, copy);
    return writer.take();
  }

 private:
  template <typename T>
  static Json to_json_value(const T& value) {
    if constexpr (requires(RecordWriter w, T v) { fields(w, v); }) {
      return to_object(value);
    } else {
      return value;
    }
  }
  static Json to_json_value(double value) { return json_number(value); }
  static Json to_json_value(const ConfigTable& value) { return config_to_json(value); }
  template <typename T>
  static Json to_json_value(const std::vector<T>& list) {
    Json array = Json::array();
    for (const T& item : list) array.push_back(to_json_value(item));
    return array;
  }
  template <typename T>
  static Json to_json_value(const std::map<std::string, T>& map) {
    Json object = Json::object();
    for (const auto& [name, value] : map) object[name] = to_json_value(value);
    return object;
  }

  Json out_ = Json::object();
};

class RecordReader {
 public:
  explicit RecordReader(JsonFields& in) : in_(in) {}
  template <typename T>
  void operator()(const char* key, T& value) {
    take(key, value);
  }
  template <typename Enum, typename Names>
  void choice(const char* key, Enum& value, const Names& names) {
    const auto text = in_.get<std::string>(key);
    std::string list;
    for (size_t i = 0; i < names.size(); ++i) {
      if (text == names[i]) return void(value = static_cast<Enum>(i));
      list += std::string(i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i];
    }
    in_.fail(key, "is '" + printable(text.substr(0, 100)) + "'", list);
  }

  template <typename T>
  static void from_object(JsonFields in, T& value) {
    RecordReader reader(in);
    fields(reader, value);
    in.finish();
  }

 private:
  template <typename T>
  static constexpr bool kIsStruct = requires(RecordReader r, T& v) {
    fields(r, v);
  };

  template <typename T>
  void take(const char* key, T& value) {
    if constexpr (kIsStruct<T>) {
      from_object(in_.object(key), value);
    } else {
      value = in_.get<T>(key);
    }
  }
  void take(const char* key, ConfigTable& value) {
    value = config_from_json(in_.object(key).json(), in_.name() + ":" + in_.path_of(key));
  }
  template <typename T>
  void take(const char* key, std::optional<T>& value) {
    if constexpr (kIsStruct<T>) {
      if (auto inner = in_.find_object(key)) from_object(std::move(*inner), value.emplace());
    } else {
      value = in_.find<T>(key);
    }
  }
  template <typename T>
  void take(const char* key, std::vector<T>& list) {
    take_items(in_.array(key), in_.path_of(key), list);
  }
  template <typename T>
  requires kIsStruct<T>
  void take(const char* key, std::optional<std::vector<T>>& list) {
    if (in_.json().contains(key)) take(key, list.emplace());
  }
  template <typename T>
  void take(const char* key, std::map<std::string, T>& map) {
    JsonFields inner = in_.object(key);
    for (const auto& [name, value] : inner.json().items()) map[name] = inner.get<T>(name.c_str());
  }

  template <typename T>
  void take_items(const Json& array, const std::string& path, std::vector<T>& list) {
    for (size_t i = 0; i < array.size(); ++i) {
      const std::string place = path + "[" + std::to_string(i) + "]";
      if constexpr (kIsStruct<T>) {
        from_object(JsonFields(array[i], in_.name(), place), list.emplace_back());
      } else {
        take_item(array[i], place, list.emplace_back());
      }
    }
  }
  template <typename T>
  void take_item(const Json& item, const std::string& place, T& value) {
    const Json wrapped = {{place, item}};
    value = JsonFields(wrapped, in_.name()).template get<T>(place.c_str());
  }
  template <typename T>
  void take_item(const Json& item, const std::string& place, std::vector<T>& list) {
    const Json wrapped = {{place, item}};
    take_items(JsonFields(wrapped, in_.name()).array(place.c_str()), place, list);
  }

  JsonFields& in_;
};

// Hash of everything in the document except the field record_hash, independent of the order of
// fields and of white space.
std::string record_hash(const Json& json);

// A whole file of records of one kind: the schema is read first, because the rest depends on it.
// `Record` has a member `schema`, whose default is this version's.
template <typename Record>
Json file_to_json(Record record) {
  RecordWriter writer;
  writer("schema", record.schema);
  std::string hash;  // of what follows
  writer(kRecordHash, hash);
  fields(writer, record);
  Json json = writer.take();
  json[kRecordHash] = record_hash(json);
  return json;
}

// Throws lra::Error if the document has another hash than the one it states. Records of earlier
// programs state none.
void refuse_edited(JsonFields& in);

// `what` is such a record in words, "a run record". Throws lra::Error as the reader does, and for
// another schema or content that is not as it was written.
template <typename Record>
Record parse_record_file(const std::string& text, const std::string& name, const JsonLimits& limits,
                         const std::string& what) {
  const Json json = parse_json(text, name, limits);
  JsonFields in(json, name);
  Record record;
  const auto schema = in.get<int64_t>("schema");
  if (schema != record.schema && !json.contains("provenance")) {
    throw Error({.where = name,
                 .what = "is not " + what,
                 .expected = "record.json of a run or an analysis"});
  }
  if (schema != record.schema) {
    throw Error({.where = name,
                 .what = what + " of schema " + std::to_string(schema),
                 .expected = "schema " + std::to_string(record.schema),
                 .advice = "read it with the version of lra that wrote it"});
  }
  refuse_edited(in);
  RecordReader reader(in);
  fields(reader, record);
  in.finish();
  return record;
}

}  // namespace lra
