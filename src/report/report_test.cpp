#include "report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/text_format.h"
#include "io/json.h"
#include "records/test_records.h"
#include "report/formats/html_parts.h"
#include "report/formats/markup.h"

namespace lra::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<std::string> kFormatNames = {"text", "summary", "md",  "csv",
                                               "json", "latex",   "html"};

// Markup of every format, both quotes, terminal escapes, a text direction override, bad UTF-8.
const std::string kHostile =
    "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'|`[x](javascript:y)"
    "\\input{z}$%\x1b]0;title\x07\x1b[2J\xE2\x80\xAE\xC2\x9B\xFF\r\n=cmd";

RunRecord hostile_run() {
  RunRecord run = finished_run(kHostile, kHostile, 60);
  for (std::string* field :
       {&run.task_title, &run.model_title, &run.preset, &run.checkpoint, &run.validation,
        &run.division, &run.division_reason, &run.data_source, &run.data_hash, &run.failure,
        &run.provenance.processor, &run.provenance.git_revision, &run.provenance.compiler,
        &run.provenance.finished_utc, &run.provenance.host_os}) {
    *field = kHostile;
  }
  run.provenance.command = {kHostile};
  run.provenance.kernels = {{kHostile, kHostile}};
  run.baselines = {{kHostile, 0.5}};
  run.config.set(kHostile, ConfigValue{kHostile, ""});
  run.val_curve = {{100, 1, 0.5, 10}, {200, 1, 0.6, 10}};
  run.measurements = {{.mode = kHostile, .dtype = kHostile, .length = 1024, .batch = 32}};
  return run;
}

std::vector<RunRecord> hostile_records() {
  std::vector<RunRecord> records = {hostile_run(), hostile_run()};
  records[1].status = RunStatus::kFailed;
  records[1].fingerprint += "other";
  return records;
}

std::string render_hostile(const std::string& format) {
  return render(hostile_records(), parse_format(format),
                {.title = kHostile, .problems = {kHostile}});
}

TEST(Report, NoFormatPassesControlCharactersOn) {
  for (const std::string& format : kFormatNames) {
    const std::string text = render_hostile(format);
    for (const char c : text) {
      EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 || c == '\n') << format << " " << int{c};
    }
    EXPECT_THAT(text, Not(HasSubstr("\x7f"))) << format;
    EXPECT_THAT(text, Not(HasSubstr("\xC2\x9B"))) << format;
    EXPECT_THAT(text, Not(HasSubstr("\xE2\x80\xAE"))) << format;
    EXPECT_THAT(text, Not(HasSubstr("\xFF"))) << format;
    EXPECT_THAT(text, Not(HasSubstr("u001b"))) << format;
  }
}

TEST(Report, HtmlHasNoForeignMarkup) {
  const std::string page = render_hostile("html");
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(1)"));
  EXPECT_EQ(page.find("<script"), page.rfind("<script")) << "the page's own alone";
}

// Walks the page as a parser would: every "<" opens a tag, and quotes in tags are balanced.
TEST(Report, HtmlTagsAreBalancedWhateverTheNames) {
  const std::string page = render_hostile("html");
  std::string body = page.substr(page.find("<body>"));
  body.erase(body.find("<script>"));
  const std::set<std::string> without_end = {"script", "html", "input", "img"};
  std::vector<std::string> open;
  for (size_t at = body.find('<'); at != body.npos; at = body.find('<', at + 1)) {
    const size_t end = body.find('>', at);
    ASSERT_NE(end, body.npos);
    const std::string tag = body.substr(at + 1, end - at - 1);
    EXPECT_EQ(std::count(tag.begin(), tag.end(), '"') % 2, 0) << tag;
    const std::string name =
        tag.substr(tag[0] == '/', tag.find_first_of(" />", 1) - (tag[0] == '/'));
    if (tag.ends_with("/") || without_end.contains(name)) continue;
    if (tag[0] != '/') {
      open.push_back(name);
      continue;
    }
    ASSERT_FALSE(open.empty()) << tag;
    EXPECT_EQ(open.back(), name);
    open.pop_back();
  }
  EXPECT_EQ(open, std::vector<std::string>{"body"}) << "the scripts and what follows were cut off";
}

