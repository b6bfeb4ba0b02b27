// SPDX-License-Identifier: Apache-2.0
// Copies a few decisions a look, formats them outside the lock.
#include "app/decision_log.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "app/explain_json.h"
#include "core/flow/flow.h"

namespace signalbox::app {
namespace {

constexpr Duration kInterval = std::chrono::milliseconds(100);
constexpr std::size_t kPerLook = 32;

}  // namespace

DecisionLog::DecisionLog(net::Loop& loop, host::CoreHost& host, const Controller& controller,
                         const gateway::Shared& shared, std::unique_ptr<telemetry::LogFile> file)
    : loop_(loop), host_(host), controller_(controller), shared_(shared), file_(std::move(file)),
      timer_([this] {
        follow();
        loop_.arm_after(timer_, kInterval);
      }) {
  loop_.arm_after(timer_, kInterval);
}

void DecisionLog::follow() {
  const auto published = controller_.published();
  if (!published) return;
  std::vector<flow::DecisionRecord> records;
  do {
    records.clear();
    host_.read([&](const flow::Flow& flow) {
      const flow::DecisionRing& ring = flow.decisions();
      // What the ring has forgotten meanwhile is lost to the log as well.
      written_ = std::max(written_, ring.forgotten());
      while (records.size() < kPerLook) {
        const flow::DecisionRecord* record = ring.find(written_ + 1);
        if (record == nullptr) break;
        records.push_back(*record);
        ++written_;
      }
    });
    for (const flow::DecisionRecord& record : records) {
      auto line = decision_json(record, *published, shared_.names, Detail::Full);
      line.erase("actual");  // it has only begun
      file_->append(line.dump() + "\n");
    }
  } while (records.size() == kPerLook);
}

}  // namespace signalbox::app
