// Findings of checks as JSON, the same in manifests and in what commands print.
#pragma once

#include <vector>

#include "base/check_finding.h"
#include "io/json.h"

namespace lra {

Json findings_json(const std::vector<CheckFinding>& findings);

// The findings of the array `key`. Throws lra::Error for a missing, unknown or ill-typed field.
std::vector<CheckFinding> get_findings(JsonFields& fields, const char* key,
                                       const std::string& name);

}  // namespace lra
