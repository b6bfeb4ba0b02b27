// SPDX-License-Identifier: Apache-2.0
// Copies a few decisions a look, formats them outside the lock.
#include "app/decision_log.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "app/explain_json.h"
#include "core/flow/flow.h"
#include "io/net/clock.h"
#include "io/telemetry/log.h"

namespace signalbox::app {
namespace {

constexpr Duration kInterval = std::chrono::milliseconds(100);
constexpr Duration kBreath = std::chrono::milliseconds(1);  // for the loop, while there is more
constexpr std::size_t kPerLook = 32;
constexpr Duration kComplaintInterval = std::chrono::minutes(1);
constexpr Duration kFinish = std::chrono::seconds(2);

}  // namespace

DecisionLog::DecisionLog(net::Loop& loop, host::CoreHost& host, const Controller& controller,
                         const gateway::Shared& shared, std::unique_ptr<telemetry::LogFile> file)
    : loop_(loop), host_(host), controller_(controller), shared_(shared), file_(std::move(file)),
      timer_([this] {
        const Left left = follow();
        loop_.arm_after(timer_, left == Left::More ? kBreath : kInterval);
      }) {
  loop_.arm_after(timer_, kInterval);
}

DecisionLog::Left DecisionLog::follow() {
  const auto published = controller_.published();
  if (!published) return Left::Nothing;
  std::vector<flow::DecisionRecord> records;
  std::uint64_t lost = 0;
  host_.read([&](const flow::Flow& flow) {
    const flow::DecisionRing& ring = flow.decisions();
    if (ring.forgotten() > written_) {
      lost = ring.forgotten() - written_;
      written_ = ring.forgotten();
    }
    while (records.size() < kPerLook) {
      const flow::DecisionRecord* record = ring.find(written_ + 1);
      if (record == nullptr) break;
      records.push_back(*record);
      ++written_;
    }
  });
  if (lost > 0) tell_lost(lost);
  for (const flow::DecisionRecord& record : records) {
    auto line = decision_json(record, *published, shared_.names, Detail::Full);
    line.erase("actual");  // it has only begun
    file_->append(line.dump() + "\n");
  }
  return records.size() == kPerLook ? Left::More : Left::Nothing;
}

void DecisionLog::finish() {
  const Instant until = net::now() + kFinish;
  while (follow() == Left::More) {
    if (net::now() < until) continue;
    std::uint64_t last = written_;
    host_.read([&](const flow::Flow& flow) {
      for (const auto* record : flow.decisions().latest(1)) last = record->number;
    });
    if (last > written_) tell_lost(last - written_);
    return;
  }
}

void DecisionLog::tell_lost(std::uint64_t count) {
  lost_ += count;
  file_->append(telemetry::LogFile::gap_line(count));
  if (told_ && loop_.now() - *told_ < kComplaintInterval) return;
  told_ = loop_.now();
  telemetry::log_warn("decisions are made faster than the decision log can be written: some are "
                      "missing there",
                      {{"lost", lost_}});
}

}  // namespace signalbox::app
