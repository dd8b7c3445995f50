#include "records/check_provenance.h"

#include <algorithm>
#include <string_view>

namespace lra {

void check_provenance(const RunRecord& record, Findings& findings) {
  const Provenance& p = record.provenance;
  const auto is_time = [](const std::string& text) {
    constexpr std::string_view kForm = "0000-00-00T00:00:00Z";
    return std::ranges::equal(text, kForm, [](char c, char form) {
      return form == '0' ? c >= '0' && c <= '9' : c == form;
    });
  };
  findings.expect(p.threads >= 1, "provenance.threads is " + std::to_string(p.threads));
  findings.expect(!p.ranks || *p.ranks > 1,
                  "provenance.ranks is " + std::to_string(p.ranks.value_or(0)));
  findings.expect(is_time(p.started_utc), "provenance.started_utc is no time: " + p.started_utc);
  if (p.finished_utc.empty() && record.status != RunStatus::kDone) return;
  findings.expect(is_time(p.finished_utc), "provenance.finished_utc is no time: " + p.finished_utc);
  findings.expect(p.started_utc <= p.finished_utc,
                  "the run finished " + p.finished_utc + ", before it started " + p.started_utc);
}

}  // namespace lra
