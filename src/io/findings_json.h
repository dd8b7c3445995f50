// Findings of checks as JSON, the same in manifests, in records and in what commands print.
#pragma once

#include "base/check_finding.h"
#include "io/struct_json.h"

namespace lra {

LRA_FIELDS(CheckFinding, check, level, split, text, accepted)

}  // namespace lra
