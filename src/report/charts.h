// Charts that the page's script draws: what they show stands beside them as JSON, and as a table
// for readers without the script.
#pragma once

#include <string>
#include <vector>

#include "io/json.h"
#include "report/formats.h"
#include "report/trade_off.h"

namespace lra::report {

// "<div class=chart>" with `data` in it, fit to stand in a page. `kind`: "specification", of
// Vega-Lite, or "curves", of tools/web/charts.js.
std::string chart_html(const std::string& kind, const Json& data);

// A <figure>: heading, the charts beside each other, a caption, and `table` to unfold.
std::string chart_figure(const std::string& title, const std::string& caption,
                         const std::vector<Json>& specifications, const std::string& table);

// Vega-Lite specifications. Texts in them are cleaned.
// One panel of Figure 3; points without memory have no place in the second.
Json trade_off_chart(const TradeOff& trade_off, TradeOffPanel panel);
// Bars of Figure 2, one group for each analysis. Null when no span was analysed.
Json span_chart(const std::vector<Analysis>& analyses);

}  // namespace lra::report