std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const size_t from = text.find(begin) + begin.size();
  return text.substr(from, text.find(end, from) - from);
}

TEST(Report, HtmlPolicyNamesExactlyTheInlineCode) {
  const std::string page = render({finished_run("text", "performer", 65)}, Format::kHtml);
  const std::string policy = between(page, "Content-Security-Policy\" content=\"", "\"");
  EXPECT_THAT(policy, ::testing::StartsWith("default-src 'none';"));
  for (const auto& [begin, end] : {std::pair{"<style>", "</style>"}, {"<script>", "</script>"}}) {
    int blocks = 0;
    for (size_t at = page.find(begin); at != page.npos; at = page.find(begin, at + 1)) {
      EXPECT_THAT(policy, HasSubstr(csp_hash(between(page.substr(at), begin, end))));
      ++blocks;
    }
    EXPECT_EQ(blocks, 1) << begin;
  }
  EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
  EXPECT_THAT(page, Not(HasSubstr(" style=\""))) << "the policy would refuse it";
}

TEST(Report, HtmlNamesWhatTheRecordsLackAndHowToMakeIt) {
  const std::string page = render({finished_run("text", "performer", 65)}, Format::kHtml);
  for (const char* command :
       {"lra bench --mode train", "lra bench --mode infer", "lra analyze span",
        "lra analyze generalization", "lra analyze convergence", "lra analyze embeddings",
        "lra analyze rollout"}) {
    EXPECT_THAT(page, HasSubstr(command));
  }
  AnalysisRecord convergence;
  convergence.kind = "convergence";
  convergence.convergence = ConvergenceResult{};
  EXPECT_THAT(render({finished_run("text", "performer", 65)}, Format::kHtml,
                     {.analyses = {{convergence, {}}}}),
              Not(HasSubstr("lra analyze convergence")));
}

TEST(Report, HtmlLoadsNothing) {
  std::string page = render({finished_run("text", "performer", 65)}, Format::kHtml);
  page.erase(page.find("http://www.w3.org/2000/svg"), 26);  // the name of SVG
  for (const char* needle : {"http:", "https:", "src=", "@import", "url("}) {
    EXPECT_THAT(page, Not(HasSubstr(needle)));
  }
}

TEST(Report, JsonIsAsciiAndHoldsTheNumbers) {
  const std::string text = render_hostile("json");
  for (const char c : text) EXPECT_LT(static_cast<unsigned char>(c), 0x80);
  const Json json =
      parse_json(render({finished_run("text", "performer", 65)}, Format::kJson), "report");
  const Json& cell = json["rows"][0]["cells"][0];
  EXPECT_NEAR(cell["percent"].get<double>(), 65, 1e-9);
  EXPECT_EQ(cell["paper_v1"].get<double>(), 65.40);
  EXPECT_NEAR(cell["minus_paper_v1"].get<double>(), -0.4, 1e-9);
  EXPECT_TRUE(cell["deviation"].is_null());
  EXPECT_EQ(json["records"].size(), 1u);
}

// Number of fields of one line, quotes honored.
size_t count_fields(const std::string& line) {
  size_t fields = 1;
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') quoted = !quoted;
    fields += c == ',' && !quoted;
  }
  return fields;
}

