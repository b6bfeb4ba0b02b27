// SPDX-License-Identifier: Apache-2.0
// Reads ServeGen's tables.
#include "sim/trace/servegen.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "sim/trace/table.h"

namespace signalbox::trace {
namespace {

constexpr double kRateMax = 1e6;
constexpr double kSecondsMax = 1e9;
constexpr std::int64_t kClientsMax = 1'000'000;

using Clients = std::map<std::int64_t, ServeGen::Client>;

bool rising(Duration at, Duration last, Table& table) {
  if (at > last) return true;
  table.fail("`t_s` is not later than in the client's row before; sort the rows by it.");
  return false;
}

Result<Clients> read_rates(std::string_view model, std::string_view text) {
  enum Column { Model, Client, Time, Rate, Pattern, Shape };
  Table table(text, "ServeGen client rates",
              {"model", "client", "t_s", "rate_rps", "pattern", "shape"});
  Clients clients;
  while (table.next()) {
    if (table.text(Model) != model) continue;
    ServeGen::Client& client = clients[table.integer(Client, {0, kClientsMax})];
    ServeGen::Window window;
    window.at = from_seconds(table.real(Time, {0, kSecondsMax}));
    window.rate = table.real(Rate, {0, kRateMax});
    window.gaps.shape = table.real(Shape, {kShapeMin, 1e9});
    const std::string_view pattern = table.text(Pattern);
    if (pattern == "W") window.gaps.pattern = GapShape::Pattern::Weibull;
    else if (pattern != "G") table.fail("`pattern` is " + quoted(pattern) + "; write G or W.");
    if (!client.windows.empty()) rising(window.at, client.windows.back().at, table);
    client.windows.push_back(window);
  }
  if (!table.error() && clients.empty()) {
    table.fail("no row is of the model " + quoted(model) + "; name one that the file has.");
  }
  if (table.error()) return *table.error();
  return clients;
}

constexpr std::array<double, 9> kShares = {0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99};
enum LengthColumn { Model, Client, Time, Field, Mean, First, Last = First + 10 };

Quantiles read_quantiles(Table& table) {
  std::vector<Quantile> points;
  for (std::size_t i = First; i <= Last; ++i) {
    const std::size_t number = i - First;
    const double share = i == Last ? 1 : number == kShares.size() ? 0.999 : kShares[number];
    const double value = table.real(i, {0, kTokensMax});
    if (!points.empty() && value < points.back().value) {
      table.fail("quantiles fall from one column to the next; write them in rising order.");
    }
    points.push_back({share, value});
  }
  return Quantiles(std::move(points), table.real(Mean, {0, kTokensMax}));
}

// Rows of one client and time stand together; a row of a later time begins a new entry.
void take_lengths(Table& table, std::vector<ServeGen::Lengths>& lengths, Duration at) {
  const std::string_view field = table.text(Field);
  const bool output = field == "output_tokens";
  if (!output && field != "input_tokens" && field != "text_tokens" && field != "image_tokens") {
    return;
  }
  if (lengths.empty() || lengths.back().at != at) {
    if (!lengths.empty() && !rising(at, lengths.back().at, table)) return;
    lengths.push_back({at, {}, {}});
  }
  Quantiles quantiles = read_quantiles(table);
  if (output) lengths.back().output = std::move(quantiles);
  else lengths.back().inputs.push_back(std::move(quantiles));
}

std::optional<Error> read_lengths(std::string_view model, std::string_view text, Clients& clients,
                                  ServeGen::Lengths& pooled) {
  Table table(text, "ServeGen lengths",
              {"model", "client", "t_s", "field", "mean", "p01", "p05", "p10", "p25", "p50", "p75",
               "p90", "p95", "p99", "p999", "max"});
  std::vector<ServeGen::Lengths> all;
  while (table.next()) {
    if (table.text(Model) != model) continue;
    if (table.text(Client) == "all") {
      take_lengths(table, all, Duration::zero());
      continue;
    }
    const auto client = clients.find(table.integer(Client, {0, kClientsMax}));
    const Duration at = from_seconds(table.real(Time, {0, kSecondsMax}));
    if (client != clients.end()) take_lengths(table, client->second.lengths, at);
  }
  if (!all.empty()) pooled = std::move(all.front());
  return table.error();
}

bool complete(const ServeGen::Lengths& lengths) {
  return !lengths.inputs.empty() && !lengths.output.empty();
}

}  // namespace

double ServeGen::mean_rate() const {
  double calls = 0;
  for (const Client& client : clients) {
    for (const Window& window : client.windows) calls += window.rate * to_seconds(kServeGenWindow);
  }
  return lasts > Duration::zero() ? calls / to_seconds(lasts) : 0;
}

Result<ServeGen> read_servegen(std::string_view model, std::string_view rates,
                               std::string_view lengths) {
  TRY_ASSIGN(Clients clients, read_rates(model, rates));
  ServeGen out;
  if (auto error = read_lengths(model, lengths, clients, out.pooled)) return *error;
  for (auto& [id, client] : clients) {
    client.id = id;
    std::erase_if(client.lengths, [](const ServeGen::Lengths& l) { return !complete(l); });
    if (client.lengths.empty() && !complete(out.pooled)) {
      return invalid("ServeGen lengths: client " + std::to_string(id) + " of " + quoted(model) +
                     " has no rows of `input_tokens` and `output_tokens`; write them, or rows of "
                     "the client `all`.");
    }
    out.lasts = std::max(out.lasts, client.windows.back().at + kServeGenWindow);
    out.clients.push_back(std::move(client));
  }
  return out;
}

Result<RateCurve> read_servegen_rates(std::string_view model, std::string_view total_rates) {
  enum Column { OfModel, At, Rate };
  Table table(total_rates, "ServeGen total rates", {"model", "t_s", "rate_rps"});
  RateCurve curve;
  curve.between = RateCurve::Between::Step;
  while (table.next()) {
    if (table.text(OfModel) != model || table.empty(Rate)) continue;
    const Duration at = from_seconds(table.real(At, {0, kSecondsMax}));
    const double rate = table.real(Rate, {0, kRateMax});
    if (rate <= 0) continue;
    if (!curve.points.empty() && !rising(at, curve.points.back().at, table)) break;
    curve.points.push_back({at, rate});
  }
  if (!table.error() && curve.points.empty()) {
    table.fail("no row is of the model " + quoted(model) + "; name one that the file has.");
  }
  if (table.error()) return *table.error();
  curve.period = curve.points.back().at + kServeGenWindow;
  return curve;
}

}  // namespace signalbox::trace
