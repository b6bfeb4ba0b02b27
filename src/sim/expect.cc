// SPDX-License-Identifier: Apache-2.0
// Reads and judges expectations.
#include "sim/expect.h"

#include <charconv>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/units.h"
#include "core/spec/nearest.h"

namespace signalbox::sim {
namespace {

using Relation = Expectation::Relation;
using spec::quote;

constexpr std::pair<std::string_view, Relation> kRelations[] = {{"<", Relation::Less},
                                                                {"<=", Relation::AtMost},
                                                                {"==", Relation::Equal},
                                                                {">=", Relation::AtLeast},
                                                                {">", Relation::More}};
constexpr std::string_view kForm =
    "write METRIC RELATION VALUE, such as `ttft.p99 < 2s` or `goodput >= 0.95 * baseline`.";

bool is_sign(char c) { return c == '<' || c == '>' || c == '=' || c == '*'; }

// Words, and runs of signs.
std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  std::size_t i = 0;
  while (i < text.size()) {
    if (text[i] == ' ') {
      ++i;
      continue;
    }
    const std::size_t begin = i;
    const bool sign = is_sign(text[i]);
    while (i < text.size() && text[i] != ' ' && is_sign(text[i]) == sign) ++i;
    words.push_back(text.substr(begin, i - begin));
  }
  return words;
}

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = fault == std::errc() && end == text.data() + text.size();
  return whole && value >= 0 && value <= 1e15 ? std::optional(value) : std::nullopt;
}

Result<double> quantity(std::string_view text, const Metric& metric) {
  if (metric.unit == Unit::Seconds) {
    const auto time = parse_duration(text);
    if (time) return to_seconds(*time);
  } else if (metric.unit == Unit::Share && text.ends_with('%')) {
    if (const auto percent = number(text.substr(0, text.size() - 1))) return *percent / 100;
  } else if (const auto value = number(text)) {
    return *value;
  }
  return invalid(quote(text) + " is no value of " + quote(metric.name) + "; write one such as " +
                 std::string(examples(metric.unit)) + ".");
}

// Takes the words from the left.
class Parser {
 public:
  explicit Parser(std::string_view text) : words_(words_of(text)) {}

  Result<Expectation> parse() {
    Expectation e;
    TRY_ASSIGN(e.metric, find_metric(take()));
    TRY_CHECK(stretch(e));
    TRY_CHECK(relation(e));
    TRY_CHECK(value(e));
    if (next_ < words_.size()) {
      return invalid(quote(words_[next_]) + " follows a line that is complete; remove it.");
    }
    return e;
  }

 private:
  std::string_view look() const { return next_ < words_.size() ? words_[next_] : ""; }
  std::string_view take() { return next_ < words_.size() ? words_[next_++] : ""; }

  Result<bool> stretch(Expectation& e) {
    while (look() == "after" || look() == "until") {
      const std::string_view which = take();
      const auto time = parse_duration(take());
      if (!time) return invalid("`" + std::string(which) + "`: " + time.error().message);
      (which == "after" ? e.after : e.until) = *time;
    }
    if (!e.whole() && !e.metric->within) {
      return invalid(quote(e.metric->name) +
                     " is known of the whole run alone; remove `after` and `until`.");
    }
    if (e.after >= e.until) return invalid("`after` is not before `until`; exchange them.");
    return true;
  }

  Result<bool> relation(Expectation& e) {
    const std::string_view word = take();
    for (const auto& [name, relation] : kRelations) {
      if (name != word) continue;
      e.relation = relation;
      return true;
    }
    if (word.empty()) return invalid("there is no relation; " + std::string(kForm));
    return invalid(quote(word) + " is no relation; write one of `<`, `<=`, `==`, `>=`, `>`.");
  }

  // VALUE, `baseline`, or the product of a number and `baseline`.
  Result<bool> value(Expectation& e) {
    const std::string_view first = take();
    if (first.empty()) return invalid("there is no value; " + std::string(kForm));
    if (first == "baseline") {
      e.baseline = true;
      e.bound = 1;
      if (look() != "*") return true;
      take();
      return factor(take(), e);
    }
    if (look() == "*") {
      take();
      if (const auto second = take(); second != "baseline") {
        return invalid(quote(second) + " stands where `baseline` is expected.");
      }
      e.baseline = true;
      return factor(first, e);
    }
    TRY_ASSIGN(e.bound, quantity(first, *e.metric));
    return true;
  }

  static Result<bool> factor(std::string_view text, Expectation& e) {
    const auto value = number(text);
    if (!value) return invalid(quote(text) + " is no factor of `baseline`; write one like `0.95`.");
    e.bound = *value;
    return true;
  }

  std::vector<std::string_view> words_;
  std::size_t next_ = 0;
};

std::optional<double> measure(const Expectation& e, const Report& report) {
  if (e.whole()) return e.metric->of(report);
  const double seconds = report.series.seconds_between(e.after, e.until);
  return e.metric->within(report.series.between(e.after, e.until), seconds);
}

bool holds(Relation relation, double value, double bound) {
  switch (relation) {
    case Relation::Less: return value < bound;
    case Relation::AtMost: return value <= bound;
    case Relation::Equal: return value == bound;
    case Relation::AtLeast: return value >= bound;
    case Relation::More: return value > bound;
  }
  return false;
}

}  // namespace

Result<Expectation> parse_expectation(std::string_view text) {
  auto parsed = Parser(text).parse();
  if (parsed) parsed->text = text;
  return parsed;
}

Verdict judge(const Expectation& e, const Report& report, const Report* baseline) {
  CHECK(e.metric != nullptr && (!e.baseline || baseline != nullptr));
  Verdict verdict;
  verdict.value = measure(e, report);
  verdict.bound = e.bound;
  std::optional<double> without;
  if (e.baseline) {
    without = measure(e, *baseline);
    verdict.bound = without ? std::optional(e.bound * *without) : std::nullopt;
  }
  verdict.holds = verdict.value && verdict.bound && holds(e.relation, *verdict.value,
                                                          *verdict.bound);
  const auto shown = [&](const std::optional<double>& value) {
    return value ? print(*value, e.metric->unit) : std::string("nothing");
  };
  verdict.sentence = e.text + ": it is " + shown(verdict.value);
  if (e.baseline) verdict.sentence += ", without faults " + shown(without);
  return verdict;
}

}  // namespace signalbox::sim