TEST(Report, CsvLinesHaveAsManyFieldsAsTheHeader) {
  std::vector<RunRecord> records = hostile_records();
  for (const char* task : {"listops", "text", "retrieval", "image", "pathfinder32"}) {
    records.push_back(finished_run(task, "performer", 50));
  }
  std::istringstream lines(render(records, Format::kCsv));
  std::string line;
  std::getline(lines, line);
  const size_t expected = count_fields(line);
  int count = 0;
  bool has_average = false, has_speed = false, has_baseline = false;
  for (; std::getline(lines, line); ++count) {
    EXPECT_EQ(count_fields(line), expected) << line;
    has_average = has_average || line.starts_with("average,performer");
    has_speed = has_speed || line.starts_with("speed,");
    has_baseline = has_baseline || line.starts_with("baseline,root operator");
  }
  EXPECT_GT(count, 10);
  EXPECT_TRUE(has_average && has_speed && has_baseline);
}

TEST(Report, CsvHasTheIntervalOfASingleSeedAndTheCost) {
  RunRecord run = finished_run("text", "performer", 50, 0, 10000);
  run.num_parameters = 123456;
  const std::string text = render({run}, Format::kCsv);
  EXPECT_THAT(text, HasSubstr("half_width95,half_width95_over_seeds,"));
  EXPECT_THAT(text, HasSubstr(",1,,0.9")) << "1.96 standard errors of 0.5, in percent";
  EXPECT_THAT(text, HasSubstr(",123456,100,"));
}

TEST(Report, MarkdownRowsHaveAsManyCellsAsTheirHeader) {
  std::istringstream lines(render_hostile("md"));
  size_t expected = 0;
  int rows = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("|")) {
      expected = 0;
      continue;
    }
    size_t cells = 0;
    for (size_t i = 0; i < line.size(); ++i) {
      cells += line[i] == '|' && (i == 0 || line[i - 1] != '\\');
    }
    if (expected == 0) expected = cells;
    EXPECT_EQ(cells, expected) << line;
    ++rows;
  }
  EXPECT_GT(rows, 8);
}

TEST(Report, LatexHasNoForeignCommands) {
  const std::string text = render_hostile("latex");
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_FALSE(line.starts_with("%")) << line;
    EXPECT_THAT(line, Not(HasSubstr("\\input")));
  }
  EXPECT_THAT(text, HasSubstr("\\textbackslash{}input"));
}

TEST(Report, LatexMarksBestAndSecond) {
  const std::string text = render(
      {finished_run("text", "a", 65), finished_run("text", "b", 64), finished_run("text", "c", 63)},
      Format::kLatex);
  EXPECT_THAT(text, HasSubstr("a & \\textbf{65.00}"));
  EXPECT_THAT(text, HasSubstr("b & \\underline{64.00}"));
  EXPECT_THAT(text, HasSubstr("c & 63.00"));
}

TEST(Report, AcceptedChecksAreTold) {
  RunRecord run = finished_run("text", "performer", 65);
  run.data_checks = {{{.check = "copies", .text = "nine are of train", .accepted = true}}};
  EXPECT_THAT(render({run}, Format::kText),
              HasSubstr("performer on text: accepted of its data: copies: nine are of train"));
}

TEST(Report, AnIntervalIsTheSameInEveryFormat) {
  std::vector<RunRecord>
      records;  // three seeds that hardly differ, so that the test's size decides
  for (const double accuracy : {60.0, 60.1, 60.2}) {
    records.push_back(finished_run("text", "a", accuracy));
    records.back().seed = static_cast<int64_t>(records.size());
  }
  EXPECT_THAT(render(records, Format::kText), HasSubstr("60.10 [n=3, ±2.16]"));
  EXPECT_THAT(render(records, Format::kMarkdown), HasSubstr("60.10 \\[n=3, ±2.16\\]"));
  EXPECT_THAT(render(records, Format::kHtml), HasSubstr("<td>±2.16</td>"));
  EXPECT_THAT(render(records, Format::kCsv), HasSubstr(",2.16"));
}

