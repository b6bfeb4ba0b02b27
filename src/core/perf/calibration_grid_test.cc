// SPDX-License-Identifier: Apache-2.0
// Goal: the physical form holds on step times that do not have it. Method: the tables of data/truth
// (sums of kernel times, which bend where the form is straight), distorted by up to 30 % that no
// prior knows, seen with 7 % scatter; errors over the whole table before and after.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/rng.h"
#include "core/perf/calibrator.h"
#include "core/perf/predict.h"

namespace signalbox::perf {
namespace {

struct Point {
  double n, ctx, seconds;
};
struct Table {
  std::vector<std::string> key;  // model, accelerator, tensor parallelism, precision
  std::vector<Point> prefill, decode;
};

// Points that a busy engine meets: prompts of 64 and more, batches up to 64, contexts up to 16 Ki.
std::vector<Table> read_tables() {
  std::ifstream in(std::string(SIGNALBOX_SOURCE_DIR) + "/data/truth/grid.csv");
  std::map<std::string, Table> tables;
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    std::stringstream text(line);
    std::vector<std::string> cells;
    for (std::string cell; std::getline(text, cell, ',');) cells.push_back(cell);
    if (cells.size() != 8) continue;
    const Point p{std::stod(cells[5]), std::stod(cells[6]), std::stod(cells[7]) * 1e-3};
    Table& t = tables[cells[0] + cells[1] + cells[2] + cells[3]];
    t.key.assign(cells.begin(), cells.begin() + 4);
    if (cells[4] == "p" && p.n >= 64 && p.ctx <= 16'384) t.prefill.push_back(p);
    if (cells[4] == "d" && p.n <= 64 && p.ctx <= 16'384) t.decode.push_back(p);
  }
  std::vector<Table> out;
  for (auto& [key, t] : tables) {
    if (t.prefill.size() >= 5 && t.decode.size() >= 5) out.push_back(std::move(t));
  }
  return out;
}

struct Trial {
  explicit Trial(const Table& t) : table(t), rng(1, t.key[0] + t.key[1] + t.key[2] + t.key[3]) {
    prefill_distortion = rng.uniform(0.7, 1.3);
    decode_distortion = rng.uniform(0.7, 1.3);
  }
  static Prior prior_of(const Table& t) {
    ProfileQuery q;
    q.model = t.key[0];
    q.accelerator = t.key[1];
    q.tensor_parallel = std::stoi(t.key[2]);
    q.precision = t.key[3];
    return make_prior(q);
  }
  PrefillEvidence draw_prefill() {
    const Point& p = table.prefill[rng.below(table.prefill.size())];
    const double seconds = p.seconds * prefill_distortion * std::exp(0.07 * rng.normal());
    return prefill_when_idle(model::EndpointId(1), seconds, p.n, p.ctx);
  }
  DecodeEvidence draw_decode() {
    const Point& p = table.decode[rng.below(table.decode.size())];
    DecodeEvidence e;
    e.endpoint = model::EndpointId(1);
    e.steps = 100;
    e.batch = p.n;
    e.kv = p.n * p.ctx;
    e.seconds = 100 * p.seconds * decode_distortion * std::exp(0.07 * rng.normal());
    return e;
  }
  void feed(int n) {
    for (int i = 0; i < n; ++i) {
      calibrator.observe(draw_prefill(), {});
      calibrator.observe(draw_decode(), {});
    }
  }
  // Mean |log(predicted / true)| over the table.
  double prefill_error() const {
    double sum = 0;
    for (const Point& p : table.prefill) {
      const double predicted = calibrator.coefficients().prefill(p.n, p.ctx);
      sum += std::abs(std::log(predicted / (p.seconds * prefill_distortion)));
    }
    return sum / static_cast<double>(table.prefill.size());
  }
  double decode_error() const {
    double sum = 0;
    for (const Point& p : table.decode) {
      const double predicted = calibrator.coefficients().step(p.n, p.n * p.ctx);
      sum += std::abs(std::log(predicted / (p.seconds * decode_distortion)));
    }
    return sum / static_cast<double>(table.decode.size());
  }
  // Share of new first tokens within two claimed deviations.
  double coverage() {
    int within = 0;
    for (int i = 0; i < 200; ++i) {
      const PrefillEvidence e = draw_prefill();
      const Work work{e.fresh, e.attention / e.fresh - e.fresh / 2, 1, 0};
      const auto p = predict(calibrator.effective(e.endpoint, {}), {}, work);
      within += std::abs(std::log(e.seconds / p.ttft)) <= 2 * p.ttft_sd / p.ttft ? 1 : 0;
    }
    return within / 200.0;
  }

  const Table& table;
  Rng rng;
  double prefill_distortion = 1;
  double decode_distortion = 1;
  Calibrator calibrator{prior_of(table)};
};

TEST(CalibrationOnTables, HoldsFarFromTheForm) {
  const auto tables = read_tables();
  ASSERT_GT(tables.size(), 30u);
  double before = 0, prefill = 0, decode = 0, coverage = 0;
  for (const Table& t : tables) {
    Trial trial(t);
    before += trial.prefill_error() + trial.decode_error();
    trial.feed(100);
    prefill += trial.prefill_error();
    decode += trial.decode_error();
    EXPECT_LT(trial.prefill_error(), 0.25) << t.key[0] << " " << t.key[1];
    EXPECT_LT(trial.decode_error(), 0.25) << t.key[0] << " " << t.key[1];
    coverage += trial.coverage();
  }
  const auto n = static_cast<double>(tables.size());
  EXPECT_GT(before / n, 0.25);
  EXPECT_LT(prefill / n, 0.07);
  EXPECT_LT(decode / n, 0.07);
  EXPECT_GT(coverage / n, 0.85);
}

}  // namespace
}  // namespace signalbox::perf
