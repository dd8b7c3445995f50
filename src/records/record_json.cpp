#include "records/record_json.h"

#include "base/hash.h"

namespace lra {

std::string record_hash(const Json& json) {
  nlohmann::json sorted = json;  // by key
  sorted.erase(kRecordHash);
  return to_hex(hash128(sorted.dump(-1, ' ', false, Json::error_handler_t::replace)));
}

void refuse_edited(JsonFields& in) {
  const auto stated = in.find<std::string>(kRecordHash);
  if (!stated || *stated == record_hash(in.json())) return;
  throw Error({.where = in.name(),
               .what = "was changed after it was written: its content does not match record_hash",
               .expected = "the file as the program left it",
               .advice = "restore it, or repeat the command that made it"});
}

}  // namespace lra