TEST(Report, LatexHasTheDeviationOverSeedsAndLostRuns) {
  std::vector<RunRecord> records;
  for (const double accuracy : {60.0, 62.0, 64.0, 10.0}) {
    records.push_back(finished_run("text", "a", accuracy));
    records.back().seed = static_cast<int64_t>(records.size());
  }
  records.back().status = RunStatus::kDiverged;
  const std::string text = render(records, Format::kLatex);
  EXPECT_THAT(text, HasSubstr("mean $\\pm$ standard deviation over 3 seeds"));
  EXPECT_THAT(text, HasSubstr("\na & 62.00 $\\pm$ 2.00 (1 diverged) \\\\\n"));
}

TEST(Report, ColoursAppearOnlyWhenAskedFor) {
  const std::vector<RunRecord> records = {finished_run("text", "performer", 65)};
  EXPECT_THAT(render(records, Format::kText), Not(HasSubstr("\x1b")));
  EXPECT_THAT(render(records, Format::kText, {.color = true}), HasSubstr("\x1b[1m"));
}

TEST(Report, TextSetsThePaperBesideOurs) {
  const std::string text = render({finished_run("text", "performer", 65)}, Format::kText);
  EXPECT_THAT(text, HasSubstr("65.40 (-0.40)"));
  EXPECT_THAT(text, HasSubstr("apples-to-apples"));
  EXPECT_THAT(text, HasSubstr("Sinkhorn averages do not follow"));
}

// The longest titles of the paper's eleven models, every task, three seeds, two presets.
std::vector<RunRecord> eleven_models() {
  std::vector<RunRecord> records;
  for (const char* model :
       {"transformer", "local", "sparse_transformer", "longformer", "linformer", "reformer",
        "sinkhorn", "synthesizer", "bigbird", "linear_transformer", "performer"}) {
    for (const char* task :
         {"listops", "text", "retrieval", "image", "pathfinder32", "pathfinder128"}) {
      for (uint64_t seed = 0; seed < 3; ++seed) {
        RunRecord run = finished_run(task, model, 50 + static_cast<double>(seed), seed);
        run.config.table("mixer").set("a_setting_of_a_long_name",
                                      ConfigValue{std::string(task), ""});
        run.measurements = {{.mode = "train",
                             .dtype = "fp32",
                             .length = 1024,
                             .batch = 32,
                             .steps_per_s = 12.5,
                             .windows = 5}};
        records.push_back(run);
        run.preset = "release";
        run.fingerprint += run.preset;
        run.provenance.threads = 64;
        records.push_back(run);
      }
    }
  }
  return records;
}

TEST(Report, TextOfElevenModelsFitsAHundredColumns) {
  const std::string text = render(eleven_models(), Format::kText);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(display_width(line), 100) << line;
    EXPECT_FALSE(line.ends_with(" ")) << line;
  }
  // Nothing is lost where tables are cut: every task's column, under the models' names.
  for (const char* title : {"ListOps", "Pathfinder", "Path-X", "Avg 5", "Avg all"}) {
    EXPECT_THAT(text, HasSubstr(title));
  }
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Report, HtmlOfElevenModelsHasARowForEach) {
  const std::string page = render(eleven_models(), Format::kHtml);
  const std::string board = between(page, "<section id=\"leaderboard\">", "</section>");
  EXPECT_EQ(count_of(board, "<tbody class=\"entry full\">"), 22u);
  // Two averages and six tasks, each of which can be sorted by.
  EXPECT_EQ(count_of(board, "<span class=\"figure"), 22u * 8);
  EXPECT_THAT(board, HasSubstr("All rows: last weights; validation: own; "
                               "apples-to-apples."));
}

