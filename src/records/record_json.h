// Files of records: a schema, the hash of the content, and the fields of a struct
// (io/struct_json.h).
#pragma once

#include <string>

#include "base/error.h"
#include "io/findings_json.h"
#include "io/struct_json.h"
#include "records/run_record.h"

namespace lra {

inline constexpr const char* kRecordHash = "record_hash";

LRA_FIELDS(RunIdentity, task, task_title, task_version, model, model_title, preset, seed,
           config_hash, data_hash, fingerprint)

LRA_FIELDS(Evaluation, step, loss, accuracy, num_examples, num_positions)

LRA_FIELDS(Provenance, lra_version, git_revision, git_dirty, compiler, torch_version, processor,
           isa, device, threads, ranks, kernels, host_os, started_utc, finished_utc, command)

// Hash of everything in the document except the field record_hash, independent of the order of
// fields and of white space.
std::string record_hash(const Json& json);

// A whole file of records of one kind: the schema is read first, because the rest depends on it.
// `Record` has a member `schema`, whose default is this version's.
template <typename Record>
Json file_to_json(Record record) {
  StructWriter writer;
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
  struct_from_json(in, record);
  return record;
}

}  // namespace lra
