#include "data/findings_json.h"

namespace lra {
namespace {

CheckFinding parse_finding(JsonFields fields) {
  const auto level = fields.get<std::string>("level");
  if (level != level_name(CheckLevel::kNote) && level != level_name(CheckLevel::kWarning)) {
    fields.fail("level", "is '" + level + "'", "note or warning");
  }
  CheckFinding finding{
      .check = fields.get<std::string>("check"),
      .level = level == level_name(CheckLevel::kNote) ? CheckLevel::kNote : CheckLevel::kWarning,
      .split = fields.get<std::string>("split"),
      .text = fields.get<std::string>("text"),
      .accepted = fields.get<bool>("accepted")};
  fields.finish();
  return finding;
}

}  // namespace

Json findings_json(const std::vector<CheckFinding>& findings) {
  Json list = Json::array();
  for (const CheckFinding& finding : findings) {
    list.push_back({{"check", finding.check},
                    {"level", level_name(finding.level)},
                    {"split", finding.split},
                    {"text", finding.text},
                    {"accepted", finding.accepted}});
  }
  return list;
}

std::vector<CheckFinding> get_findings(JsonFields& fields, const char* key,
                                       const std::string& name) {
  const Json& list = fields.array(key);
  std::vector<CheckFinding> findings;
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string section = fields.path_of(key) + "[" + std::to_string(i) + "]";
    findings.push_back(parse_finding(JsonFields(list[i], name, section)));
  }
  return findings;
}

}  // namespace lra