TEST(Report, HtmlShowsOnTheFirstScreenWhatARunCost) {
  std::vector<RunRecord> records = {finished_run("text", "performer", 65),
                                    finished_run("listops", "performer", 40)};
  records[0].num_parameters = 53'100;
  records[1].num_parameters = 1'250'000;
  records[1].train_seconds = 3725;
  const std::string page = render(records, Format::kHtml);
  EXPECT_THAT(page, HasSubstr(">53.1k<span class=\"sub\">to 1.25M</span></td>"));
  EXPECT_THAT(page, HasSubstr("<span class=\"sub\">1.7 min</span></td>"));
  EXPECT_THAT(page, HasSubstr("<span class=\"sub\">1.0 h</span></td>"));
  EXPECT_THAT(page, HasSubstr("Avg of 2: ListOps, Text."));
  EXPECT_THAT(page, HasSubstr("<a href=\"#run-2\">run 2</a>"));
  EXPECT_THAT(page, HasSubstr("<details id=\"run-2\"><summary>Run 2: "));
}

TEST(Report, HtmlGroupsShortRunsBelowTheRanking) {
  RunRecord whole = finished_run("text", "performer", 65), part = finished_run("text", "local", 90);
  part.steps = part.planned_steps = 100;
  const std::string page = render({whole, part}, Format::kHtml);
  EXPECT_THAT(page, HasSubstr("<b>1</b> row of shorter runs, ranked among those of equal steps"));
  EXPECT_LT(page.find("entry full"), page.find("entry short"));
  EXPECT_EQ(count_of(page, "<td class=\"best\""), 0u) << "neither is compared";
  EXPECT_THAT(page, HasSubstr("class=\"group short\""));
  RunRecord other = finished_run("text", "bigbird", 80);
  other.steps = other.planned_steps = 100;
  const std::string two = render({whole, part, other}, Format::kHtml);
  EXPECT_THAT(two, HasSubstr("<td class=\"best\" data-sort=\"90.000000\">"));
  EXPECT_THAT(render({part, other}, Format::kHtml), Not(HasSubstr("class=\"group short\"")));
}

TEST(Report, HtmlMarksFiguresThatATrivialClassifierReaches) {
  RunRecord weak = finished_run("text", "performer", 65),
            strong = finished_run("text", "local", 90);
  weak.baselines = strong.baselines = {{"byte unigrams", 0.64}};
  const std::string page = render({weak, strong}, Format::kHtml);
  EXPECT_THAT(page, HasSubstr("<abbr class=\"mark\" title=\"not above trivial: 64.00 of byte "
                              "unigrams\">not above trivial</abbr>"));
  EXPECT_THAT(page, HasSubstr(">90.00<"));
  strong.published_setting = false;
  strong.division_reason = "model.layers 1 instead of 4";
  EXPECT_THAT(
      render({weak, strong}, Format::kHtml),
      HasSubstr("title=\"other settings: model.layers 1 instead of 4\">other settings</abbr>"));
  const std::string alone = render({strong}, Format::kHtml);
  EXPECT_THAT(alone, HasSubstr(">90.00<")) << "said once of all rows";
  EXPECT_THAT(alone, HasSubstr("settings or data that nobody published; one seed."));
}

TEST(Report, PublishedResultsAreShownBesideAndNeverRanked) {
  Literature literature{.families = {{"performer", "linear attention"}},
                        .results = {{.model = "S0",
                                     .family = "state space",
                                     .source = "A paper",
                                     .note = "",
                                     .kind = "own",
                                     .accuracy = {60, 99, 90, 88, 95, std::nullopt},
                                     .fail = {false, false, false, false, false, true}}}};
  const std::vector<RunRecord> records = {finished_run("text", "performer", 65)};
  ReportOptions options{.literature = literature, .show_literature = true};
  for (const Format format : {Format::kText, Format::kMarkdown, Format::kHtml}) {
    EXPECT_THAT(render(records, format, options), HasSubstr("99.00"));
  }
  const std::string page = render(records, Format::kHtml, options);
  EXPECT_THAT(page, HasSubstr("<td data-sort=\"65.000000\">"));
  EXPECT_THAT(page, HasSubstr("linear attention"));
  EXPECT_THAT(page, HasSubstr("86.40")) << "the average of five";
  options.show_literature = false;
  EXPECT_THAT(render(records, Format::kText, options), Not(HasSubstr("99.00")));
}

TEST(Report, SummaryDrawsLearningCurves) {
  RunRecord rising = finished_run("text", "performer", 90),
            flat = finished_run("text", "local", 50);
  rising.val_curve = {{100, 1, 0.5, 10}, {200, 1, 0.9, 10}};
  flat.val_curve = {{100, 1, 0.5, 10}, {200, 1, 0.5, 10}};
  const std::string text = render({rising, flat}, Format::kSummary);
  EXPECT_THAT(text, HasSubstr("  90 % |"));
  EXPECT_THAT(text, HasSubstr("A A performer 90.0\n"));
  EXPECT_THAT(text, HasSubstr("B B local 50.0\n"));
  EXPECT_THAT(text, Not(HasSubstr("§"))) << "explained where it is used";
}

TEST(Report, EachMarkAndItsReasonIsInEveryFormat) {
  RunRecord run = finished_run("text", "performer", 65);
  run.steps = run.planned_steps = 100;
  run.baselines = {{"majority", 0.66}};
  run.data_checks = {{{.check = "copies", .split = "test", .text = "nine are of train"}}};
  for (const char* format : {"text", "summary", "md", "html", "csv", "json"}) {
    const std::string text = render({run}, parse_format(format));
    // Lines of a cell that is broken are joined again.
    std::string flat;
    for (const char c : text) {
      if (c != ' ' && c != '\n') flat += c;
    }
    for (const char* reason : {"100of5,000steps", "66.00ofmajority", "nineareoftrain"}) {
      EXPECT_THAT(flat, HasSubstr(reason)) << format;
    }
    EXPECT_THAT(text, Not(HasSubstr("-0.40"))) << format;
  }
  for (const Format format : {Format::kText, Format::kSummary, Format::kMarkdown}) {
    EXPECT_THAT(render({run}, format), HasSubstr("†§‡"));
  }
  EXPECT_THAT(render({run}, Format::kLatex), HasSubstr("$^\\dagger$\\S{}$^\\ddagger$"));
  for (const char* fact : {"suspect data", "other settings"}) {
    EXPECT_THAT(results_card(run), HasSubstr(fact));
  }
}

TEST(Report, WithoutFiguresOfThePapersTasksNoClaimIsJudged) {
  std::vector<RunRecord> records = {finished_run("listops", "transformer", 90),
                                    finished_run("listops", "local", 60)};
  for (RunRecord& run : records) {
    run.published_setting = false;
    run.config.table("task").set("length", ConfigValue{int64_t{32}, ""});
  }
  records.push_back(measured("transformer", 4096, 1));
  records.push_back(measured("local", 4096, 2));
  for (const char* verdict : {"confirmed", "contradicted", "undecided"}) {
    EXPECT_THAT(render(records, Format::kText), Not(HasSubstr(verdict)));
    EXPECT_THAT(render(records, Format::kHtml), Not(HasSubstr(verdict)));
  }
  EXPECT_THAT(render(records, Format::kText), HasSubstr("length 32 (2,000)"));
}

TEST(Report, ListsTheFilesLeftOut) {
  for (const char* format : {"text", "md", "json", "html"}) {
    EXPECT_THAT(render({finished_run("text", "performer", 65)}, parse_format(format),
                       {.problems = {"broken record"}}),
                HasSubstr("broken record"))
        << format;
  }
}

TEST(Report, RefusesToReportNothing) { EXPECT_THROW(render({}, Format::kText), Error); }

TEST(Report, KnowsItsFormats) {
  EXPECT_EQ(parse_format("md"), Format::kMarkdown);
  EXPECT_EQ(parse_format("latex"), Format::kLatex);
  EXPECT_THROW(parse_format("pdf"), Error);
}

}  // namespace
}  // namespace lra::report
